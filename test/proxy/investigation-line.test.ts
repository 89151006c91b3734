import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import type { InquiryResult, Inquiry, SignatureUse } from '../../src/identity/keys/inquiry.ts'
import { type Channel, type ChannelMessage, channelPair } from '../../src/plane/local-bus.ts'
import {
  type Finder,
  InvestigationDesk,
  RemoteInvestigator,
} from '../../src/proxy/request/investigation-line.ts'
import { NOTHING_PUBLISHED } from '../identity/published.ts'

const ASKED: Inquiry = { kind: 'keys', agentId: 'https://a.example', thumbprint: null, isListed: false }
const USE: SignatureUse = {
  ...{ id: 'id', thumbprint: 'key', holder: null, createdS: 1, goodUntilMs: 2, isListed: false },
}

const FOUND: InquiryResult = {
  ...{ kind: 'keys', agentId: 'https://a.example', keys: [], why: 'no-directory' },
  ...NOTHING_PUBLISHED,
  ...{ askAgainMs: 1, freshUntilMs: 1, untilMs: 1 },
}

/** Answers when the test says so. */
class TestFinder implements Finder {
  readonly asked: Inquiry[] = []
  readonly answers = new Map<string, (isTaken: boolean | null) => void>()
  readonly #found: InquiryResult[] = []
  #listener: (finding: InquiryResult) => void = () => undefined

  ask(inquiry: Inquiry): void {
    this.asked.push(inquiry)
  }

  claim({ id }: SignatureUse): Promise<boolean | null> {
    return new Promise((resolve) => this.answers.set(id, resolve))
  }

  onFinding(listener: (finding: InquiryResult) => void): void {
    this.#listener = listener
  }

  known(): readonly InquiryResult[] {
    return this.#found
  }

  find(finding: InquiryResult): void {
    this.#found.push(finding)
    this.#listener(finding)
  }
}

class BreakableLine implements Channel {
  readonly isWire = true
  readonly sent: ChannelMessage[] = []
  isBroken = false
  receive: (message: ChannelMessage) => void = () => undefined
  close: () => void = () => undefined

  send(message: ChannelMessage): boolean {
    this.sent.push(message)
    return !this.isBroken
  }

  onMessage(listener: (message: ChannelMessage) => void): void {
    this.receive = listener
  }

  onClose(listener: () => void): void {
    this.close = listener
  }
}

test('workers ask, and all of them are told, those that come later, too', async () => {
  const finder = new TestFinder()
  const desk = new InvestigationDesk(finder)
  const [first, second] = [attach(desk), attach(desk)]
  first.investigator.ask(ASKED)
  await turn()
  assert.deepEqual(finder.asked, [ASKED])
  finder.find(FOUND)
  await turn()
  const late = attach(desk)
  await turn()
  for (const { told } of [first, second, late]) assert.deepEqual(told, [FOUND])
})

test('what a worker is told before it listens is not lost', async () => {
  const finder = new TestFinder()
  const desk = new InvestigationDesk(finder)
  finder.find(FOUND)
  const [up, down] = channelPair()
  const investigator = new RemoteInvestigator(down)
  desk.attach(up)
  await turn()
  const told: InquiryResult[] = []
  investigator.onFinding((finding) => told.push(finding))
  assert.deepEqual(told, [FOUND])
})

test('each claim gets its own answer, in whatever order they come', async () => {
  const finder = new TestFinder()
  const desk = new InvestigationDesk(finder)
  const [first, second] = [attach(desk).investigator, attach(desk).investigator]
  const ids = ['a', 'b', 'c']
  const claims = ids.map((id) => first.claim({ ...USE, id }))
  const other = second.claim({ ...USE, id: 'd' })
  await turn()
  for (const [id, answer] of [
    ['c', null],
    ['d', true],
    ['b', false],
    ['a', true],
  ] as const)
    finder.answers.get(id)!(answer)
  assert.deepEqual(await Promise.all([...claims, other]), [true, false, null, true])
})

test('who gets no answer is told so in time, and a late one changes nothing', async () => {
  const finder = new TestFinder()
  const desk = new InvestigationDesk(finder)
  const [up, down] = channelPair()
  const investigator = new RemoteInvestigator(down, 20)
  desk.attach(up)
  assert.equal(await investigator.claim(USE), null)
  const { id } = USE
  finder.answers.get(id)!(true)
  const again = investigator.claim({ ...USE, id: 'again' })
  await turn()
  finder.answers.get('again')!(false)
  assert.equal(await again, false)
})

test('a closed line does not wait', async () => {
  const line = new BreakableLine()
  const investigator = new RemoteInvestigator(line, 60_000)
  const waiting = investigator.claim(USE)
  line.close()
  assert.equal(await waiting, null)
  assert.equal(await investigator.claim(USE), null)
  investigator.ask(ASKED)
  assert.deepEqual(
    line.sent.map(({ kind }) => kind),
    ['find:claim', 'find:ask'],
  )
  const broken = new BreakableLine()
  broken.isBroken = true
  assert.equal(await new RemoteInvestigator(broken, 60_000).claim(USE), null)
})

test('a worker that is gone is told nothing', async () => {
  const finder = new TestFinder()
  const desk = new InvestigationDesk(finder)
  const line = new BreakableLine()
  desk.attach(line)
  line.receive({ kind: 'find:claim', number: 1, use: USE } as ChannelMessage)
  line.close()
  line.sent.length = 0
  finder.find(FOUND)
  finder.answers.get(USE.id)!(true)
  await turn()
  assert.deepEqual(line.sent, [])
})

function attach(desk: InvestigationDesk) {
  const [up, down] = channelPair()
  const investigator = new RemoteInvestigator(down)
  const told: InquiryResult[] = []
  investigator.onFinding((finding) => told.push(finding))
  desk.attach(up)
  return { investigator, told }
}

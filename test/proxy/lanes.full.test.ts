import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type Test, test } from 'tap'
import { knowledgeOf } from '../../src/runtime/signatures/knowledge-files.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { Traffic } from '../../src/classify/verdict/traffic.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import { Random } from '../fuzz/mutate.ts'
import { dialPlain, dialTls } from './front.ts'
import { type LaneApp, laneApp, wholeRequests } from './lane-app.ts'
import { type LaneCase, laneCase } from './lane-cases.ts'
import { steady } from './steady.ts'
import { type Gate, startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'

/** `LANES=50000 npx tap --timeout=7200 test/proxy/lanes.full.test.ts` sends more than 100,000 requests; LANES_SEED has others. */
const CASES = Number(process.env['LANES'] ?? 1600)
const SEED = Number(process.env['LANES_SEED'] ?? 20_261_124)
const PAIRS = 12
/** In which nothing has happened on a connection that stays open. */
const QUIET_MS = 100
/** By when both have done the same, or never will. */
const LATE_MS = 30_000

test('both lanes do the same, to the byte', { timeout: 3_600_000 }, async (t) => {
  const fates = new Map<string, number>()
  let requests = 0
  let next = 0
  // Each pair has a connection at a time: with several, Sightings could not be assigned. Most of a case is waiting.
  const pairs = await Promise.all(
    Array.from({ length: PAIRS }, async () => [await lane(t, true), await lane(t, false)] as const),
  )
  await Promise.all(
    pairs.map(async ([fast, robust]) => {
      while (next < CASES) {
        const seed = SEED + next++
        const { answered, sightings } = await theSame(fast, robust, seed)
        const fate = answered.at(-1)?.slice(9, 12) ?? 'no answer'
        fates.set(fate, (fates.get(fate) ?? 0) + 1)
        requests += Math.max(answered.length, sightings.length)
      }
    }),
  )
  t.comment(`${CASES} connections, ${requests} requests`)
  // It was worth it: most were served to their end, and many were refused.
  if (CASES < 400) return
  assert.ok(fates.get('200')! > CASES / 3 && fates.get('400')! > CASES / 20, JSON.stringify([...fates]))
})

/** What was seen of one connection, by its seed, through both lanes. */
async function theSame(fast: Lane, robust: Lane, seed: number) {
  const pieces = laneCase(new Random(seed))
  const isTls = seed % 4 === 0
  const sent = Buffer.concat(pieces).toString('latin1')
  const said = JSON.stringify(pieces.map((piece) => piece.toString('latin1').replaceAll('!!!!!!!!', '…')))
  const which = `LANES=1 LANES_SEED=${seed}, ${isTls ? 'TLS' : 'plain'}: ${said}`
  const [one, other] = await Promise.all([visit(fast, pieces, isTls), visit(robust, pieces, isTls)])
  const lateMs = Date.now() + LATE_MS
  const closed = Promise.all([one.closed, other.closed])
  for (let before = ''; ; ) {
    await Promise.race([closed, sleep(QUIET_MS)])
    const [left, right] = [one.seen(), other.seen()]
    const part = differing(left, right, sent)
    const now = JSON.stringify([left, right])
    const isSettled = now === before || !(left.isOpen || right.isOpen)
    if (part === null ? isSettled : Date.now() > lateMs) {
      if (part !== null) assert.deepEqual(left[part], right[part], `${part}: ${which}`)
      one.end()
      other.end()
      return left
    }
    before = now
    if (part !== null) await sleep(QUIET_MS)
  }
}

/** What they are not the same in; `null`: they are. */
function differing(one: Seen, other: Seen, sent: string): (typeof PARTS)[number] | null {
  // Whether the app hears of a request whose body turns out to be none depends on how much of it was read together.
  // And whether a connection goes on after a refusal, on how much of the body had been read by then.
  if (/chunked/i.test(sent) && REFUSED.test(sent)) return one.isOpen === other.isOpen ? null : 'isOpen'
  const isBroken = one.isBroken || other.isBroken || (one.failures.length > 0 && /chunked/i.test(sent))
  const parts = isBroken ? (['received', 'isOpen'] as const) : PARTS
  return parts.find((part) => !isDeepStrictEqual(one[part], other[part])) ?? null
}

const REFUSED = /\/(?:blocked|moved)/
const PARTS = ['received', 'answered', 'isOpen', 'sightings', 'failures'] as const

interface Lane {
  readonly gate: Gate
  readonly app: LaneApp
}

async function lane(t: Test, fastLane: boolean): Promise<Lane> {
  const app = await laneApp()
  t.teardown(() => app.settled()) // after the gate's, which lets go of its connections
  const policy = {
    rules: [
      { name: 'blocked', when: { path: '/blocked' }, action: 'block' },
      { name: 'moved', when: { path: '/moved' }, action: { redirect: { to: '/length' } } },
    ],
  }
  const knowledge = knowledgeOf(parseSoftwareList([]), parseWeights({ temperature: 1 }))
  const upstreams = [settingsFor([app.url], { retries: 0 })]
  const gate = await startGate(t, { upstreams, policy, knowledge, options: { fastLane } })
  return { gate, app }
}

/** A connection on which the pieces are sent, and everything that could distinguish the lanes, except time. */
async function visit({ gate, app }: Lane, pieces: LaneCase, isTls: boolean) {
  // What is known of the case before, of which one lane may have seen more, is not to be remembered.
  Object.assign(gate.context, { traffic: new Traffic() })
  const before = gate.sightings.length
  const front = isTls ? gate.secure : gate.plain
  const failed = front.failures.length
  app.forget()
  const peer = isTls ? await dialTls(front.port) : await dialPlain(front.port)
  let isOpen = true
  const closed = peer.closed.then(() => {
    isOpen = false
  })
  for (const piece of pieces) {
    peer.write(piece)
    await new Promise(setImmediate)
  }
  const seen = () => {
    const { whole, rest } = wholeRequests(steady(app.received))
    // The robust lane has read what is behind a request by the time its answer breaks off, the fast lane has not.
    const isBrokenOff = whole.includes('/broken')
    const sightings = gate.sightings.slice(before).map(({ id: _, ...rest }) => ({ ...rest, seenAtMs: 0 }))
    return {
      answered: steady(peer.text).split(/(?=HTTP\/1\.1 \d)/),
      received: whole,
      isBroken: rest !== '' || isBrokenOff,
      isOpen,
      sightings,
      failures: front.failures.slice(failed).map(({ reason, code }) => `${reason} ${code}`),
    }
  }
  return { seen, closed, end: () => peer.socket.destroy() }
}

type Seen = ReturnType<Awaited<ReturnType<typeof visit>>['seen']>

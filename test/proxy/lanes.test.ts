import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { knowledgeOf } from '../../src/commands/knowledge-files.ts'
import { parseSoftwareList } from '../../src/classify/software.ts'
import { Traffic } from '../../src/classify/traffic.ts'
import { parseWeights } from '../../src/classify/weights.ts'
import { Random } from '../fuzz/mutate.ts'
import { dialPlain, dialTls } from './front.ts'
import { type LaneApp, laneApp, wholeRequests } from './lane-app.ts'
import { type LaneCase, laneCase } from './lane-cases.ts'
import { type Gate, startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'

/** `LANES=100000 npx tap test/proxy/lanes.test.ts` is the whole of it; LANES_SEED has others. */
const CASES = Number(process.env['LANES'] ?? 800)
const SEED = Number(process.env['LANES_SEED'] ?? 20_261_124)

test('both lanes do the same, to the byte', { timeout: 3_600_000 }, async (t) => {
  const fast = await lane(t, true)
  const robust = await lane(t, false)
  const random = new Random(SEED)
  const fates = new Map<string, number>()
  for (let index = 0; index < CASES; index++) {
    const pieces = laneCase(random)
    const isTls = index % 4 === 0
    const [one, other] = await Promise.all([seen(fast, pieces, isTls), seen(robust, pieces, isTls)])
    const sent = JSON.stringify(pieces.map((piece) => piece.toString('latin1').replaceAll('!!!!!!!!', '…')))
    const which = `LANES_SEED=${SEED}, case ${index}, ${isTls ? 'TLS' : 'plain'}: ${sent}`
    // Whether the app hears of a request whose body turns out to be none depends on how much of it was read together.
    const isBroken = one.isBroken || other.isBroken || (one.failures.length > 0 && /chunked/i.test(sent))
    const parts = isBroken ? (['received', 'isOpen'] as const) : PARTS
    for (const part of parts) assert.deepEqual(one[part], other[part], `${part}: ${which}`)
    const fate = one.answered.at(-1)?.slice(9, 12) ?? 'no answer'
    fates.set(fate, (fates.get(fate) ?? 0) + 1)
  }
  // It was worth it: most were served to their end, and many were refused.
  assert.ok(fates.get('200')! > CASES / 3 && fates.get('400')! > CASES / 20, JSON.stringify([...fates]))
})

const PARTS = ['received', 'answered', 'isOpen', 'sightings', 'failures'] as const

interface Lane {
  readonly gate: Gate
  readonly app: LaneApp
}

async function lane(t: Test, fastLane: boolean): Promise<Lane> {
  const app = await laneApp()
  const policy = {
    rules: [
      { name: 'blocked', when: { path: '/blocked' }, action: 'block' },
      { name: 'moved', when: { path: '/moved' }, action: { redirect: { to: '/length' } } },
    ],
  }
  const knowledge = knowledgeOf(parseSoftwareList([]), parseWeights({ temperature: 1 }))
  const upstreams = [settingsFor([app.url], { retries: 0 })]
  const gate = await startGate(t, { upstreams, policy, knowledge, options: { fastLane } })
  t.teardown(() => app.settled())
  return { gate, app }
}

/** All that anybody could tell the lanes apart by, but for when. */
async function seen({ gate, app }: Lane, pieces: LaneCase, isTls: boolean) {
  // What is known of the case before, of which one lane may have seen more, is not to be remembered.
  Object.assign(gate.context, { traffic: new Traffic() })
  const before = gate.sightings.length
  const front = isTls ? gate.secure : gate.plain
  const failed = front.failures.length
  const peer = isTls ? await dialTls(front.port) : await dialPlain(front.port)
  for (const piece of pieces) {
    peer.write(piece)
    await new Promise(setImmediate)
  }
  const end = await Promise.race([
    peer.closed,
    new Promise<'open'>((resolve) => setTimeout(resolve, 5000, 'open')),
  ])
  peer.socket.destroy()
  const { whole, rest } = wholeRequests(steady(app.takeReceived()))
  // The robust lane has read what is behind a request by the time its answer breaks off, the fast lane has not.
  const isBrokenOff = whole.includes('/broken')
  const sightings = gate.sightings.slice(before).map(({ id: _, ...rest }) => ({ ...rest, seenAtMs: 0 }))
  return {
    answered: steady(peer.text).split(/(?=HTTP\/1\.1 \d)/),
    received: whole,
    isBroken: rest !== '' || isBrokenOff,
    isOpen: end === 'open',
    sightings,
    failures: front.failures.slice(failed).map(({ reason, code }) => `${reason} ${code}`),
  }
}

/** What differs by itself. */
function steady(text: string): string {
  return text
    .replace(/(Decision-Id: |decision_id"?:"?|Decision )[0-9a-f-]{36}/gi, '$1id')
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{22}\b/g, 'id')
    .replace(/Date: .* GMT/g, 'Date: now')
    .replace(/(X-Forwarded-Port: )\d+/g, '$1port')
    .replace(/(127\.0\.0\.1:)\d+/g, '$1port')
}

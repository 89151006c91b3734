import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { type Test, test } from 'tap'
import { Random } from '../../fuzz/mutate.ts'
import { until } from '../../until.ts'
import { type Gate, startGate } from '../test-gate.ts'
import { settingsFor } from '../upstream-fixture.ts'
import { CaseApp } from './case-app.ts'
import { FrameLog } from './frame-log.ts'
import { type ServerCase, serverCase } from './server-cases.ts'
import { KNOWN_DIFFERENCES } from './server-differences.ts'
import { Line, type Outcome, type Played } from './server-line.ts'

/** `H2_CASES=100000 npx tap --timeout=7200 test/proxy/h2/servers.test.ts` sends so many requests; H2_SEED has others. */
const CASES = Number(process.env['H2_CASES'] ?? 1000)
const SEED = Number(process.env['H2_SEED'] ?? 20_261_126)
const PAIRS = 8
/** Cases at a time on one connection. */
const TOGETHER_MAX = 5
const UNKNOWN_SHOWN = 20

test('HTTP/2: our own server and node:http2 do the same with any request', {
  timeout: 7_200_000,
}, async (t) => {
  const own = await startServer(t, 'own')
  const node = await startServer(t, 'node')
  const tally = new Tally()
  let next = 0
  const work = async (isTls: boolean): Promise<void> => {
    const lines = [own, node].map(({ logs, app }) => new Line(isTls ? logs.secure : logs.plain, isTls, app))
    while (next < CASES) {
      const count = Math.min(CASES - next, 1 + (next % TOGETHER_MAX))
      const plans = Array.from({ length: count }, () => planOf(SEED + next++))
      const [ours, theirs] = await Promise.all(lines.map((line) => line.play(plans)))
      for (const [index, plan] of plans.entries()) tally.add(plan, ours![index]!, theirs![index]!)
      for (const { gate } of [own, node]) forget(gate)
    }
    for (const line of lines) await line.end()
  }
  await Promise.all(Array.from({ length: PAIRS }, (_, index) => work(index % 2 === 0)))
  await until(() => [own, node].every(({ gate }) => streamsOf(gate) === 0))
  t.comment(tally.text)
  const stalls = [own, node].map(({ logs }) => [...logs.secure.stalls, ...logs.plain.stalls])
  t.comment(
    `stalls of the client: ${stalls[0]!.length} with our server, ${stalls[1]!.length} with node:http2`,
  )
  for (const frames of stalls.flat()) t.comment(frames)
  assert.deepEqual(tally.unknown.slice(0, UNKNOWN_SHOWN), [])
  // It was worth it: there was an answer of each kind.
  if (CASES < 400) return
  const { fates } = tally
  assert.ok(
    ['200', '204', '304', '400', '403', '431', '503', 'left'].every((fate) => fates.has(fate)),
    tally.text,
  )
})

/** Counts the cases by their outcome. */
class Tally {
  readonly fates = new Map<string, number>()
  /** Differences that are not listed. */
  readonly unknown: string[] = []
  readonly #known = new Map<string, number>()

  get text(): string {
    return [this.fates, this.#known]
      .map((map) => JSON.stringify(Object.fromEntries([...map].toSorted())))
      .join(', ')
  }

  add(plan: ServerCase, { frames: ownFrames, ...own }: Played, { frames, ...node }: Played): void {
    count(this.fates, plan.request.reset === null ? statusOf(own) : 'left')
    if (isDeepStrictEqual(own, node)) return
    const known = KNOWN_DIFFERENCES.find(({ explains }) => explains(plan, own, node))
    if (known !== undefined) return count(this.#known, known.name)
    const texts = [...[plan, own, node].map((part) => JSON.stringify(part)), ownFrames(), frames()]
    this.unknown.push(`H2_CASES=1 H2_SEED=${plan.seed}: ${texts.join('\n')}`)
  }
}

function statusOf({ heads, code }: Outcome): string {
  const final = heads.find(([name, status]) => name === ':status' && !status!.startsWith('1'))
  return final?.[1] ?? `reset ${code}`
}

function count(map: Map<string, number>, name: string): void {
  map.set(name, (map.get(name) ?? 0) + 1)
}

function planOf(seed: number): ServerCase {
  // Seeds that follow one another begin alike.
  const random = new Random(seed * 2_654_435_761)
  for (let i = 0; i < 3; i++) random.below(2)
  return serverCase(random, seed)
}

function streamsOf({ secure, plain }: Gate): number {
  return secure.listener.counts.streams + plain.listener.counts.streams
}

/** A long run would hold everything that it has ever sent. */
function forget({ secure, plain, sightings, done }: Gate): void {
  for (const list of [secure.exchanges, plain.exchanges, secure.failures, plain.failures, sightings, done])
    (list as unknown[]).length = 0
}

interface Server {
  readonly gate: Gate
  readonly app: CaseApp
  readonly logs: { readonly secure: FrameLog; readonly plain: FrameLog }
}

async function startServer(t: Test, server: 'own' | 'node'): Promise<Server> {
  const app = await CaseApp.start(t)
  const policy = {
    rules: [
      { name: 'blocked', when: { path: '/blocked' }, action: 'block' },
      { name: 'moved', when: { path: '/moved' }, action: { redirect: { to: '/app' } } },
    ],
  }
  // On a busy machine, 5 s are not enough for some of 100,000.
  const upstreams = [settingsFor([app.url], { retries: 0, headTimeoutMs: 60_000 })]
  const limits = { h2ResetBurst: 1_000_000, requestsPerConnectionMax: 1_000_000 }
  const gate = await startGate(t, { upstreams, policy, limits, options: { http2: server } })
  const secure = await FrameLog.start(t, gate.secure.port, true)
  const plain = await FrameLog.start(t, gate.plain.port, false)
  return { gate, app, logs: { secure, plain } }
}

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, type Owner } from '../store/databases.ts'
import { type Answering, HookReceiver } from './webhook-receiver.ts'
import { WebhookSite } from './webhook-site.ts'

export interface DrillOptions {
  readonly kind: DatabaseKind
  readonly events: number
  /** Of management, at once. */
  readonly processes: number
  /** One of them is killed so long, about, after it has come up. */
  readonly killMs: number
  readonly killsMax?: number
}

export interface Drilled {
  readonly kills: number
  readonly seconds: number
  /** That came more than once, at all healthy receivers. */
  readonly repeated: number
  /** The largest process in each quarter of the time, in MiB. */
  readonly sizes: readonly number[]
}

/**
 * Adds events while receivers do what receivers do, and management processes are killed with -9 again and again: every
 * event comes to every healthy receiver at least once, verified, in the order of its subject, and with the same id.
 */
export async function webhookDrill(t: Owner, options: DrillOptions): Promise<Drilled> {
  const { kind, events, processes } = options
  const url = await freshUrl(kind, t)
  const receivers = await registered(t, url)
  const started = performance.now()
  const herd = new Herd(url, options)
  t.teardown(() => herd.end('SIGKILL'))
  herd.start()
  const healthy = [...receivers].flatMap(([name, receiver]) => (HEALTHY.has(name) ? [receiver] : []))
  const expected = events * processes
  const untilMs = Date.now() + 60_000 + expected * 60
  const counts = () => healthy.map((receiver) => new Set(receiver.ids).size)
  while (!(herd.added === expected && counts().every((count) => count === expected))) {
    assert.ok(Date.now() < untilMs, `in vain: ${herd.added} added, ${counts()} delivered of ${expected}`)
    await wait(100)
  }
  await herd.end('SIGTERM')
  for (const [name, receiver] of receivers) {
    assert.deepEqual(receiver.unverified.slice(0, 3), [], name)
    for (const { id, body } of receiver.all.slice(0, 100)) assert.ok(id.endsWith(`_${body.data.number}`))
  }
  for (const receiver of [receivers.get('fast')!, receivers.get('slow')!]) checkOrder(receiver)
  const repeated = healthy.reduce((sum, { all }) => sum + all.length - expected, 0)
  const seconds = (performance.now() - started) / 1000
  return { kills: herd.kills, seconds, repeated, sizes: herd.quarters() }
}

/** One webhook to each kind of receiver. */
async function registered(t: Owner, url: string): Promise<ReadonlyMap<string, HookReceiver>> {
  const store = await Store.open(url)
  const undoings: (() => unknown)[] = []
  const site = await WebhookSite.start({ teardown: (undo) => void undoings.push(undo) }, store)
  const receivers = new Map<string, HookReceiver>()
  for (const [name, answer] of Object.entries(RECEIVERS)) {
    const receiver = await HookReceiver.start(t, answer)
    receiver.secret = (await site.webhook(receiver.url)).secret
    receivers.set(name, receiver)
  }
  for (const undo of undoings.toReversed()) await undo()
  await store.close()
  return receivers
}

/** Whatever has come twice: that it came first is in the order of its subject. */
function checkOrder({ all }: HookReceiver): void {
  const last = new Map<string, number>()
  const seen = new Set<string>()
  for (const { id, body } of all) {
    const { subject, number } = body.data
    if (seen.has(id)) continue
    seen.add(id)
    assert.ok((last.get(subject) ?? -1) < number, `${id} came behind one that is later`)
    last.set(subject, number)
  }
}

/** The processes, each of which is started again when it has been killed. */
class Herd {
  readonly #url: string
  readonly #options: DrillOptions
  readonly #children = new Map<number, ChildProcess>()
  /** They have said something. */
  readonly #up = new WeakSet<ChildProcess>()
  readonly #next: number[]
  readonly #sizes: number[] = []
  #loop: Promise<void> = Promise.resolve()
  #isOver = false
  kills = 0

  constructor(url: string, options: DrillOptions) {
    this.#url = url
    this.#options = options
    this.#next = Array.from({ length: options.processes }, () => 0)
  }

  /** That were acknowledged. */
  get added(): number {
    return this.#next.reduce((sum, next) => sum + next, 0)
  }

  start(): void {
    for (const index of this.#next.keys()) this.#spawn(index)
    this.#loop = this.#killing()
  }

  quarters(): readonly number[] {
    const length = Math.ceil(this.#sizes.length / 4)
    return [0, 1, 2, 3].map((quarter) =>
      Math.round(Math.max(0, ...this.#sizes.slice(quarter * length, (quarter + 1) * length)) / 2 ** 20),
    )
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#isOver = true
    await this.#loop
    await Promise.all(
      [...this.#children.values()].map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, 'exit')
        child.kill(signal)
        await ended
      }),
    )
  }

  async #killing(): Promise<void> {
    const { processes, killMs, killsMax = Number.POSITIVE_INFINITY } = this.#options
    while (this.kills < killsMax) {
      const index = Math.floor(Math.random() * processes)
      const child = this.#children.get(index)!
      const delayMs = killMs * (0.5 + Math.random())
      for (let upMs = 0; upMs < delayMs; upMs += this.#up.has(child) ? 50 : 0) {
        if (this.#isOver) return
        await wait(50)
      }
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      this.kills++
      if (!this.#isOver) this.#spawn(index)
    }
  }

  #spawn(index: number): void {
    const file = fileURLToPath(new URL('webhook-process.ts', import.meta.url))
    const range = ['--from', String(this.#next[index]), '--to', String(this.#options.events)]
    const child = spawn(process.execPath, [file, '--url', this.#url, '--name', `p${index}`, ...range], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#children.set(index, child)
    createInterface({ input: child.stdout! }).on('line', (line) => {
      this.#up.add(child)
      const [what, number] = line.split(' ')
      if (what === 'added') this.#next[index] = Number(number) + 1
      if (what === 'size') this.#sizes.push(Number(number))
    })
  }
}

const FAILURES: readonly ((response: ServerResponse) => unknown)[] = [
  (response) => response.writeHead(500).end(),
  (response) => response.writeHead(429, { 'retry-after': '1' }).end(),
  (response) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
  (response) => response.destroy(),
  () => undefined,
]
const RECEIVERS: Readonly<Record<string, Answering>> = {
  fast: (response) => response.end(),
  slow: (response) => setTimeout(() => response.end(), 20),
  /** It has its moments. */
  flaky: (response, number) => {
    if (number % 10 !== 0) response.end()
    else FAILURES[(number / 10) % FAILURES.length]!(response)
  },
  endless: (response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
      if (!response.destroyed) response.once('drain', more)
    }
    more()
  },
  failing: (response) => response.writeHead(500).end('no'),
  busy: (response) => response.writeHead(429, { 'retry-after': '2' }).end(),
  hanging: () => undefined,
  redirecting: (response) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
  gone: (response) => response.writeHead(410).end(),
}
/** They take everything, sooner or later. */
const HEALTHY: ReadonlySet<string> = new Set(['fast', 'slow', 'flaky', 'endless'])

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      events: { type: 'string', default: '10000' },
      database: { type: 'string', default: 'sqlite' },
      processes: { type: 'string' },
      'kill-ms': { type: 'string', default: '4000' },
    },
  })
  const kind = KINDS.find((each) => each === values.database)!
  const processes = Number(values.processes ?? (kind === 'sqlite' ? 1 : 2))
  const work: (() => unknown)[] = []
  try {
    const events = Math.ceil(Number(values.events) / processes)
    const options = { kind, processes, events, killMs: Number(values['kill-ms']) }
    const { kills, seconds, repeated, sizes } = await webhookDrill(
      { teardown: (each) => work.unshift(each) },
      options,
    )
    const [first, , , last] = sizes as [number, number, number, number]
    assert.ok(last < first * 1.5 + 64, `it grows: ${sizes}`)
    process.stdout.write(
      `${kind}: ${events * processes} events, ${processes} process(es) killed ${kills} times in ${seconds.toFixed(0)} s; ` +
        `all came to ${HEALTHY.size} receivers, ${repeated} more than once; largest process by quarter: ${sizes.join(', ')} MiB\n`,
    )
  } finally {
    for (const each of work) await each()
  }
}

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import cluster, { type Worker as Child } from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { Fault } from '../../shared/fault.ts'
import type { Log, LogLevel } from '../../shared/log.ts'
import { departed, type MetricsReading } from '../../shared/metrics.ts'
import type { Channel, ChannelMessage, LocalManageBus } from '../../plane/local-bus.ts'
import { NO_WORKER, type UnreadyReason } from '../../plane/readiness.ts'
import type { WorkerStatus } from '../../plane/worker-status.ts'
import type { DataPlane, ListenAddresses, LiveState } from './data-plane.ts'
import type { InvestigationDesk } from '../request/investigation-line.ts'
import { UpstreamLog } from '../upstream/upstream-log.ts'
import type { WorkerSettings } from './worker-settings.ts'
import type { FromWorker, ToWorker } from './worker-messages.ts'
import type { ListenAddress } from '../../shared/listen-address.ts'

export interface PoolTimes {
  readonly beatMs?: number
  readonly backOffMs?: number
}

export interface WorkerPoolCounts {
  /** The number of workers that accept connections now. */
  readonly listening: number
  /** Workers that died and were replaced. */
  readonly restarts: number
}

/** What a pool is given to work with. */
export interface PoolServices {
  readonly bus: LocalManageBus
  readonly log: Log
  /** `null`: proofs are not checked. */
  readonly desk: InvestigationDesk | null
}

/**
 * Workers in their own processes on one listening socket. This process binds it, shares it and never reads
 * from it (SCHED_NONE). Connections wait in one queue, so a worker that exits only takes its own with it. A
 * worker that dies is replaced at once or, if it keeps dying, after a growing pause. Node closes the socket
 * with the last worker: connections are then refused until the next one listens.
 */
export class WorkerPool implements DataPlane {
  readonly #log: Log
  readonly #bus: LocalManageBus
  readonly #desk: InvestigationDesk | null
  readonly #slots: Slot[]
  readonly #upstreamLog: UpstreamLog
  #settings: WorkerSettings
  readonly #started = Promise.withResolvers<void>()
  readonly #beat: NodeJS.Timeout
  #state: LiveState | null = null
  #addresses: ListenAddresses | null = null
  #departed: MetricsReading = []
  #restarts = 0
  #beats = 0
  #readings = 0
  #hasStarted = false
  #isDraining = false

  constructor(
    size: number,
    settings: WorkerSettings,
    { bus, log, desk }: PoolServices,
    { beatMs = BEAT_MS, backOffMs = BACK_OFF_MS }: PoolTimes = {},
  ) {
    this.#log = log
    this.#upstreamLog = new UpstreamLog(log)
    this.#bus = bus
    this.#desk = desk
    this.#settings = settings
    this.#slots = Array.from({ length: size }, (_, number) => new Slot(number, backOffMs))
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({ exec: WORKER_PROCESS, args: [], serialization: 'advanced' })
    this.#beat = setInterval(() => this.#look(), beatMs)
    process.on('exit', this.#leave)
  }

  get counts(): WorkerPoolCounts {
    return {
      listening: this.#slots.filter(({ isListening }) => isListening).length,
      restarts: this.#restarts,
    }
  }

  /** The process ids of the current workers. */
  get pids(): readonly number[] {
    return this.#slots.flatMap(({ child }) => child?.process.pid ?? [])
  }

  async start(state: LiveState): Promise<ListenAddresses> {
    this.#state = state
    const { listen, plainListen } = this.#settings
    this.#addresses = {
      listen: await withPort(listen),
      plainListen: plainListen === null ? null : await withPort(plainListen),
    }
    for (const slot of this.#slots) this.#fork(slot)
    await this.#started.promise
    return this.#addresses
  }

  use(state: LiveState): void {
    this.#state = state
    for (const { child } of this.#slots) if (child !== null) send(child, { kind: 'worker:use', state })
  }

  /** Later workers start with this level. */
  logAt(level: LogLevel): void {
    this.#settings = { ...this.#settings, log: { ...this.#settings.log, level } }
    for (const { child } of this.#slots) if (child !== null) send(child, { kind: 'worker:log-at', level })
  }

  workers(): readonly WorkerStatus[] {
    return this.#slots.map((slot) => slot.status)
  }

  unready(): readonly UnreadyReason[] {
    const listening = this.#slots.filter(({ isListening }) => isListening)
    if (listening.length === 0) return [NO_WORKER]
    // One ready worker is enough. If none is, their reasons are the same.
    return listening.some(({ unready }) => unready.length === 0) ? [] : listening[0]!.unready
  }

  /** If a worker does not answer in time, its last reading is used. */
  async read(): Promise<readonly MetricsReading[]> {
    await Promise.all(this.#slots.map((slot) => this.#ask(slot)))
    return [this.#departed, ...this.#slots.map(({ reading }) => reading)]
  }

  async drain(deadlineMs: number): Promise<void> {
    this.#isDraining = true
    for (const slot of this.#slots) {
      clearTimeout(slot.replacement)
      if (slot.child !== null) send(slot.child, { kind: 'worker:drain', deadlineMs })
    }
    const late = setTimeout(() => this.kill(), deadlineMs + EXIT_MS)
    await Promise.all(this.#slots.map((slot) => slot.gone?.promise))
    clearTimeout(late)
    clearInterval(this.#beat)
    process.off('exit', this.#leave)
  }

  kill(): void {
    this.#isDraining = true
    for (const { child } of this.#slots) child?.process.kill('SIGKILL')
  }

  /**
   * When the primary exits, serving workers finish their connections. A worker that is still starting is
   * killed: it could not get its settings.
   */
  readonly #leave = (): void => {
    for (const { child, isListening } of this.#slots) if (!isListening) child?.process.kill('SIGKILL')
  }

  #fork(slot: Slot): void {
    const child = cluster.fork()
    slot.begin(child)
    this.#bus.attach(channelTo(child))
    this.#desk?.attach(channelTo(child))
    child.on('message', (message: FromWorker) => this.#receive(slot, child, message))
    child.once('exit', (code, signal) => this.#exited(slot, code, signal))
    child.on('error', (error) => {
      this.#log.warn('a worker cannot be reached', { worker: slot.number, error })
      if (child.process.pid === undefined) this.#exited(slot, null, 'never born') // no 'exit' follows
    })
  }

  #receive(slot: Slot, child: Child, message: FromWorker): void {
    slot.silentBeats = 0
    switch (message.kind) {
      case 'worker:loaded':
        assert(this.#state !== null)
        return void send(child, {
          kind: 'worker:start',
          settings: { ...this.#settings, ...this.#addresses },
          state: this.#state,
        })
      case 'worker:listening':
        return this.#listening(slot)
      case 'worker:failed':
        slot.failure = new Fault(message.code, message.message)
        return this.#started.reject(slot.failure)
      case 'worker:alive':
        slot.unready = message.unready
        this.#upstreamLog.heard(slot.number, message.unhealthy)
        slot.snapshot = message.snapshot
        slot.dropped = message.dropped
        return
      case 'worker:reading':
        slot.reading = message.reading
        return slot.answered(message.number)
      case 'worker:bye':
        return
    }
  }

  #listening(slot: Slot): void {
    slot.isListening = true
    slot.listeningSinceMs = performance.now()
    if (this.#slots.every(({ isListening }) => isListening)) {
      this.#hasStarted = true
      this.#started.resolve()
    }
  }

  #exited(slot: Slot, code: number | null, signal: string | null): void {
    const { number: worker, reading, failure } = slot
    const pauseMs = slot.end(performance.now())
    this.#departed = departed([this.#departed, reading])
    if (this.#isDraining) return
    this.#started.reject(new Fault('WORKER_DIED', `a worker died before it listened (${signal ?? code})`))
    if (!this.#hasStarted) return // the rejection of start() reports it, and its caller decides
    this.#restarts++
    this.#log.error('a worker died', { worker, code, signal, ...(failure && { error: failure }), pauseMs })
    slot.replacement = setTimeout(() => this.#fork(slot), pauseMs)
  }

  /** A worker that is silent for long hangs: it serves no client, and connections wait for it. */
  #look(): void {
    this.#beats++
    for (const slot of this.#slots) {
      if (slot.child === null) continue
      if (this.#beats % READING_BEATS === 0) void this.#ask(slot)
      const silentBeatsMax = slot.isListening ? SILENT_BEATS_MAX : STARTING_BEATS_MAX
      if (++slot.silentBeats !== silentBeatsMax) continue
      this.#log.error('a worker hangs and is killed', { worker: slot.number })
      slot.child.process.kill('SIGKILL')
    }
  }

  #ask(slot: Slot): Promise<void> {
    const { child, isListening } = slot
    if (child === null || !isListening) return Promise.resolve()
    const number = ++this.#readings
    if (!send(child, { kind: 'worker:read', number })) return Promise.resolve()
    return slot.answer(number)
  }
}

/** A worker's place, with the state of the current worker. */
class Slot {
  readonly number: number
  child: Child | null = null
  gone: PromiseWithResolvers<void> | null = null
  isListening = false
  listeningSinceMs = 0
  silentBeats = 0
  unready: readonly UnreadyReason[] = []
  snapshot: number | null = null
  dropped = 0
  reading: MetricsReading = []
  failure: Fault | null = null
  replacement: NodeJS.Timeout | undefined
  readonly #questions = new Map<number, () => void>()
  readonly #backOffMs: number
  #crashes = 0

  constructor(number: number, backOffMs: number) {
    this.number = number
    this.#backOffMs = backOffMs
  }

  begin(child: Child): void {
    this.child = child
    this.gone = Promise.withResolvers()
    this.silentBeats = 0
    this.failure = null
  }

  get status(): WorkerStatus {
    const { number, child, isListening, snapshot, dropped } = this
    const unready = this.unready.map(({ detail }) => detail)
    const state = isListening ? 'serving' : child === null ? 'gone' : 'starting'
    const sinceMs = isListening ? Math.round(performance.timeOrigin + this.listeningSinceMs) : null
    return { number, pid: child?.process.pid ?? null, state, sinceMs, snapshot, dropped, unready }
  }

  /** Returns the pause before the next worker. */
  end(nowMs: number): number {
    const wasStable = this.isListening && nowMs - this.listeningSinceMs >= STABLE_MS
    this.#crashes = wasStable ? 0 : this.#crashes + 1
    this.child = null
    this.isListening = false
    this.unready = []
    this.snapshot = null
    this.dropped = 0
    this.reading = []
    for (const answered of this.#questions.values()) answered()
    this.#questions.clear()
    this.gone?.resolve()
    return this.#crashes <= 1 ? 0 : Math.min(this.#backOffMs * 2 ** (this.#crashes - 2), BACK_OFF_MS_MAX)
  }

  answer(number: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, READING_MS)
    this.#questions.set(number, () => {
      clearTimeout(timer)
      resolve()
    })
    return promise.then(() => void this.#questions.delete(number))
  }

  answered(number: number): void {
    this.#questions.get(number)?.()
  }
}

/**
 * Finds a port chosen by the system. All workers need the same one, including replacements that start when no
 * process holds it any more.
 */
async function withPort(listen: ListenAddress): Promise<ListenAddress> {
  if (listen.port !== 0) return listen
  const probe = createServer().listen({ host: listen.host, port: 0 })
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return { host: listen.host, port }
}

function send(child: Child, message: ToWorker | ChannelMessage): boolean {
  // If the worker dies right now, its `exit` event reports it.
  if (child.isConnected()) child.send(message, () => undefined)
  return child.isConnected()
}

function channelTo(child: Child): Channel {
  return {
    isWire: true,
    send: (message) => send(child, message),
    onMessage: (listener) => void child.on('message', (message: ChannelMessage) => listener(message)),
    onClose: (listener) => void child.once('disconnect', listener),
  }
}

/** Next to this file, both in src/ and in dist/. */
const WORKER_PROCESS = fileURLToPath(
  new URL(`./worker-process${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)
const BEAT_MS = 1_000
/**
 * Far longer than any pause of a working process. Counted in beats, so that a machine that slept blames no
 * worker.
 */
const SILENT_BEATS_MAX = 30
/** Allows for a machine that starts many things at once. */
const STARTING_BEATS_MAX = 120
/** A killed worker loses only what it counted since the last reading. */
const READING_BEATS = 5
/** The longest wait of a scraper for a busy worker. */
const READING_MS = 1_000
/** A worker that lived this long did not die of its settings. */
const STABLE_MS = 10_000
const BACK_OFF_MS = 200
const BACK_OFF_MS_MAX = 30_000
/** How long a drained worker may take to exit. */
const EXIT_MS = 2_000

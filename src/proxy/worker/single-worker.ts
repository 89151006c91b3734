import type { Log, LogLevel } from '../../shared/log.ts'
import type { MetricsReading } from '../../shared/metrics.ts'
import { channelPair, type LocalManageBus, LocalProxyBus } from '../../plane/local-bus.ts'
import { NO_WORKER, type UnreadyReason } from '../../plane/readiness.ts'
import type { WorkerStatus } from '../../plane/worker-status.ts'
import { type InvestigationDesk, RemoteInvestigator } from '../request/investigation-line.ts'
import type { DataPlane, ListenAddresses, LiveState } from './data-plane.ts'
import { UpstreamLog } from '../upstream/upstream-log.ts'
import type { Tap } from '../connection/tap.ts'
import { Worker } from './worker.ts'
import type { WorkerSettings } from './worker-settings.ts'

/** One worker in this process: the smallest setup, for a sidecar. */
export class SingleWorker implements DataPlane {
  readonly #settings: WorkerSettings
  readonly #bus: LocalManageBus
  readonly #log: Log
  readonly #desk: InvestigationDesk | null
  readonly #tap: Tap | null
  #worker: Worker | null = null
  #sinceMs: number | null = null
  #beat: NodeJS.Timeout | null = null
  readonly #upstreamLog: UpstreamLog

  constructor(
    settings: WorkerSettings,
    bus: LocalManageBus,
    log: Log,
    desk: InvestigationDesk | null = null,
    tap: Tap | null = null,
  ) {
    this.#settings = settings
    this.#bus = bus
    this.#log = log
    this.#upstreamLog = new UpstreamLog(log)
    this.#desk = desk
    this.#tap = tap
  }

  async start(state: LiveState): Promise<ListenAddresses> {
    const [up, down] = channelPair()
    this.#bus.attach(up)
    const investigator = this.#desk === null ? null : new RemoteInvestigator(down)
    this.#desk?.attach(up)
    const bus = new LocalProxyBus(down)
    this.#worker = await Worker.start(this.#settings, state, {
      bus,
      log: this.#log,
      investigator,
      tap: this.#tap,
    })
    this.#sinceMs = Date.now()
    this.#beat = setInterval(() => this.#look(), BEAT_MS).unref()
    return this.#worker.addresses
  }

  use(state: LiveState): void {
    this.#worker?.use(state)
  }

  logAt(level: LogLevel): void {
    this.#log.setLevel(level)
  }

  workers(): readonly WorkerStatus[] {
    const worker = this.#worker
    const state = worker === null ? 'starting' : 'serving'
    const snapshot = worker?.snapshot ?? null
    const dropped = worker?.dropped ?? 0
    const unready = this.unready().map(({ detail }) => detail)
    return [{ number: 0, pid: process.pid, state, sinceMs: this.#sinceMs, snapshot, dropped, unready }]
  }

  unready(): readonly UnreadyReason[] {
    return this.#worker?.unready() ?? [NO_WORKER]
  }

  async read(): Promise<readonly MetricsReading[]> {
    return this.#worker === null ? [] : [this.#worker.read()]
  }

  async drain(deadlineMs: number): Promise<void> {
    if (this.#beat !== null) clearInterval(this.#beat)
    await this.#worker?.drain(deadlineMs)
  }

  kill(): void {
    // It ends with this process.
  }

  #look(): void {
    if (this.#worker !== null) this.#upstreamLog.heard(0, this.#worker.unhealthyTargets())
  }
}

/** The same interval as for a worker in its own process. */
const BEAT_MS = 500

import type { Log, LogLevel } from '../log.ts'
import type { MetricsReading } from '../metrics.ts'
import { channelPair, type LocalManageBus, LocalProxyBus } from '../plane/local-bus.ts'
import type { DataPlane, ListenAddresses, LiveState } from './data-plane.ts'
import type { Tap } from './tap.ts'
import { Worker, type WorkerSettings } from './worker.ts'

/** One worker in this very process: the smallest there is, for a sidecar. */
export class SingleWorker implements DataPlane {
  readonly #settings: WorkerSettings
  readonly #bus: LocalManageBus
  readonly #log: Log
  readonly #tap: Tap | null
  #worker: Worker | null = null

  constructor(settings: WorkerSettings, bus: LocalManageBus, log: Log, tap: Tap | null = null) {
    this.#settings = settings
    this.#bus = bus
    this.#log = log
    this.#tap = tap
  }

  async start(state: LiveState): Promise<ListenAddresses> {
    const [up, down] = channelPair()
    this.#bus.attach(up)
    this.#worker = await Worker.start(this.#settings, state, new LocalProxyBus(down), this.#log, this.#tap)
    return this.#worker.addresses
  }

  use(state: LiveState): void {
    this.#worker?.use(state)
  }

  logAt(level: LogLevel): void {
    this.#log.setLevel(level)
  }

  unready(): readonly string[] {
    return this.#worker?.unready() ?? ['no worker is running']
  }

  async read(): Promise<readonly MetricsReading[]> {
    return this.#worker === null ? [] : [await this.#worker.read()]
  }

  async drain(deadlineMs: number): Promise<void> {
    await this.#worker?.drain(deadlineMs)
  }

  kill(): void {
    // It goes with this process.
  }
}

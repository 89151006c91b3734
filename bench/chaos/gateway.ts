import { setTimeout as wait } from 'node:timers/promises'
import { until } from '../soak/until.ts'
import { isAlive, startTicksOf, stateOf } from '../soak/sockets.ts'
import type { SoakFiles } from '../soak/files.ts'
import { DRAIN_S, type GatewayMetrics, SoakedGateway, type Started } from '../soak/gateway.ts'
import type { Trouble } from '../soak/ledger.ts'
import { isUnheard } from './disturbance.ts'

/** The ports that a gateway is told to have; 0 is any. */
export interface Ports {
  readonly listenPort: number
  readonly managePort: number
}

/** A gateway with a supervisor that restarts it on the same ports when it is gone. */
export class ChaosGateway {
  /** Starts that came to nothing, and were tried again. */
  failedStarts = 0
  /** Those whose primary was killed: their workers end what they have, and so each connection behind its last answer. */
  readonly drains: Trouble[] = []
  /** Every process there was, and when it began: a number is given to others in time. */
  readonly #began = new Map<number, string>()
  readonly #files: SoakFiles
  readonly #config: (ports: Ports) => string
  readonly #how: Partial<Started>
  #current: SoakedGateway
  #restart: Promise<void> | null = null
  #isKilled = false

  static async start(
    files: SoakFiles,
    config: (ports: Ports) => string,
    how: Partial<Started>,
  ): Promise<ChaosGateway> {
    const first = await SoakedGateway.start(files, config({ listenPort: 0, managePort: 0 }), how)
    return new ChaosGateway(files, config, how, first)
  }

  private constructor(
    files: SoakFiles,
    config: (ports: Ports) => string,
    how: Partial<Started>,
    first: SoakedGateway,
  ) {
    this.#files = files
    this.#config = config
    this.#how = how
    this.#current = first
    this.notePids()
  }

  get current(): SoakedGateway {
    return this.#current
  }

  get port(): number {
    return this.#current.port
  }

  get manageUrl(): string {
    return `http://127.0.0.1:${this.#current.managePort}`
  }

  get workers(): readonly number[] {
    return this.isStarting || !isAlive(this.#current.pid) ? [] : this.#current.workers.filter(isAlive)
  }

  /** It has been killed and does not serve yet. */
  get isStarting(): boolean {
    return this.#restart !== null
  }

  metrics(): Promise<GatewayMetrics> {
    return this.#current.metrics()
  }

  /** Those of all its processes that still exist. */
  get processes(): readonly number[] {
    return [...this.#began].filter(([pid, began]) => startTicksOf(pid) === began).map(([pid]) => pid)
  }

  /** Remembers who there is. */
  notePids(): void {
    for (const pid of [this.#current.pid, ...this.workers]) {
      const began = startTicksOf(pid)
      if (began !== null) this.#began.set(pid, began)
    }
  }

  /** As by a machine that runs out of memory; resolves when it serves again. */
  async killAndRestart(): Promise<void> {
    // One that is on its way up is as good as killed.
    this.#restart ??= this.#killAndRestart().finally(() => {
      this.#restart = null
    })
    await this.#restart
    this.notePids()
  }

  /** Permanently, with every process that it started. */
  async kill(): Promise<void> {
    this.#isKilled = true
    await this.#restart?.catch(() => undefined)
    this.notePids()
    for (const pid of this.processes) process.kill(pid, 'SIGKILL')
    await this.#current.exit
    await until(() => this.processes.length === 0, GONE_MS_MAX)
  }

  async #killAndRestart(): Promise<void> {
    this.notePids()
    const { port: listenPort, managePort } = this.#current
    this.#current.signal('SIGKILL')
    const fromMs = Date.now()
    this.drains.push({
      ...{ name: 'a drain', fromMs, toMs: fromMs + DRAIN_S * 1000 },
      accountsFor: (failure, seen) => failure.connectedMs <= fromMs && isUnheard(failure, seen),
    })
    await this.#current.exit
    // A worker that is held cannot hear that it is alone, and no other process could listen on its port.
    for (const pid of this.processes) if (stateOf(pid) === 'T') process.kill(pid, 'SIGCONT')
    const deadlineMs = performance.now() + RESTART_MS_MAX
    while (!this.#isKilled) {
      try {
        const config = this.#config({ listenPort, managePort })
        this.#current = await SoakedGateway.start(this.#files, config, this.#how)
        return
      } catch (error) {
        this.failedStarts++
        if (performance.now() > deadlineMs) throw error
        await wait(RESTART_PAUSE_MS)
      }
    }
  }
}

const RESTART_MS_MAX = 30_000
const RESTART_PAUSE_MS = 200
const GONE_MS_MAX = 5000

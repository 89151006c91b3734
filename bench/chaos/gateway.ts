import { setTimeout as wait } from 'node:timers/promises'
import { isAlive, startTicksOf } from '../soak/sockets.ts'
import type { SoakFiles } from '../soak/files.ts'
import { type GatewayMetrics, SoakedGateway } from '../soak/gateway.ts'

/** The ports that a gateway is told to have; 0 is any. */
export interface Ports {
  readonly listenPort: number
  readonly managePort: number
}

/** A gateway that whoever looks after it starts anew when it is gone, on the ports that it had. */
export class ChaosGateway {
  /** Starts that came to nothing, and were tried again. */
  failedStarts = 0
  /** Every process there was, and when it began: a number is given to others in time. */
  readonly #began = new Map<number, string>()
  readonly #files: SoakFiles
  readonly #config: (ports: Ports) => string
  readonly #preloads: readonly string[]
  #current: SoakedGateway
  #isStarting = false

  static async start(
    files: SoakFiles,
    config: (ports: Ports) => string,
    preloads: readonly string[],
  ): Promise<ChaosGateway> {
    const first = await SoakedGateway.start(files, config({ listenPort: 0, managePort: 0 }), preloads)
    return new ChaosGateway(files, config, preloads, first)
  }

  private constructor(
    files: SoakFiles,
    config: (ports: Ports) => string,
    preloads: readonly string[],
    first: SoakedGateway,
  ) {
    this.#files = files
    this.#config = config
    this.#preloads = preloads
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
    return this.#isStarting || !isAlive(this.#current.pid) ? [] : this.#current.workers.filter(isAlive)
  }

  metrics(): Promise<GatewayMetrics> {
    return this.#current.metrics()
  }

  /** Those of all that there were that are still there. */
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
    this.notePids()
    const { port: listenPort, managePort } = this.#current
    this.#isStarting = true
    this.#current.signal('SIGKILL')
    await this.#current.exit
    const deadlineMs = performance.now() + RESTART_MS_MAX
    for (;;) {
      try {
        this.#current = await SoakedGateway.start(
          this.#files,
          this.#config({ listenPort, managePort }),
          this.#preloads,
        )
        break
      } catch (error) {
        this.failedStarts++
        if (performance.now() > deadlineMs) throw error
        await wait(RESTART_PAUSE_MS)
      }
    }
    this.#isStarting = false
    this.notePids()
  }
}

const RESTART_MS_MAX = 30_000
const RESTART_PAUSE_MS = 200

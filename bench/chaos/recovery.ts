import type { SoakFiles } from '../soak/files.ts'
import type { Route } from '../soak/plan.ts'
import type { Random } from '../soak/random.ts'
import { until } from '../soak/until.ts'
import type { Api } from './api.ts'
import { askApp } from './ask-app.ts'
import type { Estate } from './estate.ts'
import type { ChaosGateway } from './gateway.ts'
import type { ReadinessWatch } from './readiness.ts'

/** Finds out whether all is well: every way to the app, every worker, the probe, and the API with its database. */
export class Recovery {
  readonly #gateway: ChaosGateway
  readonly #files: SoakFiles
  readonly #readiness: ReadinessWatch
  readonly #estate: Estate
  readonly #api: Api
  readonly #random: Random
  readonly #workers: number
  /** Requests that were sent to find out; the app has answered them as any others. */
  asked = 0
  /** What was missing last, when something was. */
  lastMissing: string | null = null

  constructor(
    parts: {
      readonly gateway: ChaosGateway
      readonly files: SoakFiles
      readonly readiness: ReadinessWatch
      readonly estate: Estate
      readonly api: Api
      readonly random: Random
    },
    workers: number,
  ) {
    this.#gateway = parts.gateway
    this.#files = parts.files
    this.#readiness = parts.readiness
    this.#estate = parts.estate
    this.#api = parts.api
    this.#random = parts.random
    this.#workers = workers
  }

  /** What is still missing after that time; `null`: nothing. */
  async missing(withinMs: number): Promise<string | null> {
    let missing: string | null = null
    this.lastMissing = null
    const isWell = async () => {
      missing = await this.#look().catch((error: Error) => String(error.cause ?? error))
      this.lastMissing = missing ?? this.lastMissing
      return missing === null
    }
    await until(isWell, withinMs)
    this.#gateway.notePids()
    return missing
  }

  async #look(): Promise<string | null> {
    const metrics = await this.#gateway.metrics()
    const listening = metrics.sum('workers_listening')
    if (listening !== this.#workers) return `${listening} of ${this.#workers} workers listen`
    const stale = LOADED.find((part) => metrics.sum('reload_current', `what="${part}"`) !== 1)
    if (stale !== undefined) return `${stale}: the files are not what is in use`
    const { isReady, said } = await this.#readiness.ask()
    if (isReady !== true) return `it says that it is not ready: ${said}`
    for (const route of ['', 'h2c'] as const)
      for (let turn = 0; turn < ASKED_EACH; turn++) {
        const wrong = await this.#ask(route)
        if (wrong !== null) return `a request to /${route} fails: ${wrong}`
      }
    if (!(await this.#estate.make())) return `the API fails: ${this.#api.lastFailure}`
    return null
  }

  async #ask(route: Route): Promise<string | null> {
    this.asked++
    const { port } = this.#gateway
    const told = await askApp({ port, ca: this.#files.ca, route, random: this.#random })
    return typeof told === 'string' ? told : null
  }
}

/** What there is a metric of when it is not as its files say. */
const LOADED = ['policy', 'certificates', 'ticket-keys', 'signatures'] as const
/** More than there are workers, so that each is likely to be among them. */
const ASKED_EACH = 4

import type { SoakFiles } from '../soak/files.ts'
import type { Random } from '../soak/random.ts'
import { until } from '../soak/until.ts'
import type { Api } from './api.ts'
import { askApp } from './ask-app.ts'
import type { Estate } from './estate.ts'
import type { Fleet, Member } from './fleet-place.ts'
import type { ReadinessWatch } from './readiness.ts'
import type { Wishes } from './wishes.ts'

/** Finds out whether all is well in a fleet: one manager leads, the API takes what is new, and each worker goes by it. */
export class FleetRecovery {
  readonly #parts: FleetParts
  readonly #workers: number
  /** Requests that were sent to find out, and those that the app has answered. */
  asked = 0
  answered = 0
  /** What was missing last, when something was. */
  lastMissing: string | null = null
  /** Of the requests that are sent here. */
  #ja4: string | null = null

  constructor(parts: FleetParts, workers: number) {
    this.#parts = parts
    this.#workers = workers
  }

  /** What is still missing after that time; `null`: nothing. */
  async missing(withinMs: number): Promise<string | null> {
    let missing: string | null = null
    this.lastMissing = null
    let isChanged = false
    const isWell = async () => {
      missing = await this.#beforeChange()
      if (missing === null && !isChanged) {
        isChanged = await this.#change()
        if (!isChanged) missing = `the API fails: ${this.#parts.api.lastFailure}`
      }
      missing ??= await this.#afterChange()
      this.lastMissing = missing ?? this.lastMissing
      return missing === null
    }
    const orNot = () =>
      isWell().catch((error: Error) => {
        missing = String(error.cause ?? error)
        this.lastMissing = missing
        return false
      })
    await until(orNot, withinMs)
    for (const { gateway } of this.#members) gateway.notePids()
    return missing
  }

  get #members(): readonly Member[] {
    const { managers, proxies } = this.#parts.fleet
    return [...managers, ...proxies]
  }

  async #beforeChange(): Promise<string | null> {
    const { fleet, readiness } = this.#parts
    let leaders = 0
    for (const { name, gateway } of fleet.managers) {
      const metrics = await gateway.metrics()
      leaders += metrics.sum('leader')
      for (const up of ['bus_up', 'store_up'])
        if (metrics.sum(up) !== 1) return `${up} of ${name} is ${metrics.sum(up)}`
    }
    if (leaders !== 1) return `${leaders} managers lead`
    for (const { name, gateway } of fleet.proxies) {
      const metrics = await gateway.metrics()
      const listening = metrics.sum('workers_listening')
      if (listening !== this.#workers) return `${listening} of ${this.#workers} workers of ${name} listen`
      if (metrics.sum('bus_up') !== 1) return `bus_up of ${name} is ${metrics.sum('bus_up')}`
    }
    for (const [name, watch] of readiness) {
      const { isReady, said } = await watch.ask()
      if (isReady !== true) return `${name} says that it is not ready: ${said}`
    }
    return null
  }

  async #change(): Promise<boolean> {
    const { wishes, estate } = this.#parts
    this.#ja4 ??= await this.#findJa4()
    return (await estate.make()) && (await wishes.changePolicy()) && (await wishes.changeSignature(this.#ja4))
  }

  async #afterChange(): Promise<string | null> {
    const { fleet, wishes } = this.#parts
    for (const { name, gateway } of fleet.proxies)
      for (let turn = 0; turn < ASKED_EACH; turn++) {
        const { acknowledged } = wishes
        const view = await this.#ask(gateway.port)
        const missing =
          typeof view === 'string' ? `a request fails: ${view}` : wishes.missingIn(view, acknowledged)
        if (missing !== null) return `${name}: ${missing}`
      }
    return null
  }

  async #findJa4(): Promise<string> {
    const view = await this.#ask(this.#parts.fleet.proxies[0]!.gateway.port)
    if (typeof view === 'string' || view.ja4 === null) throw new Error(`a request fails: ${view}`)
    return view.ja4
  }

  async #ask(port: number) {
    const { files, random } = this.#parts
    this.asked++
    const view = await askApp({ port, ca: files.ca, route: '', random })
    if (typeof view !== 'string') this.answered++
    return view
  }
}

export interface FleetParts {
  readonly fleet: Fleet
  readonly files: SoakFiles
  /** By the name of the watched process. */
  readonly readiness: ReadonlyMap<string, ReadinessWatch>
  readonly api: Api
  readonly estate: Estate
  readonly wishes: Wishes
  readonly random: Random
}

/** More than there are workers, so that each is likely to be among them. */
const ASKED_EACH = 6

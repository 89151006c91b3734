import type { PaymentTerms } from '../../payment/payment-terms.ts'
import type { Log } from '../../shared/log.ts'
import type { ManageBus } from '../../plane/bus.ts'
import { type SnapshotDocument, snapshotOfApp } from '../../plane/snapshot.ts'
import { PolicyPart } from '../live-parts.ts'
import { Reloader } from '../reload.ts'

interface FleetSnapshotSettings {
  /** The app of every request of this proxy; `null`: by host. */
  readonly app: string | null
  readonly policyFile: string | null
  readonly upstreams: readonly string[]
  readonly payments: PaymentTerms
}

/**
 * The Snapshots of the managers as this proxy uses them. A proxy in front of one app uses only what is about this
 * app. Its `policy.file` then has the rules of the app, in place of those that the managers send for it: the rules
 * of the organisation stay around them.
 */
export class FleetSnapshots {
  readonly #settings: FleetSnapshotSettings
  readonly #bus: Pick<ManageBus, 'publish'>
  #newest: SnapshotDocument | null = null
  #number = 0
  /** The policy of the app, as JSON; `null`: the managers send it. */
  #own: string | null = null
  #reloaders: readonly Reloader<unknown>[] = []

  constructor(settings: FleetSnapshotSettings, bus: Pick<ManageBus, 'publish'>) {
    this.#settings = settings
    this.#bus = bus
  }

  /** Rejects with a Fault if the file is invalid. */
  async load(log: Log): Promise<void> {
    const { app, payments, policyFile, upstreams } = this.#settings
    if (app === null || policyFile === null) return
    const part = new PolicyPart(policyFile, { of: 'app', upstreams, payments }, (policy) =>
      this.#useOwn(policy),
    )
    const { value, reloader } = await Reloader.load(part, log)
    this.#useOwn(value)
    this.#reloaders = [reloader as Reloader<unknown>]
  }

  /** The parts that reload when files change. */
  get reloaders(): readonly Reloader<unknown>[] {
    return this.#reloaders
  }

  take(document: SnapshotDocument): void {
    this.#newest = document
    this.#publish(document)
  }

  #useOwn(policy: unknown): void {
    this.#own = JSON.stringify(policy ?? {})
    if (this.#newest !== null) this.#publish(this.#newest)
  }

  #publish(document: SnapshotDocument): void {
    const { app } = this.#settings
    // A changed file makes another Snapshot of the same document.
    this.#number = Math.max(document.number, this.#number + 1)
    const needed = { ...snapshotOfApp(document, app), number: this.#number }
    const own = this.#own === null ? {} : { appPolicies: [{ app: app!, document: this.#own }] }
    this.#bus.publish({ ...needed, ...own })
  }
}

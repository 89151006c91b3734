import type { App } from '../../apps/app.ts'
import type { CampaignList } from '../../classify/campaign/members.ts'
import type { SignatureSet } from '../../plane/signature-set.ts'
import { makeSnapshot, type SnapshotDocument } from '../../plane/snapshot.ts'
import type { AppPolicyText } from '../../plane/snapshot-policies.ts'

interface PublisherLinks {
  /** Sends a Snapshot to everything that judges requests. */
  publish(document: SnapshotDocument): void
  /** Rebuilds the signatures and calls `useSignatures` if that succeeds; never rejects. */
  remake(): Promise<void>
  nowMs(): number
  /** Whether the receiver of Sightings takes counts too. */
  readonly takesCounts: boolean
}

/** Makes a Snapshot of the policies, the signatures, the running campaigns and the apps whenever one of them changes. */
export class Publisher {
  readonly #links: PublisherLinks
  #number = 0
  #policy: unknown = null
  #signatures: SignatureSet | null = null
  #campaigns: CampaignList | null = null
  #apps: readonly App[] = []
  #appPolicies: readonly AppPolicyText[] = []
  #state: 'waiting' | 'started' | 'closed' = 'waiting'
  /** A nudge is pending. */
  #isNudged = false
  #isRunning = false
  #timer: NodeJS.Timeout | null = null

  constructor(links: PublisherLinks) {
    this.#links = links
  }

  /** Publishes the first Snapshot. */
  start(policy: unknown): void {
    this.#policy = policy
    this.#state = 'started'
    this.#publish()
    if (this.#isNudged) this.#wait()
  }

  usePolicy(policy: unknown): void {
    this.#policy = policy
    this.#publish()
  }

  useSignatures(signatures: SignatureSet): void {
    this.#signatures = signatures
    this.#publish()
  }

  useCampaigns(campaigns: CampaignList): void {
    this.#campaigns = campaigns.campaigns.length === 0 ? null : campaigns
    this.#publish()
  }

  useApps(apps: readonly App[]): void {
    this.#apps = apps
    this.#publish()
  }

  useAppPolicies(policies: readonly AppPolicyText[]): void {
    this.#appPolicies = policies
    this.#publish()
  }

  /**
   * Call it when the signatures in the database have changed. Nudges within a short time share one rebuild,
   * and only one runs at a time. A nudge during a rebuild causes another one.
   */
  nudge(): void {
    this.#isNudged = true
    if (this.#state === 'started' && !this.#isRunning) this.#wait()
  }

  /** Publishes the same parts again. Changes that no process announced would otherwise wait for the next one. */
  publishAgain(): void {
    this.#publish()
  }

  close(): void {
    this.#state = 'closed'
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #wait(): void {
    this.#timer ??= setTimeout(() => void this.#run(), NUDGED_WITHIN_MS)
  }

  async #run(): Promise<void> {
    this.#timer = null
    this.#isNudged = false
    this.#isRunning = true
    await this.#links.remake()
    this.#isRunning = false
    if (this.#isNudged && this.#state === 'started') this.#wait()
  }

  #publish(): void {
    if (this.#state !== 'started') return
    // Proxies that outlive this process reject a Snapshot whose number is not above their own.
    this.#number = Math.max(this.#number + 1, this.#links.nowMs())
    const madeAtMs = this.#links.nowMs()
    const { takesCounts } = this.#links
    const parts = {
      campaigns: this.#campaigns,
      apps: this.#apps,
      appPolicies: this.#appPolicies,
      takesCounts,
    }
    this.#links.publish(makeSnapshot(this.#number, this.#policy, madeAtMs, this.#signatures, parts))
  }
}

const NUDGED_WITHIN_MS = 20

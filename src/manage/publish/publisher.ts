import type { SignatureSet } from '../../plane/signature-set.ts'
import { makeSnapshot, type SnapshotDocument } from '../../plane/snapshot.ts'

export interface PublisherLinks {
  /** Hands a Snapshot to everybody who judges. */
  publish(document: SnapshotDocument): void
  /** Makes the signatures anew, and calls `useSignatures` if that works; never rejects. */
  remake(): Promise<void>
  nowMs(): number
}

/** Makes Snapshots of what the operator wants and of what is known, whenever one of them changes. */
export class Publisher {
  readonly #links: PublisherLinks
  #number = 0
  #policy: unknown = null
  #signatures: SignatureSet | null = null
  #state: 'waiting' | 'started' | 'closed' = 'waiting'
  /** Somebody has nudged, and it is not being seen to. */
  #isNudged = false
  #isRunning = false
  #timer: NodeJS.Timeout | null = null

  constructor(links: PublisherLinks) {
    this.#links = links
  }

  /** The first Snapshot. */
  start(policy: unknown, signatures: SignatureSet | null): void {
    this.#policy = policy
    this.#signatures = signatures
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

  /**
   * The database has other signatures now. What is nudged for within a moment is done in one go, one at a time; who
   * nudges while that is under way is seen to afterwards.
   */
  nudge(): void {
    this.#isNudged = true
    if (this.#state === 'started' && !this.#isRunning) this.#wait()
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
    // Proxies that have outlived this process take none with a number that is not above the one they have.
    this.#number = Math.max(this.#number + 1, this.#links.nowMs())
    this.#links.publish(makeSnapshot(this.#number, this.#policy, this.#links.nowMs(), this.#signatures))
  }
}

const NUDGED_WITHIN_MS = 20

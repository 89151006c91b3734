import { LRUCache } from 'lru-cache'
import { type Metrics, LabelledCounter } from '../../shared/metrics.ts'
import {
  type InquiryResult,
  type Inquiry,
  type Investigator,
  type SignatureUse,
  sizeOf,
} from '../keys/inquiry.ts'
import type { KeyDirectories } from './key-directories.ts'
import type { ReplayFloor } from './replay-floor.ts'
import { ReplayMemory } from './replay-memory.ts'

/** Looks up addresses. */
export interface PlaceFinder {
  /** Never rejects. `null`: unknown at the moment. */
  find(address: string): Promise<(InquiryResult & { readonly kind: 'place' }) | null>
  close(): void
}

export interface InvestigationParts {
  readonly directories: Pick<KeyDirectories, 'find' | 'close'>
  /** `null`: address lookups are off. */
  readonly places: PlaceFinder | null
  /** Called at the first use of a signature: most gateways never see one. */
  openFloor(): Promise<Pick<ReplayFloor, 'floorOf' | 'cover'>>
  nowMs(): number
}

/**
 * Answers inquiries of all workers in their one parent process and sends each result to all of them. No
 * request waits for it.
 */
export class Investigations implements Investigator {
  readonly #parts: InvestigationParts
  #uses: Promise<SignatureUses> | null = null
  #replays: ReplayMemory | null = null
  readonly #ofListed = new Subject()
  /** Strangers are stored apart, like addresses: a client can name any number of them. */
  readonly #ofStrangers = new Subject()
  readonly #ofPlaces = new Subject()
  readonly #claims = new LabelledCounter({ outcome: CLAIMS })
  #listener: (finding: InquiryResult) => void = () => undefined

  constructor(parts: InvestigationParts) {
    this.#parts = parts
  }

  onFinding(listener: (finding: InquiryResult) => void): void {
    this.#listener = listener
  }

  /** Current findings, for workers that start later. */
  known(): readonly InquiryResult[] {
    const nowMs = this.#parts.nowMs()
    return [this.#ofListed, this.#ofStrangers, this.#ofPlaces].flatMap((subject) => subject.known(nowMs))
  }

  ask(inquiry: Inquiry): void {
    const subject = this.#subjectOf(inquiry)
    const key = inquiry.kind === 'keys' ? inquiry.agentId : inquiry.address
    if (subject.underWay.has(key) || subject.underWay.size >= UNDER_WAY_MAX) return
    subject.underWay.add(key)
    void this.#find(inquiry).then((finding) => {
      subject.underWay.delete(key)
      if (finding === null) return
      subject.take(finding)
      this.#listener(finding)
    })
  }

  async claim(use: SignatureUse): Promise<boolean | null> {
    this.#uses ??= this.#openUses()
    const { floor, replays } = await this.#uses
    await floor.cover(use.thumbprint, use.createdS)
    const isTaken = replays.claim(use, this.#parts.nowMs())
    this.#claims.add(isTaken === null ? 'untold' : isTaken ? 'taken' : 'refused')
    return isTaken
  }

  /** Aborts inquiries in progress. */
  close(): void {
    this.#listener = () => undefined
    this.#parts.directories.close()
    this.#parts.places?.close()
  }

  addMetrics(metrics: Metrics): void {
    const uses = 'Used signatures that are remembered to detect replays.'
    metrics.gauge('signature_uses_remembered', uses, 'sum', () => [
      { labels: {}, value: this.#replays?.size ?? 0 },
    ])
    const floors = 'Uses of signatures that were evicted early; older signatures of these keys are refused.'
    metrics.counter('signature_uses_forgotten_total', floors, () => [
      { labels: {}, value: this.#replays?.floorsRaised ?? 0 },
    ])
    const claims =
      'Valid signatures by replay check: taken, refused, or untold if an earlier use is unknown (evicted, or before the start).'
    metrics.counter('signature_uses_total', claims, () => this.#claims.samples())
    const agents = 'Agents with known keys: those named in signatures and settings, and others.'
    metrics.gauge('signers_known', agents, 'sum', () =>
      this.#bySigner((findings) => findings.filter(({ keys }) => keys.length > 0).length),
    )
    const keys = 'Known keys of agents.'
    metrics.gauge('signer_keys_known', keys, 'sum', () =>
      this.#bySigner((findings) => findings.reduce((sum, finding) => sum + finding.keys.length, 0)),
    )
    const places = 'Addresses whose network or DNS name is known.'
    metrics.gauge('places_known', places, 'sum', () => [
      { labels: {}, value: this.#ofPlaces.known(this.#parts.nowMs()).length },
    ])
  }

  async #openUses(): Promise<SignatureUses> {
    const floor = await this.#parts.openFloor()
    this.#replays = new ReplayMemory((thumbprint) => floor.floorOf(thumbprint))
    return { floor, replays: this.#replays }
  }

  #find(inquiry: Inquiry): Promise<InquiryResult | null> {
    const { directories, places } = this.#parts
    return inquiry.kind === 'keys'
      ? directories.find(inquiry)
      : (places?.find(inquiry.address) ?? Promise.resolve(null))
  }

  #subjectOf(inquiry: Inquiry): Subject {
    if (inquiry.kind === 'place') return this.#ofPlaces
    return inquiry.isListed ? this.#ofListed : this.#ofStrangers
  }

  #bySigner(count: (findings: readonly KeyFinding[]) => number) {
    const subjects = { listed: this.#ofListed, other: this.#ofStrangers }
    return Object.entries(subjects).map(([signer, subject]) => {
      const known = subject.known(this.#parts.nowMs())
      return { labels: { signer }, value: count(known.filter((finding) => finding.kind === 'keys')) }
    })
  }
}

interface SignatureUses {
  readonly floor: Pick<ReplayFloor, 'cover'>
  readonly replays: ReplayMemory
}

type KeyFinding = InquiryResult & { readonly kind: 'keys' }

/** Inquiries in progress and known findings of one kind. */
class Subject {
  readonly underWay = new Set<string>()
  readonly #known = new LRUCache<string, InquiryResult>({
    max: KNOWN_MAX,
    maxSize: KNOWN_KEYS_MAX,
    sizeCalculation: sizeOf,
  })

  take(finding: InquiryResult): void {
    this.#known.set(finding.kind === 'keys' ? finding.agentId : finding.address, finding)
  }

  known(nowMs: number): readonly InquiryResult[] {
    return [...this.#known.values()].filter(({ untilMs }) => untilMs > nowMs)
  }
}

const CLAIMS = ['taken', 'refused', 'untold'] as const
/** Inquiries above the limit are dropped and repeated with the next request. */
const UNDER_WAY_MAX = 256
const KNOWN_MAX = 4_000
/** About 100 bytes each, at most some hundred. */
const KNOWN_KEYS_MAX = 8_192

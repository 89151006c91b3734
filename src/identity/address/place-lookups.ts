import { LRUCache } from 'lru-cache'
import { isIP } from 'node:net'
import type { PlaceFinding } from '../../classify/verdict/proof.ts'
import { DurationHistogram, type Metrics, LabelledCounter } from '../../shared/metrics.ts'
import type { AsnFile } from './asn-file.ts'
import { FetchPlaces } from '../fetch/fetch-places.ts'
import type { InquiryResult } from '../keys/inquiry.ts'
import type { PlaceFinder } from '../verify/investigations.ts'
import { isPublicAddress } from '../fetch/public-address.ts'
import { HOST_OUTCOMES, type HostFinding, plainAddress, type ReverseDns } from './reverse-dns.ts'

export interface PlaceParts {
  /** `null`: DNS lookups are off. */
  readonly dns: Pick<ReverseDns, 'find' | 'close'> | null
  /** The operator's ASN file; `null`: not configured. */
  networks(): AsnFile | null
  nowMs(): number
}

type PlaceFound = InquiryResult & { readonly kind: 'place' }

/**
 * Looks up addresses in DNS and in the operator's ASN file, and caches the results. A client that claims to
 * be an agent triggers lookups, from any number of addresses, so lookups are limited per minute, in parallel
 * and per network.
 */
export class PlaceLookups implements PlaceFinder {
  readonly #parts: PlaceParts
  readonly #turns = new FetchPlaces(TURNS)
  readonly #known = new LRUCache<string, Known>({
    maxSize: REMEMBERED_BYTES_MAX,
    sizeCalculation: ({ finding }) => KNOWN_BYTES + 2 * (finding?.hosts.join('').length ?? 0),
  })
  readonly #lookups = new LabelledCounter({ outcome: OUTCOMES })
  readonly #durations = new DurationHistogram()
  readonly #stop = new AbortController()

  constructor(parts: PlaceParts) {
    this.#parts = parts
  }

  async find(address: string): Promise<PlaceFound | null> {
    const plain = plainAddress(address)
    // Public DNS knows nothing about private addresses.
    if (plain === null || !isPublicAddress(plain)) {
      this.#lookups.add('not-public')
      const place: PlaceFinding = { hosts: [], isHostKnown: false, network: null }
      return { kind: 'place', address, place, untilMs: this.#parts.nowMs() + UNASKED_MS }
    }
    const known = await this.#hostsOf(plain)
    return known === null ? null : this.#found(address, plain, known)
  }

  close(): void {
    this.#stop.abort()
    this.#parts.dns?.close()
  }

  addMetrics(metrics: Metrics): void {
    const lookups = 'Addresses looked up in DNS, by outcome.'
    metrics.counter('address_lookups_total', lookups, () => this.#lookups.samples())
    const durations = 'The time of all DNS queries for one address.'
    metrics.histogram('address_lookup_duration_seconds', durations, this.#durations)
    const remembered = 'Addresses whose DNS result is cached.'
    metrics.gauge('addresses_remembered', remembered, 'sum', () => [{ labels: {}, value: this.#known.size }])
  }

  async #hostsOf(plain: string): Promise<Known | null> {
    const { dns, nowMs } = this.#parts
    if (dns === null) return { finding: null, untilMs: nowMs() + UNASKED_MS }
    const known = this.#known.get(plain)
    if (known !== undefined && known.untilMs > nowMs()) {
      this.#lookups.add('remembered')
      return known
    }
    const giveBack = await this.#turns.take(networkOf(plain), nowMs(), this.#stop.signal)
    if (giveBack === null) {
      this.#lookups.add('busy')
      return null
    }
    const startedMs = performance.now()
    const finding = await dns.find(plain)
    giveBack()
    this.#durations.observe(performance.now() - startedMs)
    this.#lookups.add(finding.outcome)
    const fresh = { finding, untilMs: nowMs() + goodForMs(finding) }
    this.#known.set(plain, fresh)
    return fresh
  }

  #found(address: string, plain: string, { finding, untilMs }: Known): PlaceFound {
    const place: PlaceFinding = {
      hosts: finding?.hosts ?? [],
      isHostKnown: finding !== null && ANSWERED.has(finding.outcome),
      network: this.#parts.networks()?.of(plain) ?? null,
    }
    return { kind: 'place', address, place, untilMs }
  }
}

interface Known {
  /** `null`: DNS was not queried. */
  readonly finding: HostFinding | null
  readonly untilMs: number
}

/** The network that a single party may control: a /24 of IPv4, a /48 of IPv6. */
function networkOf(plain: string): string {
  if (isIP(plain) === 4) return plain.slice(0, plain.lastIndexOf('.'))
  const [head = '', tail] = plain.split('::')
  const groups = head.split(':')
  return tail !== undefined && groups.length < 3 ? `${head}::` : groups.slice(0, 3).join(':')
}

/**
 * How long a finding is cached. The TTL comes from DNS of a possibly hostile owner, so it is limited. A
 * confirmed name may soon move to another address.
 */
function goodForMs({ outcome, hosts, ttlS }: HostFinding): number {
  if (outcome === 'confirmed' || hosts.length > 0)
    return Math.min(CONFIRMED_MAX_MS, Math.max(CONFIRMED_MIN_MS, ttlS * 1000))
  return outcome === 'late' || outcome === 'failed' ? FAILED_MS : NONE_MS
}

const OUTCOMES = [...HOST_OUTCOMES, 'remembered', 'busy', 'not-public'] as const
/** Outcomes in which DNS has answered for every name of the address. */
const ANSWERED: ReadonlySet<string> = new Set(['confirmed', 'unconfirmed', 'no-name'])
const UNASKED_MS = 3_600_000
const CONFIRMED_MIN_MS = 300_000
const CONFIRMED_MAX_MS = 3_600_000
const NONE_MS = 600_000
const FAILED_MS = 30_000
const KNOWN_BYTES = 300
const REMEMBERED_BYTES_MAX = 4 * 1_048_576
/**
 * A lookup sends up to five queries to a name server that others use, too. A lookup beyond these limits
 * returns `null` and can be repeated. `waitingMax` is far below the limit of parallel inquiries, so that key
 * inquiries have room.
 */
const TURNS = { totalMax: 32, hostMax: 8, waitingMax: 64, totalPerMinute: 1_200, hostPerMinute: 60 }

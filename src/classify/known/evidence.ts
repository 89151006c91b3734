/**
 * The kinds of evidence. The position in this list is the bit of a kind. Its weight is fitted (weights.ts);
 * marks.ts finds the evidence in a request.
 */
export const EVIDENCE_KINDS = [
  // From the User-Agent.
  'names-agent',
  'names-tool',
  'names-browser',
  'names-plain-browser',
  'declares-bot',
  'gives-address',
  'odd-mozilla',
  'unknown-product',
  'no-user-agent',
  'headless',
  // From the rest of the request.
  'agent-header',
  'tool-header',
  'mcp-request',
  'agent-card',
  'oauth-discovery',
  'llm-request',
  'api-token',
  'api-call',
  'runtime-fetch',
  'accepts-pages',
  'browser-headers',
  'forged-headers',
  // The client's address, compared with the published addresses of the agent that it claims to be.
  'address-published',
  'address-foreign',
  // The owners of the TLS stack.
  'stack-of-browsers',
  'stack-of-libraries',
  'stack-shared',
  'stack-unknown',
  // The owners of the header order (JA4H) and of the certificate (JA4X).
  'headers-of-agents',
  'headers-shared',
  'certificate-of-agents',
  'certificate-of-libraries',
  // A JA4, JA4H or JA4X that an admin marked as decisive for an agent.
  'fingerprint-of-agent',
  // What a claimed browser shows, compared with the real one.
  'stack-agrees',
  'stack-disagrees',
  'stack-alike',
  'stack-unlike',
  'version-disagrees',
  'newer-than-claimed',
  'post-quantum-missing',
  'http2-agrees',
  'http2-disagrees',
  'http2-unlike',
  'http1-only',
  'client-hints-missing',
  'client-hints-disagree',
  'fetch-metadata-missing',
  'fetch-metadata-odd',
  'headers-missing',
  'several-headers-missing',
  'language-missing',
  'encoding-disagrees',
  'header-case-odd',
  'header-order-agrees',
  'header-order-disagrees',
  // Behavior, on this connection and recently.
  'robots-first',
  'crawls',
  'loads-parts',
  'asks-sitemap',
  'asks-broadly',
  'asks-fast',
  'asks-from-many',
  'campaign',
] as const

export type EvidenceKind = (typeof EVIDENCE_KINDS)[number]

const BITS: ReadonlyMap<EvidenceKind, number> = new Map(EVIDENCE_KINDS.map((kind, bit) => [kind, bit]))

/** A set of at most 64 kinds, as two 32-bit halves. */
export class EvidenceSet {
  low = 0
  high = 0

  static of(kinds: Iterable<EvidenceKind>): EvidenceSet {
    const set = new EvidenceSet()
    for (const kind of kinds) set.add(kind)
    return set
  }

  add(kind: EvidenceKind): void {
    const bit = BITS.get(kind)!
    if (bit < 32) this.low |= 1 << bit
    else this.high |= 1 << (bit - 32)
  }

  remove(kind: EvidenceKind): void {
    const bit = BITS.get(kind)!
    if (bit < 32) this.low &= ~(1 << bit)
    else this.high &= ~(1 << (bit - 32))
  }

  addAll({ low, high }: EvidenceSet): void {
    this.low |= low
    this.high |= high
  }

  /** Adds the kinds that are in both sets. */
  addCommon(one: EvidenceSet, other: EvidenceSet): void {
    this.low |= one.low & other.low
    this.high |= one.high & other.high
  }

  removeAll({ low, high }: EvidenceSet): void {
    this.low &= ~low
    this.high &= ~high
  }

  hasAny({ low, high }: EvidenceSet): boolean {
    return (this.low & low) !== 0 || (this.high & high) !== 0
  }

  has(kind: EvidenceKind): boolean {
    return this.hasBit(BITS.get(kind)!)
  }

  hasBit(bit: number): boolean {
    return bit < 32 ? (this.low & (1 << bit)) !== 0 : (this.high & (1 << (bit - 32))) !== 0
  }

  clear(): void {
    this.low = 0
    this.high = 0
  }

  kinds(): EvidenceKind[] {
    return EVIDENCE_KINDS.filter((_kind, bit) => this.hasBit(bit))
  }
}

/**
 * Added for a client that claims to be a browser and is classified as something else. It sums up other
 * evidence and has no weight.
 */
export const SPOOFED = 'spoofed-browser'

/** DISAGREEMENTS that a real browser can also show: its next version, or one behind a proxy. */
export const SOFT_DISAGREEMENTS: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  'post-quantum-missing',
  'http2-unlike',
  'http1-only',
  'encoding-disagrees',
  'header-case-odd',
  'header-order-disagrees',
])

/** DISAGREEMENTS that an extension, or a company's proxy, causes by removing a header. */
export const REMOVABLE: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  ...(['client-hints-missing', 'fetch-metadata-missing', 'headers-missing'] as const),
])

/** Evidence against the claim to be a browser. */
export const DISAGREEMENTS: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  'stack-disagrees',
  'version-disagrees',
  'newer-than-claimed',
  'post-quantum-missing',
  'http2-disagrees',
  'http2-unlike',
  'http1-only',
  'client-hints-missing',
  'client-hints-disagree',
  'fetch-metadata-missing',
  'fetch-metadata-odd',
  'headers-missing',
  'several-headers-missing',
  'encoding-disagrees',
  'header-case-odd',
  'header-order-disagrees',
])

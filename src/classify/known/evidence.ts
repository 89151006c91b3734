/**
 * The kinds of evidence, each a bit in the order of this list. What each weighs is fitted (weights.ts); what is found of
 * them in a request is marks.ts.
 */
export const EVIDENCE_KINDS = [
  // What the User-Agent says.
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
  // What else the request gives away.
  'agent-header',
  'tool-header',
  'mcp-request',
  'agent-card',
  'llm-request',
  'api-token',
  'api-call',
  'runtime-fetch',
  'accepts-pages',
  'forged-headers',
  // Where who claims to be an agent is, against where its vendor says that it is.
  'address-published',
  'address-foreign',
  // What the connection is made with.
  'stack-of-browsers',
  'stack-of-libraries',
  'stack-shared',
  'stack-unknown',
  // What else is known of who sends such: its order of headers (JA4H), its certificate (JA4X).
  'headers-of-agents',
  'headers-shared',
  'certificate-of-agents',
  'certificate-of-libraries',
  // What somebody has decided to be an agent's: its JA4, JA4H or JA4X.
  'fingerprint-of-agent',
  // What a browser shows that it says to be.
  'stack-agrees',
  'stack-disagrees',
  'stack-alike',
  'stack-unlike',
  'version-disagrees',
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
  'language-missing',
  'encoding-disagrees',
  'header-case-odd',
  'header-order-agrees',
  'header-order-disagrees',
  // What it has done, on this connection and lately.
  'robots-first',
  'crawls',
  'loads-parts',
  'asks-sitemap',
  'asks-broadly',
  'asks-fast',
  'asks-from-many',
] as const

export type EvidenceKind = (typeof EVIDENCE_KINDS)[number]

const BITS: ReadonlyMap<EvidenceKind, number> = new Map(EVIDENCE_KINDS.map((kind, bit) => [kind, bit]))

/** A set of kinds: no more than 64 of them, in two halves. */
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

  addAll({ low, high }: EvidenceSet): void {
    this.low |= low
    this.high |= high
  }

  /** What is in both of these. */
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

/** What is said beside these of who says to be a browser and is held for something else: it adds nothing to them. */
export const SPOOFED = 'spoofed-browser'

/** Those of DISAGREEMENTS that one browser can show, too: its next version, or one behind a proxy. */
export const SOFT_DISAGREEMENTS: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  ...([
    'post-quantum-missing',
    'http2-unlike',
    'http1-only',
    'encoding-disagrees',
    'header-case-odd',
    'header-order-disagrees',
  ] as const),
])

/** Those that tell on who says to be a browser and is none. */
export const DISAGREEMENTS: ReadonlySet<EvidenceKind> = new Set<EvidenceKind>([
  'stack-disagrees',
  'version-disagrees',
  'post-quantum-missing',
  'http2-disagrees',
  'http2-unlike',
  'http1-only',
  'client-hints-missing',
  'client-hints-disagree',
  'fetch-metadata-missing',
  'fetch-metadata-odd',
  'headers-missing',
  'encoding-disagrees',
  'header-case-odd',
  'header-order-disagrees',
])

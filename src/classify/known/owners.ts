import type { Print } from '../../fingerprint/print.ts'
import { DECIDED_BY_NOBODY, decidedAgents } from './decided.ts'
import type { Candidate, SignatureIndex } from './index/signature-index.ts'
import type { Software } from './software.ts'

/** The known owners of a fingerprint. */
export interface Owners {
  /** Unique among the remembered values; 0 for no owners. */
  readonly number: number
  /** The kind of nearly all owners; `unknown` if it does not tell what they are. */
  readonly kind: 'agents' | 'libraries' | 'browsers' | 'shared' | 'unknown'
  /** The owners, most observed first, and each one's share of the observations. */
  readonly shares: readonly OwnerShare[]
  /** The agents for which the fingerprint was marked as decisive. */
  readonly decided: readonly Software[]
}

export interface OwnerShare {
  readonly software: Software
  readonly share: number
}

/** Finds the owners of a request's header order, and of its connection's certificate. */
export class OwnerIndex {
  readonly #list: readonly Software[]
  readonly #index: SignatureIndex
  readonly #decidedHeaders: ReadonlyMap<string, readonly Software[]>
  readonly #decidedCertificates: ReadonlyMap<string, readonly Software[]>
  /** The JA4H without cookie parts that have an owner. For these, the owner may depend on the cookies. */
  #known = new Set<string>()
  #ofHeaders = new Map<string, Owners>()
  #ofCertificate = new Map<string, Owners>()
  #count = 0

  constructor(list: readonly Software[], index: SignatureIndex) {
    this.#list = list
    this.#index = index
    this.#decidedHeaders = decidedAgents(list, 'ja4h')
    this.#decidedCertificates = decidedAgents(list, 'ja4x')
  }

  /**
   * The owners of the header order. Many visitors share one, so results are cached with cookies only if
   * cookies matter.
   */
  ofHeaders({ ja4h, connection }: Print): Owners {
    // A hop has rewritten the request.
    if (ja4h === null || connection.ja4Source === 'hop') return NO_OWNERS
    const names = withoutCookies(ja4h)
    const known = this.#ofHeaders.get(this.#known.has(names) ? ja4h : names)
    if (known !== undefined) return known
    if (this.#ofHeaders.size >= REMEMBERED_MAX) {
      this.#ofHeaders = new Map()
      this.#known = new Set()
    }
    const owners = this.#ownersByCookies(ja4h, names) ?? this.#ownersByNames(ja4h, names)
    if (ja4h.length <= JA4H_LENGTH && this.#known.has(names)) this.#ofHeaders.set(ja4h, owners)
    return owners
  }

  #ownersByCookies(ja4h: string, names: string): Owners | null {
    for (const likeness of ['exact', 'a_b_c'] as const) {
      const found = this.#index.find('ja4h', ja4h, likeness)
      if (found.length === 0) continue
      this.#known.add(names)
      return this.#ownersOf(found, this.#decidedFor(ja4h, names), isTelling(ja4h))
    }
    return null
  }

  #ownersByNames(ja4h: string, names: string): Owners {
    const known = this.#ofHeaders.get(names)
    if (known !== undefined) return known
    const found = this.#index.find('ja4h', ja4h, 'a_b')
    if (found.length > 0) this.#known.add(names)
    const owners = this.#ownersOf(
      found.length > 0 ? found : this.#index.find('ja4h', ja4h, 'b'),
      this.#decidedFor(ja4h, names),
      isTelling(ja4h),
    )
    this.#ofHeaders.set(names, owners)
    return owners
  }

  #decidedFor(ja4h: string, names: string): readonly Software[] {
    const decided = this.#decidedHeaders
    if (decided.size === 0) return DECIDED_BY_NOBODY
    const withCookieNames = ja4h.slice(0, JA4H_COOKIE_NAMES_LENGTH)
    return (
      decided.get(ja4h) ??
      decided.get(`${withCookieNames}_*`) ??
      decided.get(`${names}_*_*`) ??
      DECIDED_BY_NOBODY
    )
  }

  ofCertificate({ connection: { ja4x } }: Print): Owners {
    if (ja4x === null) return NO_OWNERS
    const known = this.#ofCertificate.get(ja4x)
    if (known !== undefined) return known
    if (this.#ofCertificate.size >= REMEMBERED_MAX) this.#ofCertificate = new Map()
    const decided = this.#decidedCertificates.get(ja4x) ?? DECIDED_BY_NOBODY
    const owners = this.#ownersOf(this.#index.find('ja4x', ja4x, 'exact'), decided)
    this.#ofCertificate.set(ja4x, owners)
    return owners
  }

  #ownersOf(candidates: readonly Candidate[], decided: readonly Software[], isSaying = true): Owners {
    if (candidates.length === 0) return NO_OWNERS
    const kind = isSaying ? this.#kindOf(candidates) : 'unknown'
    return { number: ++this.#count, kind, shares: sharesOf(this.#list, candidates), decided }
  }

  /**
   * Automated browsers have the fingerprints of their browser, and imitators copy them, so neither tells
   * whose it is.
   */
  #kindOf(candidates: readonly Candidate[]): Owners['kind'] {
    const counts = { agents: 0, libraries: 0, browsers: 0 }
    for (const { software, observations } of candidates) {
      const { kind, category, isImitator } = this.#list[software]!
      if (category === 'browser-agent' || isImitator) continue
      const of = kind === 'agent' ? 'agents' : kind === 'browser' ? 'browsers' : 'libraries'
      counts[of] += Math.max(observations, 1)
    }
    const total = counts.agents + counts.libraries + counts.browsers
    if (total === 0) return 'unknown'
    for (const kind of ['agents', 'libraries', 'browsers'] as const)
      if (counts[kind] >= MOST * total) return kind
    return 'shared'
  }
}

export function sharesOf(list: readonly Software[], candidates: readonly Candidate[]): readonly OwnerShare[] {
  const total = candidates.reduce((sum, { observations }) => sum + Math.max(observations, 1), 0)
  return candidates.map(({ software, observations }) => ({
    software: list[software]!,
    share: Math.max(observations, 1) / total,
  }))
}

/** With this many names, the header order is not that of a library alone. */
function isTelling(ja4h: string): boolean {
  return Number(ja4h.slice(6, 8)) >= NAMES_MIN
}

/** The first two parts: method, version, names and language. */
function withoutCookies(ja4h: string): string {
  return ja4h.slice(0, JA4H_NAMES_LENGTH)
}

export const NO_OWNERS: Owners = Object.freeze({
  number: 0,
  kind: 'unknown',
  shares: Object.freeze([]),
  decided: DECIDED_BY_NOBODY,
})
/** Nearly all: the observations of other owners may be mistakes. */
export const MOST = 0.95
const JA4H_LENGTH = 51
const JA4H_NAMES_LENGTH = 25
const JA4H_COOKIE_NAMES_LENGTH = 38
/**
 * A library sends fewer names by itself, which tells nothing about the program built with it: Node's fetch
 * sends nine for JSON.
 */
const NAMES_MIN = 10
const REMEMBERED_MAX = 8192

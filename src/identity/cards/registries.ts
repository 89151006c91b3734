import type { AgentCard } from '../../classify/known/claims/agent-card.ts'
import { signerAt } from '../../classify/known/signer-id.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import {
  type DocumentKind,
  type DocumentSettings,
  Documents,
  DocumentUnusable,
} from '../fetch/document-fetch.ts'
import type { DocumentRules } from '../keys/agent-document.ts'
import { readCard } from './card-document.ts'
import { type Registry, readRegistry } from './registry-document.ts'

export interface RegistrySettings extends DocumentSettings {
  /** The URLs of the registries. */
  readonly urls: readonly string[]
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** What the registries say about a signer. */
export interface Listing {
  /** The URLs of the registries that list it. */
  readonly registries: readonly string[]
  /** A card that a registry lists for it; `null`: none was usable. */
  readonly card: AgentCard | null
}

/**
 * Registries of signature agent cards, and the cards that they list. All are fetched in the background, every hour. A
 * registry that cannot be fetched counts for a day.
 */
export class Registries {
  readonly #settings: RegistrySettings
  readonly #registries: Documents<Registry>
  readonly #cards: Documents<ListedCard>
  /** By URL, as they were last fetched. */
  readonly #known = new Map<string, KnownRegistry>()
  #listings: ReadonlyMap<string, Listing> = new Map()
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(settings: RegistrySettings) {
    this.#settings = settings
    const rules = { allowPrivate: settings.allowPrivate }
    this.#registries = new Documents(registryKind(rules), settings)
    this.#cards = new Documents(cardKind(rules), settings)
  }

  of(agentId: string): Listing {
    return this.#listings.get(agentId) ?? UNLISTED
  }

  /** Begins to fetch the registries, again and again. */
  start(): void {
    if (this.#settings.urls.length > 0) void this.#keepFresh()
  }

  /** Fetches all registries and their cards once. Never rejects. */
  async refresh(): Promise<void> {
    for (const url of this.#settings.urls) {
      if (this.#isClosed) return
      await this.#refreshRegistry(url)
    }
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#registries.close()
    this.#cards.close()
  }

  addMetrics(metrics: Metrics): void {
    const agents = 'Agents that registries of signature agent cards list (identity.registries).'
    metrics.gauge('registry_agents', agents, 'max', () => [{ labels: {}, value: this.#listings.size }])
  }

  async #keepFresh(): Promise<void> {
    await this.refresh()
    if (this.#isClosed) return
    const isWhole = this.#settings.urls.every((url) => this.#known.get(url)?.isCurrent === true)
    // Jitter: many gateways must not fetch at the same time.
    const waitMs = (isWhole ? REFRESH_MS : RETRY_MS) * (0.75 + Math.random() / 4)
    this.#timer = setTimeout(() => void this.#keepFresh(), waitMs).unref()
  }

  async #refreshRegistry(url: string): Promise<void> {
    const { log, nowMs } = this.#settings
    const before = this.#known.get(url)
    let registry: Registry
    try {
      registry = await this.#registries.get(url)
    } catch (error) {
      if (!(error instanceof DocumentUnusable)) throw error
      if (this.#isClosed) return
      // The message names the document and quotes nothing of it.
      if (before?.isCurrent !== false) log.warn('a registry of agents is unavailable', { why: error.message })
      const isKept = error.kind !== 'wrong' && before !== undefined && nowMs() - before.fetchedAtMs < KEPT_MS
      const kept = isKept ? before : { cards: new Map(), fetchedAtMs: 0, ignored: '' }
      this.#take(url, { ...kept, isCurrent: false })
      return
    }
    const cards = new Map<string, AgentCard | null>(registry.inline)
    for (const place of registry.places) cards.set(signerAt(place), null)
    // Which agents are listed is known before their cards are.
    this.#take(url, { cards: withBefore(cards, before), fetchedAtMs: nowMs(), ignored: '', isCurrent: true })
    const ignored = [...registry.ignored, ...(await this.#fetchCards(registry.places, cards))].join('; ')
    if (this.#isClosed) return
    if (ignored !== '' && ignored !== before?.ignored)
      log.warn('a registry of agents has invalid cards', { registry: url, ignored })
    this.#take(url, { cards, fetchedAtMs: nowMs(), ignored, isCurrent: true })
    if (before === undefined) log.info('fetched a registry of agents', { registry: url, agents: cards.size })
  }

  /** Some at a time. Returns what is wrong with cards. */
  async #fetchCards(
    places: readonly string[],
    cards: Map<string, AgentCard | null>,
  ): Promise<readonly string[]> {
    const ignored: string[] = []
    const waiting = [...places]
    const work = async () => {
      for (let place = waiting.shift(); place !== undefined && !this.#isClosed; place = waiting.shift()) {
        try {
          const { card, signers } = await this.#cards.get(place)
          for (const signer of signers) cards.set(signer, card)
        } catch (error) {
          if (!(error instanceof Fault)) throw error
          if (ignored.length < IGNORED_MAX) ignored.push(error.message)
        }
      }
    }
    await Promise.all(Array.from({ length: FETCHES_MAX }, work))
    return ignored
  }

  #take(url: string, known: KnownRegistry): void {
    this.#known.set(url, known)
    const listings = new Map<string, { registries: string[]; card: AgentCard | null }>()
    for (const [registry, { cards }] of this.#known)
      for (const [signer, card] of cards) {
        const listing = listings.get(signer) ?? { registries: [], card: null }
        listing.registries.push(registry)
        listing.card ??= card
        listings.set(signer, listing)
      }
    this.#listings = listings
  }
}

interface KnownRegistry {
  /** By the signer that they describe; `null`: not fetched yet, or invalid. */
  readonly cards: ReadonlyMap<string, AgentCard | null>
  readonly fetchedAtMs: number
  /** What is wrong in it, as logged. */
  readonly ignored: string
  /** Whether it could be fetched when it was last tried. */
  readonly isCurrent: boolean
}

/** A card at a URL that a registry lists. */
export interface ListedCard {
  /** `null`: a key directory that says nothing about its agent. */
  readonly card: AgentCard | null
  /** The signers that it describes. */
  readonly signers: readonly string[]
}

/** Cards that are known already count until they are fetched again. */
function withBefore(
  cards: ReadonlyMap<string, AgentCard | null>,
  before: KnownRegistry | undefined,
): ReadonlyMap<string, AgentCard | null> {
  return new Map([...cards].map(([signer, card]) => [signer, card ?? before?.cards.get(signer) ?? null]))
}

function registryKind(rules: DocumentRules): DocumentKind<Registry> {
  return {
    name: 'registry',
    form: 'text',
    accept: 'text/plain',
    parse: (value, url) => readRegistry(value as string, url, rules),
  }
}

/** How to read the card at a URL, of a registry or of any URL. */
export function cardKind(rules: DocumentRules): DocumentKind<ListedCard> {
  return {
    name: 'card',
    accept: 'application/json, application/http-message-signatures-directory+json',
    parse: (value, url) => listedCard(value, url, rules),
  }
}

function listedCard(value: unknown, url: string, rules: DocumentRules): ListedCard {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Fault('CARD_INVALID', 'it is not an object')
  const { client_id: id, jwks_uri: keys } = value as {
    readonly client_id?: unknown
    readonly jwks_uri?: unknown
  }
  // A card that is copied elsewhere must not speak for its agent.
  if (id !== undefined && id !== url && id !== signerAt(url))
    throw new Fault('CARD_INVALID', 'its client_id is not its address')
  const signers = [signerAt(url)]
  // Keys of another origin are not proven to belong to this card.
  const owner = typeof keys === 'string' && URL.canParse(keys) ? signerAt(keys) : null
  if (owner !== null && new URL(owner).origin === new URL(url).origin) signers.push(owner)
  return { card: readCard(value, url, rules), signers }
}

const UNLISTED: Listing = { registries: [], card: null }
const REFRESH_MS = 3_600_000
const RETRY_MS = 120_000
const KEPT_MS = 86_400_000
const FETCHES_MAX = 4
const IGNORED_MAX = 20

import type { AgentCard } from '../../classify/known/claims/agent-card.ts'
import { LateCache } from '../../shared/late-cache.ts'
import { signerAt } from '../../classify/known/signer-id.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import { parseAddressRange } from '../../wire/address-ranges.ts'
import { readCard } from '../cards/card-document.ts'
import type { Registries } from '../cards/registries.ts'
import { type DocumentRules, documentPlaceOf, readAgentDocument, readKeySet } from '../keys/agent-document.ts'
import { type AgentKey, isNamed } from '../keys/agent-key.ts'
import { readIssuerMetadata } from '../keys/issuer-metadata.ts'
import { type DirectoryAnswer, directoryProof } from './directory-signature.ts'
import {
  type DocumentKind,
  type DocumentSettings,
  Documents,
  DocumentUnusable,
  type Held,
} from '../fetch/document-fetch.ts'
import type { InquiryResult, Inquiry } from '../keys/inquiry.ts'

export interface DirectorySettings extends DocumentSettings {
  /** Which directories are fetched: of all signers, of agents in signatures and settings, or none. */
  readonly mode: 'discover' | 'listed' | 'off'
  /** Agents named in settings, as readAgentId returns them. */
  readonly agents: ReadonlySet<string>
  readonly log: Pick<Log, 'debug'>
  readonly registries: Pick<Registries, 'of' | 'close'>
  /** Reads a document of address ranges; `null`: it has another format. */
  rangesIn(body: Buffer): readonly string[] | null
}

type KeyInquiry = Inquiry & { readonly kind: 'keys' }
type KeyFinding = InquiryResult & { readonly kind: 'keys' }

/** Finds the signing keys of agents, in the key directories that the agents publish. */
export class KeyDirectories {
  readonly #settings: DirectorySettings
  readonly #ofListed: KeySources
  /** Separate limits, so that unknown agents cannot delay known ones. */
  readonly #ofStrangers: KeySources
  readonly #ranges: Documents<readonly string[]>
  /** Directories that could not be fetched. */
  readonly #rests = new LateCache<Rest>({ max: RESTS_MAX })

  constructor(settings: DirectorySettings) {
    this.#settings = settings
    this.#ofListed = new KeySources(settings)
    this.#ofStrangers = new KeySources({ perMinuteMax: STRANGERS_PER_MINUTE, ...settings })
    this.#ranges = new Documents(rangesKind(settings), settings)
  }

  /** Never rejects. `null`: a limit is reached and nothing is known. */
  async find({ agentId, thumbprint, isListed }: KeyInquiry): Promise<KeyFinding | null> {
    const { mode, agents, log, registries } = this.#settings
    const nowMs = this.#settings.nowMs()
    const listing = registries.of(agentId)
    const isKnown = isListed || agents.has(agentId) || listing.registries.length > 0
    if (mode === 'off' || (mode === 'listed' && !isKnown)) return none(agentId, 'not-listed', nowMs, FAR_MS)
    // This inquiry is a prefetch or a refresh, not a request with a missing key, so it respects the backoff.
    if (thumbprint === null && nowMs < (this.#rests.get(agentId)?.untilMs ?? 0)) return null
    try {
      const held = await (isKnown ? this.#ofListed : this.#ofStrangers).find(agentId, thumbprint)
      const keys = held.document.keys.filter(({ signsRequests }) => signsRequests).map(({ jwk }) => jwk)
      const card = held.document.card ?? listing.card
      const ranges = isKnown ? await this.#rangesOf(card) : null
      const { askedAtMs, fetchedAtMs, keptUntilMs: untilMs } = held
      const freshUntilMs =
        ranges === 'pending' ? Math.min(held.freshUntilMs, nowMs + RETRY_MS) : held.freshUntilMs
      const why = askedAtMs > fetchedAtMs ? 'no-directory' : null
      if (why === null) this.#rests.delete(agentId)
      else this.#rest(agentId, nowMs)
      const times = { askAgainMs: askedAtMs + RETRY_MS, freshUntilMs, untilMs }
      const about = { card, registries: listing.registries, ranges: ranges === 'pending' ? null : ranges }
      const { issuer } = held.document
      return { kind: 'keys', agentId, keys, ...(issuer !== null && { issuer }), why, ...about, ...times }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      if (error instanceof DocumentUnusable && error.kind === 'busy') return null
      this.#rest(agentId, nowMs)
      // The message names the document and quotes nothing of it.
      log.debug('the keys of an agent are unavailable', { agent: agentId, why: error.message })
      return none(agentId, 'no-directory', nowMs, RETRY_MS)
    }
  }

  /** Aborts fetches in progress. */
  close(): void {
    this.#ofListed.close()
    this.#ofStrangers.close()
    this.#ranges.close()
    this.#settings.registries.close()
  }

  /** The ranges that the card names. Keys do not wait for them: they come with the next finding. */
  async #rangesOf(card: AgentCard | null): Promise<readonly string[] | 'pending' | null> {
    if (card?.rangesUrl == null) return null
    const late = Promise.withResolvers<'pending'>()
    const timer = setTimeout(late.resolve, RANGES_WAIT_MS, 'pending')
    const found = this.#ranges.get(card.rangesUrl).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error
      this.#settings.log.debug('the address ranges of an agent are unavailable', { why: error.message })
      return null
    })
    return Promise.race([found, late.promise]).finally(() => clearTimeout(timer))
  }

  #rest(agentId: string, nowMs: number): void {
    const before = this.#rests.get(agentId)
    // Two inquiries saw the same failure.
    if (before !== undefined && nowMs < before.untilMs) return
    const failures = (before?.failures ?? 0) + 1
    // Jitter: many gateways must not retry at the same time.
    const share = 0.75 + Math.random() / 4
    const restMs = Math.min(REST_MAX_MS, REST_MS * 2 ** (failures - 1)) * share
    this.#rests.set(agentId, { failures, untilMs: nowMs + restMs })
  }
}

/** The documents with keys, and the key sets that cards name. */
export class KeySources {
  readonly #directories: Documents<Directory>
  readonly #keySets: Documents<Directory>

  constructor(settings: DocumentSettings) {
    const rules = { allowPrivate: settings.allowPrivate }
    const nowMs = () => settings.nowMs()
    this.#directories = new Documents(directoryKind(rules, nowMs), settings)
    this.#keySets = new Documents(keySetKind(rules, nowMs), settings)
  }

  /** Fetches once more if the key is missing: it may be new. */
  async find(agentId: string, thumbprint: string | null): Promise<Held<Directory>> {
    const place = documentPlaceOf(agentId)
    const held = await this.#directories.find(place)
    const { jwksUri } = held.document
    if (jwksUri === null) return withKey(held, thumbprint, () => this.#directories.find(place, NOW))
    const keySet = await this.#keySets.find(jwksUri)
    return joined(held, await withKey(keySet, thumbprint, () => this.#keySets.find(jwksUri, NOW)))
  }

  close(): void {
    this.#directories.close()
    this.#keySets.close()
  }
}

function withKey(
  held: Held<Directory>,
  thumbprint: string | null,
  again: () => Promise<Held<Directory>>,
): Promise<Held<Directory>> | Held<Directory> {
  const isMissing = thumbprint !== null && !held.document.keys.some((key) => isNamed(key, thumbprint))
  return isMissing ? again() : held
}

/** A card with the keys of the key set that it names. */
function joined(card: Held<Directory>, keySet: Held<Directory>): Held<Directory> {
  const { askedAtMs, fetchedAtMs } = card.askedAtMs > card.fetchedAtMs ? card : keySet
  return {
    document: { ...keySet.document, card: card.document.card, issuer: card.document.issuer },
    askedAtMs,
    fetchedAtMs,
    freshUntilMs: Math.min(card.freshUntilMs, keySet.freshUntilMs),
    keptUntilMs: Math.min(card.keptUntilMs, keySet.keptUntilMs),
  }
}

interface Rest {
  readonly failures: number
  readonly untilMs: number
}

/** How to read the key directory of an agent and its signatures. */
function directoryKind(rules: DocumentRules, nowMs: () => number): DocumentKind<Directory> {
  return {
    name: 'directory',
    accept: ACCEPT,
    parse: (value, url, { headers, body }) => directoryIn(value, { url, headers, body }, rules, nowMs()),
    untilMs: ({ untilMs }) => untilMs,
  }
}

/** How to read the key set that a card names, which may be a key directory. */
function keySetKind(rules: DocumentRules, nowMs: () => number): DocumentKind<Directory> {
  return {
    name: 'keys',
    accept: ACCEPT,
    parse: (value, url, { headers, body }) => {
      const keys = provenKeys(readKeySet(value, rules), { url, headers, body }, nowMs())
      return { url, ...keys, jwksUri: null, card: null, issuer: null }
    },
    untilMs: ({ untilMs }) => untilMs,
  }
}

function rangesKind({ rangesIn }: Pick<DirectorySettings, 'rangesIn'>): DocumentKind<readonly string[]> {
  return {
    name: 'ranges',
    accept: 'application/json',
    parse: (_value, _url, { body }) => {
      const ranges = rangesIn(body)
      if (ranges === null || ranges.length === 0 || ranges.some((text) => parseAddressRange(text) === null))
        throw new Fault('RANGES_INVALID', 'it is not a list of address ranges')
      if (ranges.length > RANGES_MAX)
        throw new Fault('RANGES_INVALID', `it has more than ${RANGES_MAX} ranges`)
      return ranges
    },
  }
}

export interface Directory {
  /** Where the keys are from. */
  readonly url: string
  readonly keys: readonly AgentKey[]
  /** Where the keys are; `null`: in the document. */
  readonly jwksUri: string | null
  /** `null`: the document says nothing about the agent. */
  readonly card: AgentCard | null
  /** The issuer that the document describes; `null`: it is not the metadata of an issuer. */
  readonly issuer: string | null
  /** Until when the directory's own signatures are valid; `null`: unsigned. */
  readonly untilMs: number | null
}

function directoryIn(
  value: unknown,
  answer: DirectoryAnswer,
  rules: DocumentRules,
  nowMs: number,
): Directory {
  const metadata = readIssuerMetadata(value, answer.url, rules)
  if (metadata !== null) return { url: answer.url, keys: [], ...metadata, card: null, untilMs: null }
  const { keys } = readAgentDocument(value, signerAt(answer.url), rules)
  const card = readCard(value as object, answer.url, rules)
  const own = { url: answer.url, card, issuer: null }
  if ('jwksUri' in keys) return { ...own, keys: [], jwksUri: keys.jwksUri, untilMs: null }
  // A card with its keys in it is signed as a whole.
  const isCard = (value as { readonly jwks?: unknown }).jwks !== undefined
  return { ...own, ...provenKeys(keys, answer, nowMs, isCard), jwksUri: null }
}

/** The keys that have signed the document, or all keys of an unsigned one. */
function provenKeys(
  keys: readonly AgentKey[],
  answer: DirectoryAnswer,
  nowMs: number,
  isWhole = false,
): Pick<Directory, 'keys' | 'untilMs'> {
  const proof = directoryProof(answer, keys, nowMs, isWhole)
  if (proof === null) return { keys, untilMs: null }
  if (proof.keys.length === 0)
    throw new Fault('DIRECTORY_UNPROVEN', 'it is signed, and by none of its keys for this host and time')
  return proof
}

function none(agentId: string, why: string, nowMs: number, forMs: number): KeyFinding {
  const untilMs = nowMs + forMs
  const nothing = { keys: [], card: null, registries: [], ranges: null }
  return { kind: 'keys', agentId, ...nothing, why, askAgainMs: untilMs, freshUntilMs: untilMs, untilMs }
}

const ACCEPT =
  'application/http-message-signatures-directory+json, application/jwk-set+json, application/json'
/** Forces a fetch. */
const NOW = 0
/** When a worker may ask again for a missing key. */
const RETRY_MS = 10_000
/** Backoff for a server that is down or a machine without a network. */
const REST_MS = 30_000
const REST_MAX_MS = 600_000
const RESTS_MAX = 2_000
const RANGES_WAIT_MS = 500
const RANGES_MAX = 2_000
/** Settings do not change. */
const FAR_MS = 3_600_000
/** Any client can name a directory. */
const STRANGERS_PER_MINUTE = 300

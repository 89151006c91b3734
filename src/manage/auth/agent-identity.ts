import { LRUCache } from 'lru-cache'
import { signerAt } from '../../classify/known/signer-id.ts'
import {
  type AgentDocument,
  type DocumentRules,
  documentPlaceOf,
  readAgentDocument,
  readKeySet,
} from '../../identity/keys/agent-document.ts'
import { type AgentKey, isInTime } from '../../identity/keys/agent-key.ts'
import { type DocumentSettings, Documents } from '../../identity/fetch/document-fetch.ts'
import type { Trust, Trusted } from './trust.ts'

/** An agent as its document describes it, and the access it has. */
export interface KnownAgent {
  /** The URL of the agent's document, or the origin that serves its key directory. */
  readonly id: string
  /** The name that the administrator gave; otherwise the one in the document. */
  readonly name: string | null
  readonly keys: readonly AgentKey[]
  /** For an app that asks people for consent. */
  readonly redirectUris: readonly string[]
  /** `null`: no access. */
  readonly trusted: Trusted | null
}

/** Resolves an Agent Identity: its keys come from its document, its scopes from an administrator. */
export class AgentIdentities {
  readonly rules: DocumentRules
  readonly #trust: Trust
  readonly #nowMs: () => number
  readonly #ofTrusted: AgentDocuments
  /** A separate instance, so that unknown agents cannot block fetches for trusted ones. */
  readonly #ofStrangers: AgentDocuments
  readonly #kept = new LRUCache<string, AgentDocument>({ max: KEPT_MAX })

  constructor(trust: Trust, settings: DocumentSettings) {
    this.rules = { allowPrivate: settings.allowPrivate }
    this.#trust = trust
    this.#nowMs = () => settings.nowMs()
    this.#ofTrusted = new AgentDocuments(settings)
    this.#ofStrangers = new AgentDocuments(settings)
  }

  /**
   * `id`: as readAgentId returns it. Throws a DocumentUnusable, or another Fault that says what is wrong with
   * the document. `thumbprint`: of a key the document should have. If the key is missing or outside its
   * validity period, the document is fetched once more.
   */
  async find(id: string, thumbprint: string | null = null): Promise<KnownAgent> {
    const trusted = await this.#trust.scopesOfAgent(id)
    const documents = trusted === null ? this.#ofStrangers : this.#ofTrusted
    const kept = trusted?.document == null ? null : this.#keptDocument(id, trusted.id, trusted.document)
    const found = await documents.find(id, kept)
    const nowMs = this.#nowMs()
    const isMissing =
      thumbprint !== null && !found.keys.some((key) => key.thumbprint === thumbprint && isInTime(key, nowMs))
    const { name, ...rest } = isMissing ? await documents.find(id, kept, NOW) : found
    return { id, name: trusted?.name ?? name, ...rest, trusted }
  }

  /** Aborts fetches in progress. */
  close(): void {
    this.#ofTrusted.close()
    this.#ofStrangers.close()
  }

  #keptDocument(id: string, trustId: string, value: unknown): AgentDocument {
    const known = this.#kept.get(trustId)
    if (known !== undefined) return known
    const document = readAgentDocument(value, id, this.rules)
    this.#kept.set(trustId, document)
    return document
  }
}

class AgentDocuments {
  readonly #documents: Documents<AgentDocument>
  readonly #keySets: Documents<readonly AgentKey[]>

  constructor(settings: DocumentSettings) {
    const rules = { allowPrivate: settings.allowPrivate }
    const parse = (value: unknown, url: string) => readAgentDocument(value, signerAt(url), rules)
    this.#documents = new Documents({ name: 'identity', accept: ACCEPT, parse }, settings)
    const parseKeys = (value: unknown) => readKeySet(value, rules)
    this.#keySets = new Documents({ name: 'keys', accept: ACCEPT, parse: parseKeys }, settings)
  }

  /** `kept`: the agent's stored document, which makes a fetch unnecessary. */
  async find(
    id: string,
    kept: AgentDocument | null,
    ageMaxMs?: number,
  ): Promise<Pick<KnownAgent, 'name' | 'keys' | 'redirectUris'>> {
    const { name, keys, redirectUris } = kept ?? (await this.#documents.get(documentPlaceOf(id), ageMaxMs))
    const found = 'jwksUri' in keys ? await this.#keySets.get(keys.jwksUri, ageMaxMs) : keys
    return { name, keys: found, redirectUris }
  }

  close(): void {
    this.#documents.close()
    this.#keySets.close()
  }
}

const ACCEPT =
  'application/json, application/http-message-signatures-directory+json, application/jwk-set+json'
/** Bypasses the cache. */
const NOW = 0
const KEPT_MAX = 1_000

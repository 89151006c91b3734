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

/** An agent, as its document has it, and what it may do. */
export interface KnownAgent {
  /** The URL of its document, or the origin whose key directory it is in. */
  readonly id: string
  /** The administrator's, else its own. */
  readonly name: string | null
  readonly keys: readonly AgentKey[]
  /** Of an app that asks people. */
  readonly redirectUris: readonly string[]
  /** `null`: nothing. */
  readonly trusted: Trusted | null
}

/** Finds out what belongs to an Agent Identity: its keys from its document, its scopes from an administrator. */
export class AgentIdentities {
  readonly rules: DocumentRules
  readonly #trust: Trust
  readonly #nowMs: () => number
  readonly #ofTrusted: AgentDocuments
  /** Of their own, so that nobody unknown stands in the way of who is known. */
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
   * `id`: as readAgentId gives it. Throws a DocumentUnusable, or another Fault that says what is wrong with the document.
   * `thumbprint`: of a key that it should have; where it is missing, or not in its time, the document is looked at once
   * more.
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

  /** What is under way is given up. */
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

  /** `kept`: its document, where it is not to be fetched. */
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
/** As fresh as it can be had. */
const NOW = 0
const KEPT_MAX = 1_000

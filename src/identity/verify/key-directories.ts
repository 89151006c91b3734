import { LateCache } from '../../shared/late-cache.ts'
import { signerAt } from '../../classify/known/signer-id.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import {
  type AgentDocument,
  type DocumentRules,
  documentPlaceOf,
  readAgentDocument,
} from '../keys/agent-document.ts'
import type { AgentKey } from '../keys/agent-key.ts'
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
}

type KeyInquiry = Inquiry & { readonly kind: 'keys' }
type KeyFinding = InquiryResult & { readonly kind: 'keys' }

/** Finds the signing keys of agents, in the key directories that the agents publish. */
export class KeyDirectories {
  readonly #settings: DirectorySettings
  readonly #ofListed: Documents<Directory>
  /** Separate limits, so that unknown agents cannot delay known ones. */
  readonly #ofStrangers: Documents<Directory>
  /** Directories that could not be fetched. */
  readonly #rests = new LateCache<Rest>({ max: RESTS_MAX })

  constructor(settings: DirectorySettings) {
    this.#settings = settings
    const kind = directoryKind({ allowPrivate: settings.allowPrivate }, () => settings.nowMs())
    this.#ofListed = new Documents(kind, settings)
    this.#ofStrangers = new Documents(kind, { perMinuteMax: STRANGERS_PER_MINUTE, ...settings })
  }

  /** Never rejects. `null`: a limit is reached and nothing is known. */
  async find({ agentId, thumbprint, isListed }: KeyInquiry): Promise<KeyFinding | null> {
    const { mode, agents, log } = this.#settings
    const nowMs = this.#settings.nowMs()
    const isKnown = isListed || agents.has(agentId)
    if (mode === 'off' || (mode === 'listed' && !isKnown)) return none(agentId, 'not-listed', nowMs, FAR_MS)
    // This inquiry is a prefetch or a refresh, not a request with a missing key, so it respects the backoff.
    if (thumbprint === null && nowMs < (this.#rests.get(agentId)?.untilMs ?? 0)) return null
    try {
      const held = await this.#held(isKnown ? this.#ofListed : this.#ofStrangers, agentId, thumbprint)
      const keys = held.document.keys.filter(({ signsRequests }) => signsRequests).map(({ jwk }) => jwk)
      const { askedAtMs, fetchedAtMs, freshUntilMs, keptUntilMs: untilMs } = held
      const why = askedAtMs > fetchedAtMs ? 'no-directory' : null
      if (why === null) this.#rests.delete(agentId)
      else this.#rest(agentId, nowMs)
      const times = { askAgainMs: askedAtMs + RETRY_MS, freshUntilMs, untilMs }
      return { kind: 'keys', agentId, keys, why, ...times }
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
  }

  /** Fetches once more if the key is missing: it may be new. */
  async #held(
    documents: Documents<Directory>,
    agentId: string,
    thumbprint: string | null,
  ): Promise<Held<Directory>> {
    const place = documentPlaceOf(agentId)
    const held = await documents.find(place)
    const isMissing = thumbprint !== null && !held.document.keys.some((key) => key.thumbprint === thumbprint)
    return isMissing ? documents.find(place, NOW) : held
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

interface Rest {
  readonly failures: number
  readonly untilMs: number
}

/** How to read the key directory of an agent and its signatures. */
export function directoryKind(rules: DocumentRules, nowMs: () => number): DocumentKind<Directory> {
  return {
    name: 'directory',
    accept: ACCEPT,
    parse: (value, url, { headers, body }) => directoryIn(value, { url, headers, body }, rules, nowMs()),
    untilMs: ({ untilMs }) => untilMs,
  }
}

export interface Directory {
  readonly keys: readonly AgentKey[]
  /** Until when the directory's own signatures are valid; `null`: unsigned. */
  readonly untilMs: number | null
}

function directoryIn(
  value: unknown,
  answer: DirectoryAnswer,
  rules: DocumentRules,
  nowMs: number,
): Directory {
  const keys = keysIn(readAgentDocument(value, signerAt(answer.url), rules))
  const proof = directoryProof(answer, keys, nowMs)
  if (proof === null) return { keys, untilMs: null }
  if (proof.keys.length === 0)
    throw new Fault('DIRECTORY_UNPROVEN', 'it is signed, and by none of its keys for this host and time')
  return proof
}

/** A directory must contain its keys: no second fetch here. */
function keysIn({ keys }: AgentDocument): readonly AgentKey[] {
  if ('jwksUri' in keys) throw new Fault('DIRECTORY_UNUSABLE', 'its keys are elsewhere (jwks_uri)')
  return keys
}

function none(agentId: string, why: string, nowMs: number, forMs: number): KeyFinding {
  const untilMs = nowMs + forMs
  return { kind: 'keys', agentId, keys: [], why, askAgainMs: untilMs, freshUntilMs: untilMs, untilMs }
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
/** Settings do not change. */
const FAR_MS = 3_600_000
/** Any client can name a directory. */
const STRANGERS_PER_MINUTE = 300

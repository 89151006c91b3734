import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type { LookupFunction } from 'node:net'
import { LRUCache } from 'lru-cache'
import { Fault } from '../../shared/fault.ts'
import { shapeProblem } from '../../wire/json-shape.ts'
import type { DocumentMetrics, DocumentName, DocumentOrigin, FetchOutcome } from './document-metrics.ts'
import { FetchPlaces } from './fetch-places.ts'
import { FetchFault, type GuardedAnswer, guardedGet } from './guarded-get.ts'

/** A kind of document and how to read it. */
export interface DocumentKind<Document> {
  /** Label in metrics. */
  readonly name: DocumentName
  /** Accept header of the request. */
  readonly accept: string
  /** `text`: the document is plain text, not JSON. */
  readonly form?: 'text'
  /** Throws a Fault that says what is wrong and where, without quoting the document. */
  parse(value: unknown, url: string, answer: GuardedAnswer): Document
  /** When the document expires, whatever the cache headers say. */
  untilMs?(document: Document): number | null
}

/** A document and how long it may be used. */
export interface Held<Document> {
  readonly document: Document
  /**
   * When its server was last asked. If this is later than `fetchedAtMs`, the server did not return the
   * document.
   */
  readonly askedAtMs: number
  readonly fetchedAtMs: number
  /** From then on the document is fetched again. */
  readonly freshUntilMs: number
  /** Until then the document is used if it cannot be fetched again. */
  readonly keptUntilMs: number
}

export interface DocumentSettings {
  /** `fetch.allow_private_addresses`: allows private addresses and http. */
  readonly allowPrivate: boolean
  nowMs(): number
  /** For the whole fetch, including the wait for a slot. */
  readonly timeoutMs?: number
  /** CA certificates (PEM) that replace the system's. */
  readonly ca?: string
  readonly lookup?: LookupFunction
  readonly metrics?: DocumentMetrics
  /** Fetches per minute over all hosts; each host has its own limit. */
  readonly perMinuteMax?: number
}

/** A document that cannot be fetched or used. The message names it and quotes nothing of it. */
export class DocumentUnusable extends Fault {
  /**
   * `wrong`: the document is invalid; `away`: its server is unavailable; `busy`: it was not requested,
   * because of a limit.
   */
  readonly kind: 'wrong' | 'away' | 'busy'

  constructor(kind: 'wrong' | 'away' | 'busy', url: string, why: string, options?: ErrorOptions) {
    super('DOCUMENT_UNUSABLE', `${url}: ${why}`, options)
    this.name = 'DocumentUnusable'
    this.kind = kind
  }
}

/**
 * Small JSON documents at URLs that clients choose. They are fetched with all guards, and cached as long as
 * their server allows, within limits. Concurrent callers share one fetch.
 */
export class Documents<Document> {
  readonly #kind: DocumentKind<Document>
  readonly #settings: DocumentSettings
  readonly #places: FetchPlaces
  readonly #known = new LRUCache<string, Entry<Document>>({
    max: ENTRIES_MAX,
    maxSize: REMEMBERED_BYTES_MAX,
    sizeCalculation: ({ bytes }) => bytes + ENTRY_BYTES,
  })
  readonly #onTheWay = new Map<string, Promise<Entry<Document>>>()
  readonly #stop = new AbortController()

  constructor(kind: DocumentKind<Document>, settings: DocumentSettings) {
    this.#kind = kind
    this.#settings = settings
    const { perMinuteMax } = settings
    this.#places = new FetchPlaces(perMinuteMax === undefined ? {} : { totalPerMinute: perMinuteMax })
  }

  /**
   * Throws a DocumentUnusable. A caller that misses something in the document passes `ageMaxMs` to force a
   * new fetch, which still happens at most once per `RETRY_MS`.
   */
  async get(url: string, ageMaxMs?: number): Promise<Document> {
    return (await this.find(url, ageMaxMs)).document
  }

  /** The same, with its times. */
  async find(url: string, ageMaxMs = Number.POSITIVE_INFINITY): Promise<Held<Document>> {
    const nowMs = this.#settings.nowMs()
    const problem = documentUrlProblem(url, this.#settings.allowPrivate)
    if (problem !== null) {
      this.#settings.metrics?.used(this.#kind.name, 'none', 0, nowMs)
      throw new DocumentUnusable('wrong', url.slice(0, URL_LENGTH_MAX), `it ${problem}`)
    }
    const known = this.#known.get(url)
    const isYoung = known !== undefined && nowMs - known.askedAtMs < Math.max(RETRY_MS, ageMaxMs)
    if (isYoung && nowMs < known.freshUntilMs) return this.#used(known, 'remembered', nowMs)
    const entry = this.#onTheWay.get(url) ?? this.#refresh(url, known ?? null, nowMs)
    return this.#used(await entry, 'fetched', nowMs)
  }

  /** Aborts fetches in progress. */
  close(): void {
    this.#stop.abort()
  }

  #used(entry: Entry<Document>, had: DocumentOrigin, nowMs: number): Held<Document> {
    const { fault, askedAtMs, fetchedAtMs } = entry
    const origin = fault !== undefined ? 'none' : askedAtMs > fetchedAtMs ? 'stale' : had
    this.#settings.metrics?.used(this.#kind.name, origin, Math.max(0, nowMs - fetchedAtMs), nowMs)
    if (entry.fault !== undefined) throw entry.fault
    return entry
  }

  #refresh(url: string, known: Entry<Document> | null, nowMs: number): Promise<Entry<Document>> {
    const fetching = this.#entry(url, known, nowMs).finally(() => this.#onTheWay.delete(url))
    this.#onTheWay.set(url, fetching)
    return fetching
  }

  async #entry(url: string, known: Entry<Document> | null, nowMs: number): Promise<Entry<Document>> {
    try {
      const entry = await this.#fetched(url, nowMs)
      this.#settings.metrics?.fetched(this.#kind.name, 'fetched')
      this.#known.set(url, entry)
      return entry
    } catch (error) {
      if (!(error instanceof DocumentUnusable)) throw error
      this.#settings.metrics?.fetched(this.#kind.name, outcomeOf(error))
      const isKept = known?.document !== undefined && nowMs < known.keptUntilMs && error.kind !== 'wrong'
      const times = { askedAtMs: nowMs, freshUntilMs: nowMs + RETRY_MS }
      const entry = isKept ? { ...known, ...times } : { fault: error, ...times, ...NOTHING }
      // Load from other callers must not turn a known document into an unknown one.
      if (isKept || error.kind !== 'busy') this.#known.set(url, entry)
      return entry
    }
  }

  async #fetched(url: string, nowMs: number): Promise<Entry<Document>> {
    const { allowPrivate, timeoutMs = TIMEOUT_MS, ca = null, lookup } = this.#settings
    const late = AbortSignal.timeout(timeoutMs)
    const signal = AbortSignal.any([this.#stop.signal, late])
    const startedMs = performance.now()
    const giveBack = await this.#places.take(new URL(url).hostname, nowMs, signal)
    if (giveBack === null) throw new DocumentUnusable('busy', url, BUSY)
    // If the wait for a slot took most of the time, a timeout does not show that the host is unavailable.
    const isLate = performance.now() - startedMs > timeoutMs / 2
    const headers = { accept: this.#kind.accept }
    const guards = { ca, allowPrivate, timeoutMs, bytesMax: DOCUMENT_BYTES_MAX }
    try {
      const asked = { url, headers, ...guards, ...(lookup !== undefined && { lookup }) }
      const answer = await guardedGet(asked, signal)
      const value = this.#kind.form === 'text' ? textIn(answer) : jsonIn(answer)
      const document = this.#kind.parse(value, url, answer)
      const untilMs = this.#kind.untilMs?.(document) ?? Number.POSITIVE_INFINITY
      // Leave time to fetch it again before it expires.
      const endingMs = untilMs - Math.min(ENDING_MS, Math.max(0, untilMs - nowMs) / 2)
      const freshUntilMs = Math.min(endingMs, nowMs + freshMs(answer.headers))
      const keptUntilMs = Math.min(untilMs, freshUntilMs + KEPT_MS)
      const times = { askedAtMs: nowMs, fetchedAtMs: nowMs, freshUntilMs, keptUntilMs }
      return { document, ...times, bytes: answer.body.length }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      if (isLate && late.aborted) throw new DocumentUnusable('busy', url, BUSY, { cause: error })
      throw new DocumentUnusable(isAway(error) ? 'away' : 'wrong', url, error.message, { cause: error })
    } finally {
      giveBack()
    }
  }
}

/** What is wrong with the URL of a document; `null`: nothing. */
export function documentUrlProblem(text: string, allowPrivate: boolean): string | null {
  if (text.length > URL_LENGTH_MAX) return `is longer than ${URL_LENGTH_MAX} characters`
  const url = URL.parse(text)
  if (url === null || !(url.protocol === 'https:' || (allowPrivate && url.protocol === 'http:')))
    return 'must be a URL with https://'
  if (url.username !== '' || url.password !== '') return 'has a user or a password in it'
  if (text.includes('#')) return 'has a fragment (#) in it'
  return null
}

type Entry<Document> = (
  | { readonly document: Document; readonly fault?: undefined }
  | { readonly document?: undefined; readonly fault: DocumentUnusable }
) & {
  readonly askedAtMs: number
  readonly fetchedAtMs: number
  readonly freshUntilMs: number
  /** Until then the document is used if it cannot be fetched again. */
  readonly keptUntilMs: number
  readonly bytes: number
}

function outcomeOf({ kind, cause }: DocumentUnusable): FetchOutcome {
  if (kind === 'busy') return 'busy'
  return cause instanceof FetchFault ? cause.reason : 'malformed'
}

/** A proxy in front of a server that is down may answer instead of it. */
function isAway(error: Fault): boolean {
  if (error.code === UNREADABLE) return true
  if (!(error instanceof FetchFault) || error.reason === 'address') return false
  return error.status === null || !GONE.has(error.status)
}

function jsonIn({ headers, body }: GuardedAnswer): unknown {
  const type = headers['content-type'] ?? ''
  if (!JSON_TYPE.test(type)) throw unreadable('its Content-Type is not JSON')
  let value: unknown
  const text = decoded(headers, body)
  try {
    value = JSON.parse(text)
  } catch {
    throw unreadable('it is not valid JSON')
  }
  const problem = shapeProblem(value)
  if (problem !== null)
    throw unreadable(problem.detail === 'is unknown' ? 'it has a member __proto__' : `it ${problem.detail}`)
  return value
}

function textIn({ headers, body }: GuardedAnswer): string {
  const type = headers['content-type'] ?? ''
  if (!TEXT_TYPE.test(type)) throw unreadable('its Content-Type is not text/plain')
  return decoded(headers, body)
}

function decoded(headers: IncomingHttpHeaders, body: Buffer): string {
  if (!PLAIN.has(headers['content-encoding'] ?? 'identity')) throw unreadable('it is compressed')
  if (!isUtf8(body)) throw unreadable('it is not UTF-8')
  return body.toString('utf8')
}

function unreadable(why: string): Fault {
  return new Fault(UNREADABLE, why)
}

/** How long the server allows caching, within limits. */
function freshMs(headers: IncomingHttpHeaders): number {
  const control = headers['cache-control'] ?? ''
  if (/\bno-(?:store|cache)\b/i.test(control)) return FRESH_MIN_MS
  const maxAge = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(control)?.[1]
  const wanted = maxAge === undefined ? FRESH_MS : Number(maxAge) * 1000
  return Math.min(FRESH_MAX_MS, Math.max(FRESH_MIN_MS, wanted))
}

/** Also used for a URL from which nothing was fetched. */
const BUSY = 'too much is fetched at the moment'
const NOTHING = { fetchedAtMs: 0, keptUntilMs: 0, bytes: 0 }
const UNREADABLE = 'DOCUMENT_UNREADABLE'
/** Key directories had a media type of their own before they became JSON. */
const JSON_TYPE = /^application\/(?:(?:[\w.-]{1,80}\+)?json|http-message-signatures-directory) *(?:;|$)/i
/** Servers of files may not know the type. */
const TEXT_TYPE = /^(?:text\/plain|application\/octet-stream) *(?:;|$)/i
const PLAIN = new Set(['', 'identity'])
const GONE: ReadonlySet<number> = new Set([404, 410])
const URL_LENGTH_MAX = 2_048
const TIMEOUT_MS = 5_000
const DOCUMENT_BYTES_MAX = 65_536
const FRESH_MS = 300_000
const FRESH_MIN_MS = 10_000
const FRESH_MAX_MS = 3_600_000
/** An hour to repair the server. A key that was removed from the document lives no longer than that. */
const KEPT_MS = 3_600_000
const ENDING_MS = 120_000
/** Low enough that repeated requests gain nothing. */
const RETRY_MS = 10_000
const ENTRIES_MAX = 2_000
const ENTRY_BYTES = 1_024
/** Size as sent; parsed documents take a few times as much. */
const REMEMBERED_BYTES_MAX = 8 * 1_048_576

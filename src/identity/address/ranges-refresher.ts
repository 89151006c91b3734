import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PublishedRanges } from '../../classify/known/published-ranges.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import { type Metrics, LabelledCounter } from '../../shared/metrics.ts'
import { FetchPlaces } from '../fetch/fetch-places.ts'
import { FetchFault, type FetchReason, guardedGet } from '../fetch/guarded-get.ts'
import { documentUrlProblem } from '../fetch/document-fetch.ts'
import { changeProblem } from './ranges-change.ts'
import { publishedRanges, rangesIn } from './ranges-document.ts'
import type { RangesStore } from './ranges-store.ts'

/** A published list that agents are verified against. */
export interface RangesInUse {
  readonly url: string
  /** The first agent that uses the list. */
  readonly agent: string
  /** `null`: no ranges are known yet. */
  readonly published: PublishedRanges | null
}

export interface RefreshSettings {
  /** `null`: fetching is off. */
  readonly refreshMs: number | null
  /** `fetch.allow_private_addresses`: allows private addresses and http. */
  readonly allowPrivate: boolean
  nowMs(): number
  /** CA certificates (PEM) that replace the system's. */
  readonly ca?: string
  readonly timeoutMs?: number
  readonly retryMs?: number
  readonly settleMs?: number
}

/**
 * Fetches the address lists that vendors publish, each on its own schedule, and stores those that changed. If
 * a fetch fails or its result is invalid, the previous list stays in use. Logs a failure or recovery once,
 * when the state changes.
 */
export class RangesRefresher {
  readonly #settings: RefreshSettings
  readonly #store: RangesStore
  readonly #log: Log
  readonly #changed: () => void
  readonly #outcomes = new LabelledCounter({ outcome: OUTCOMES })
  readonly #turns = new FetchPlaces(TURNS)
  readonly #stop = new AbortController()
  #lists = new Map<string, List>()
  #settling: NodeJS.Timeout | null = null

  /** `changed` is called when the store has new files. */
  constructor(settings: RefreshSettings, store: RangesStore, log: Log, changed: () => void) {
    this.#settings = settings
    this.#store = store
    this.#log = log
    this.#changed = changed
  }

  /** Sets the lists that agents are verified against from now on. */
  use(inUse: readonly RangesInUse[]): void {
    const before = this.#lists
    this.#lists = new Map()
    for (const each of inUse.slice(0, LISTS_MAX)) {
      const known = before.get(each.url)
      const list = known ?? new List(each)
      list.use(each)
      this.#lists.set(each.url, list)
      if (known === undefined) void this.#begin(list)
    }
    for (const [url, { timer }] of before) if (!this.#lists.has(url)) clearTimeout(timer)
  }

  /** Aborts fetches in progress. */
  close(): void {
    this.#stop.abort()
    for (const { timer } of this.#lists.values()) clearTimeout(timer)
  }

  addMetrics(metrics: Metrics): void {
    const age =
      'The age of each list of published addresses in use: since its fetch, or by its date. Labelled with the first agent that has it.'
    metrics.gauge('published_ranges_age_seconds', age, 'first', () =>
      [...this.#lists.values()].flatMap((list) => {
        const atMs = this.#knownAtMs(list)
        const { agent } = list.inUse
        return atMs === null
          ? []
          : [{ labels: { agent }, value: Math.max(0, this.#settings.nowMs() - atMs) / 1000 }]
      }),
    )
    if (this.#settings.refreshMs === null) return
    const outcomes = 'Fetches of lists of published addresses, by outcome.'
    metrics.counter('published_ranges_fetches_total', outcomes, () => this.#outcomes.samples())
    const failing = 'Lists of published addresses whose last fetch failed: an older list, or none, is in use.'
    metrics.gauge('published_ranges_failing', failing, 'first', () => [
      { labels: {}, value: [...this.#lists.values()].filter(({ trouble }) => trouble !== null).length },
    ])
  }

  /** When the ranges were last seen at the vendor, or else the date in the list. */
  #knownAtMs({ inUse: { published }, key, seen }: List): number | null {
    if (published === null) return null
    return seen !== null && seen.key === key ? seen.atMs : Date.parse(`${published.date}T00:00:00Z`)
  }

  /** Continues the schedule after a restart: a list that was seen recently is not fetched at once. */
  async #begin(list: List): Promise<void> {
    const { refreshMs, allowPrivate, nowMs } = this.#settings
    if (refreshMs === null) return
    const { url } = list.inUse
    const problem = documentUrlProblem(url, allowPrivate)
    if (problem !== null)
      return this.#log.info('a list of published addresses is not fetched', { url, problem })
    const seenMs = await this.#store.seenMs(url)
    if (seenMs !== null && list.key !== null) list.seen = { key: list.key, atMs: Math.min(seenMs, nowMs()) }
    const dueMs = seenMs === null ? 0 : Math.min(refreshMs, seenMs + refreshMs - nowMs())
    this.#later(list, dueMs <= 0 ? 0 : dueMs * (0.9 + 0.1 * Math.random()))
  }

  #later(list: List, delayMs: number): void {
    if (this.#stop.signal.aborted || this.#lists.get(list.inUse.url) !== list) return
    list.timer = setTimeout(() => void this.#beat(list), delayMs).unref()
  }

  async #beat(list: List): Promise<void> {
    await this.#refresh(list)
    const { refreshMs, retryMs = RETRY_MS } = this.#settings
    const { failuresInRow } = list
    const chance = Math.random()
    const delayMs =
      failuresInRow === 0
        ? refreshMs! * (0.9 + 0.2 * chance)
        : Math.min(refreshMs!, retryMs * 2 ** (failuresInRow - 1)) * (0.5 + 0.5 * chance)
    this.#later(list, delayMs)
  }

  async #refresh(list: List): Promise<void> {
    try {
      this.#outcomes.add(await this.#fetch(list))
      if (list.trouble !== null)
        this.#log.info('a list of published addresses is available again', { url: list.inUse.url })
      list.trouble = null
      list.failuresInRow = 0
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#failed(list, error)
    }
  }

  async #fetch(list: List): Promise<'new' | 'same'> {
    const { url } = list.inUse
    const { allowPrivate, timeoutMs = TIMEOUT_MS, ca = null, nowMs } = this.#settings
    const giveBack = await this.#turn(url)
    try {
      const headers = { accept: 'application/json, text/plain;q=0.9, */*;q=0.1', ...conditions(list) }
      const guards = { allowPrivate, timeoutMs, ca, bytesMax: RANGES_BYTES_MAX }
      const answer = await guardedGet({ url, headers, ...guards }, this.#stop.signal)
      if (answer.status === 304) return await this.#same(list)
      const ranges = rangesIn(answer.body)
      if (ranges === null) throw new Fault(INVALID, 'it is not a list of addresses in a known format')
      const published = publishedRanges(ranges, url, dayOf(nowMs()))
      const outcome = await this.#take(list, published)
      list.validators = {
        etag: textIn(answer.headers.etag),
        modified: textIn(answer.headers['last-modified']),
      }
      return outcome
    } finally {
      giveBack()
    }
  }

  /** Waits for a free slot: no request waits for this fetch. */
  async #turn(url: string): Promise<() => void> {
    const { hostname } = new URL(url)
    for (;;) {
      const giveBack = await this.#turns.take(hostname, this.#settings.nowMs(), this.#stop.signal)
      if (giveBack !== null) return giveBack
      await sleep(TURN_MS, undefined, { signal: this.#stop.signal, ref: false })
    }
  }

  async #take(list: List, published: PublishedRanges): Promise<'new' | 'same'> {
    const { url, published: before } = list.inUse
    const key = keyOf(published)
    if (list.key === key) return this.#same(list)
    const problem = before === null ? null : changeProblem(before.prefixes, published.prefixes)
    if (problem !== null) throw new Fault(HELD_BACK, problem)
    await this.#store.keep({ url, published })
    list.seen = { key, atMs: this.#settings.nowMs() }
    const ranges = { ranges: published.prefixes.length, before: before?.prefixes.length ?? 0 }
    this.#log.info('a list of published addresses has changed', { url, ...ranges })
    this.#sayChanged()
    return 'new'
  }

  /**
   * An unchanged list creates no new Snapshot, but its date is renewed from time to time so that it does not
   * expire.
   */
  async #same(list: List): Promise<'same'> {
    const {
      inUse: { url, published },
      key,
    } = list
    const nowMs = this.#settings.nowMs()
    if (published === null || key === null) return 'same'
    list.seen = { key, atMs: nowMs }
    if (nowMs - Date.parse(`${published.date}T00:00:00Z`) < REDATE_MS) await this.#store.saw(url)
    else {
      await this.#store.keep({ url, published: { ...published, date: dayOf(nowMs) } })
      this.#sayChanged()
    }
    return 'same'
  }

  /** Reports several changes at once: each report recompiles all signatures. */
  #sayChanged(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = null
      if (!this.#stop.signal.aborted) this.#changed()
    }, this.#settings.settleMs ?? SETTLE_MS).unref()
  }

  #failed(list: List, error: unknown): void {
    const { url } = list.inUse
    const reason = reasonOf(error)
    list.failuresInRow++
    // The list was rejected, so a 304 must not confirm it: drop the validators.
    if (reason !== 'network' && reason !== 'timeout') list.validators = null
    this.#outcomes.add(reason)
    if (reason === list.trouble) return
    list.trouble = reason
    const message = 'a list of published addresses was rejected: the previous list stays in use'
    if (!(error instanceof Fault)) return this.#log.error(message, { url, error: error as Error })
    const helps = reason === 'held-back' ? HELD_BACK_HELPS : null
    this.#log.warn(message, {
      url,
      reason,
      problems: error.message.split('\n').slice(0, PROBLEMS_SAID_MAX),
      ...(helps !== null && { helps }),
    })
  }
}

/** The state of one list. */
class List {
  inUse: RangesInUse
  /** Hash of the ranges in use. */
  key: string | null = null
  timer: NodeJS.Timeout | undefined
  failuresInRow = 0
  /** Why the last fetch failed; `null`: it succeeded. */
  trouble: Outcome | null = null
  validators: { readonly etag: string | null; readonly modified: string | null } | null = null
  /** When the ranges with this key were last fetched. */
  seen: { readonly key: string; readonly atMs: number } | null = null

  constructor(inUse: RangesInUse) {
    this.inUse = inUse
  }

  use(inUse: RangesInUse): void {
    this.inUse = inUse
    this.key = inUse.published === null ? null : keyOf(inUse.published)
  }
}

function reasonOf(error: unknown): Outcome {
  if (error instanceof FetchFault) return error.reason
  if (!(error instanceof Fault)) return 'bug'
  if (error.code === HELD_BACK) return 'held-back'
  return error.code === INVALID ? 'malformed' : 'storage'
}

function conditions({ validators }: List): Record<string, string> {
  return {
    ...(validators?.etag != null && { 'if-none-match': validators.etag }),
    ...(validators?.modified != null && { 'if-modified-since': validators.modified }),
  }
}

function textIn(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && header.length <= VALIDATOR_LENGTH_MAX && VALIDATOR.test(header)
    ? header
    : null
}

/** Hash of the ranges, independent of their order. */
function keyOf({ prefixes }: PublishedRanges): string {
  return createHash('sha256')
    .update([...prefixes].sort().join())
    .digest('base64')
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

type Outcome = (typeof OUTCOMES)[number]

const REASONS: readonly FetchReason[] = ['address', 'redirect', 'status', 'too-large', 'timeout', 'network']
const OUTCOMES = ['new', 'same', 'held-back', 'malformed', 'storage', 'bug', ...REASONS] as const
const HELD_BACK = 'RANGES_HELD_BACK'
/** The error code for invalid lists, the same as for bundled lists. */
const INVALID = 'RANGES_INVALID'
const HELD_BACK_HELPS = 'if it is right, put it into a file of signatures of your own'
const VALIDATOR = /^[!-~][ -~]*$/
const PROBLEMS_SAID_MAX = 3
const VALIDATOR_LENGTH_MAX = 512
/** Twice the longest known list: AhrefsBot has 10,000 ranges. */
const RANGES_BYTES_MAX = 4 * 1_048_576
const TIMEOUT_MS = 30_000
const RETRY_MS = 60_000
const TURN_MS = 5_000
const SETTLE_MS = 2_000
/** A list expires after 90 days. */
const REDATE_MS = 7 * 86_400_000
/** Many more than are bundled: feeds may add lists. */
const LISTS_MAX = 100
const TURNS = {
  totalMax: 4,
  hostMax: 2,
  waitingMax: LISTS_MAX,
  hostPerMinute: 60,
  totalPerMinute: Number.POSITIVE_INFINITY,
}

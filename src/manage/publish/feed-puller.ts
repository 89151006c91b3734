import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import { LabelledCounter } from '../../shared/metrics.ts'
import { FEED_REASONS, FeedFault, type FeedReason, refuseExpired, succession } from '../../plane/feed.ts'
import { type FeedPlace, fetchFeed } from './feed-fetch.ts'
import type { FeedStore, FeedTrust } from './feed-store.ts'

export interface FeedSettings extends FeedTrust, FeedPlace {
  readonly refreshMs: number
}

/**
 * Fetches each feed at its own interval and keeps versions that are newer and signed. If a fetch fails or its
 * content is invalid, the version that was kept before stays in use. A change of state is logged once.
 */
export class FeedPuller {
  readonly #store: FeedStore
  readonly #log: Log
  readonly #changed: () => void
  readonly #pulls: readonly FeedPull[]
  readonly #failures: LabelledCounter<'feed' | 'reason'>
  readonly #stop = new AbortController()

  /** `changed` is called when the store has new files. */
  constructor(feeds: readonly FeedSettings[], store: FeedStore, log: Log, changed: () => void) {
    this.#store = store
    this.#log = log
    this.#changed = changed
    this.#pulls = feeds.map((settings) => new FeedPull(settings))
    this.#failures = new LabelledCounter({ feed: feeds.map(({ name }) => name), reason: FEED_REASONS })
  }

  /** Fetches all feeds at once, then each one at its own interval. */
  start(): void {
    for (const pull of this.#pulls) void this.#beat(pull)
  }

  /** Fetches all feeds now; never rejects. */
  async pull(): Promise<void> {
    await Promise.all(this.#pulls.map((pull) => this.#anew(pull)))
  }

  /** Aborts the fetches in progress. */
  close(): void {
    this.#stop.abort()
    for (const { timer } of this.#pulls) clearTimeout(timer)
  }

  addMetrics(metrics: Metrics): void {
    const each = (value: (pull: FeedPull) => number | null) => () =>
      this.#pulls.flatMap((pull) => {
        const found = value(pull)
        return found === null ? [] : [{ labels: { feed: pull.settings.name }, value: found }]
      })
    const inUse = ({ settings }: FeedPull) => this.#store.inUse(settings.name)
    const version = each((pull) => inUse(pull).feed?.version ?? 0)
    metrics.gauge('feed_version', 'The version of each feed that is in use; 0: none.', 'first', version)
    const age = each((pull) => ageS(inUse(pull).feed?.createdMs))
    metrics.gauge('feed_age_seconds', 'The age of the version in use.', 'first', age)
    const expired = each((pull) =>
      Number((inUse(pull).feed?.expiresMs ?? Number.POSITIVE_INFINITY) <= Date.now()),
    )
    metrics.gauge('feed_expired', '1 while the version in use is expired.', 'first', expired)
    const pinned = each((pull) => Number(inUse(pull).pin !== null))
    metrics.gauge('feed_pinned', '1 while a pin holds newer versions back.', 'first', pinned)
    const success = each(({ successMs }) => (successMs === null ? null : successMs / 1000))
    const successHelp = 'When each feed was last fetched or found unchanged.'
    metrics.gauge('feed_last_success_timestamp_seconds', successHelp, 'first', success)
    const failuresHelp = 'Fetches of a feed that failed, by reason.'
    metrics.counter('feed_failures_total', failuresHelp, () => this.#failures.samples())
  }

  async #beat(pull: FeedPull): Promise<void> {
    await this.#once(pull)
    if (this.#stop.signal.aborted) return
    const delayMs = nextPullMs(pull.failuresInRow, pull.settings.refreshMs, Math.random())
    pull.timer = setTimeout(() => void this.#beat(pull), delayMs).unref()
  }

  /** A fetch in progress may be older than the change that the callers want. They share one more fetch. */
  #anew(pull: FeedPull): Promise<void> {
    if (pull.underWay === null) return this.#once(pull)
    pull.next ??= pull.underWay.then(() => {
      pull.next = null
      return this.#once(pull)
    })
    return pull.next
  }

  #once(pull: FeedPull): Promise<void> {
    pull.underWay ??= this.#pull(pull).finally(() => {
      pull.underWay = null
    })
    return pull.underWay
  }

  async #pull(pull: FeedPull): Promise<void> {
    try {
      await this.#fetch(pull)
      this.#succeeded(pull)
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#failed(pull, error)
    }
  }

  async #fetch(pull: FeedPull): Promise<void> {
    const { settings } = pull
    const { name, keys } = settings
    const newest = await this.#store.newest(settings)
    // The tagged version may be gone, because an operator may have removed it.
    const etag = newest !== null && newest.version === pull.tagged?.version ? pull.tagged.etag : null
    const fetched = await fetchFeed(settings, etag, this.#stop.signal)
    if (fetched === null) return refuseExpired(newest!, Date.now())
    const next = await this.#store.opener.open(fetched.body, name, keys)
    const step = succession(next, newest, Date.now())
    // An unchanged version is kept too: it may be signed with a new key, and the old one may be removed.
    await this.#store.keep(next, fetched.body)
    pull.tagged = fetched.etag === null ? null : { etag: fetched.etag, version: next.version }
    if (step === 'same') return
    const from = newest?.version ?? null
    const created = new Date(next.createdMs).toISOString()
    this.#log.info('a feed has a new version', { feed: name, version: next.version, from, created })
    this.#changed()
  }

  #succeeded(pull: FeedPull): void {
    pull.successMs = Date.now()
    pull.failuresInRow = 0
    if (pull.trouble !== null) this.#log.info('a feed is available again', { feed: pull.settings.name })
    pull.trouble = null
  }

  #failed(pull: FeedPull, error: unknown): void {
    const reason = error instanceof FeedFault ? error.reason : 'bug'
    const feed = pull.settings.name
    pull.failuresInRow++
    this.#failures.add(feed, reason)
    if (reason === pull.trouble) return
    pull.trouble = reason
    const message = 'a feed was rejected: the previous version stays in use'
    if (!(error instanceof FeedFault)) return this.#log.error(message, { feed, error: error as Error })
    const problems = error.message.split('\n').slice(0, PROBLEMS_SAID_MAX)
    this.#log.warn(message, { feed, reason, problems })
  }
}

/**
 * The delay until the next fetch. It varies, so that many gateways do not fetch at the same time. After a
 * failure it is shorter, and it doubles with each further failure. `chance` is in [0, 1).
 */
export function nextPullMs(failuresInRow: number, refreshMs: number, chance: number): number {
  if (failuresInRow === 0) return refreshMs * (0.9 + 0.2 * chance)
  return Math.min(refreshMs, RETRY_MS * 2 ** (failuresInRow - 1)) * (0.5 + 0.5 * chance)
}

/** The state of one feed. */
class FeedPull {
  readonly settings: FeedSettings
  underWay: Promise<void> | null = null
  next: Promise<void> | null = null
  timer: NodeJS.Timeout | undefined
  tagged: { readonly etag: string; readonly version: number } | null = null
  successMs: number | null = null
  failuresInRow = 0
  /** Why the last attempt failed; `null`: it succeeded. */
  trouble: FeedReason | 'bug' | null = null

  constructor(settings: FeedSettings) {
    this.settings = settings
  }
}

function ageS(createdMs: number | undefined): number | null {
  return createdMs === undefined ? null : Math.max(0, Date.now() - createdMs) / 1000
}

const RETRY_MS = 15_000
const PROBLEMS_SAID_MAX = 10

import { DAY_MS } from '../../classify/known/calendar.ts'

/**
 * The versions of one agent that clients claimed, with counts. A limit keeps the
 * most frequent and the most recent.
 */
export class VersionTally {
  readonly #versions = new Map<string, VersionCount>()

  /** Parses the output of `text`. */
  static parse(text: string): VersionTally {
    const tally = new VersionTally()
    for (const [version, requests, lastSeenMs] of JSON.parse(text) as readonly Row[])
      tally.add(version, requests, lastSeenMs)
    return tally
  }

  get text(): string {
    return JSON.stringify(this.#ranked().slice(0, KEPT_MAX))
  }

  /** Ranked by requests and recency. */
  get list(): readonly string[] {
    return this.#ranked().map(([version]) => version)
  }

  add(version: string, requests: number, seenAtMs: number): void {
    const known = this.#versions.get(version)
    if (known === undefined) {
      this.#versions.set(version, { requests, lastSeenMs: seenAtMs })
      return
    }
    known.requests += requests
    known.lastSeenMs = Math.max(known.lastSeenMs, seenAtMs)
  }

  join(others: VersionTally): void {
    for (const [version, { requests, lastSeenMs }] of others.#versions)
      this.add(version, requests, lastSeenMs)
  }

  #ranked(): readonly Row[] {
    const rows = [...this.#versions].map(([version, { requests, lastSeenMs }]): Row => {
      return [version, requests, lastSeenMs]
    })
    return rows.sort((one, other) => rank(other) - rank(one) || (one[0] < other[0] ? -1 : 1))
  }
}

interface VersionCount {
  requests: number
  lastSeenMs: number
}

type Row = readonly [version: string, requests: number, lastSeenMs: number]

/** Twice as many requests count as much as one day, so that made-up versions do not displace common ones. */
function rank([, requests, lastSeenMs]: Row): number {
  return lastSeenMs / DAY_MS + Math.log2(requests)
}

/** At most 4 KiB. */
const KEPT_MAX = 64

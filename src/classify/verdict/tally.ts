import type { AskedFor } from './asked.ts'
import { EvidenceSet } from '../known/evidence.ts'

/**
 * Counts the recent requests of one client, or of all clients with one fingerprint: in the current time
 * window and in the one before. Its size does not grow with the number of requests.
 */
export class Tally {
  /** Both windows together. */
  #both = new Counts()
  /** The current window. */
  #current = new Counts()
  #endsMs = 0
  #lastPath = 0
  /**
   * The length of the current run: pages linked from the same page, each requested sooner than a person can
   * read.
   */
  #run = 0
  #runFrom = 0
  #runMs = 0
  /** When a person would have read all pages so far. */
  #readMs = 0

  /** `network`: any number that identifies the client's network. */
  note(asked: AskedFor, target: string, referer: string | null, network: number, nowMs: number): void {
    this.#turn(nowMs)
    if (asked === 'robots' && this.#both.requests === 0) this.#show('robots-first')
    if (asked === 'sitemap') {
      this.#show('asks-sitemap')
      // It read what it may request, and then requested the list of all pages.
      if (this.marks.has('robots-first')) this.#show('crawls')
    }
    this.#both.requests++
    this.#current.requests++
    if (asked === 'part' || asked === 'aside') {
      this.#both.parts++
      this.#current.parts++
    } else if (asked === 'page' || asked === 'check') {
      const path = hashOfPath(target)
      if (path === this.#lastPath) return
      this.#lastPath = path
      this.#page(path, network, nowMs)
      if (asked === 'check') this.#follow(HEADS, HEADS_OF_RUN, nowMs)
      else if (referer !== null) this.#follow(hashOf(referer, referer.length), LINKS_OF_RUN, nowMs)
    }
  }

  clear(): void {
    this.#both.clear()
    this.#current.clear()
    this.#endsMs = 0
    this.#lastPath = 0
    this.#run = 0
    this.#runFrom = 0
    this.#runMs = 0
    this.#readMs = 0
  }

  get marks(): EvidenceSet {
    return this.#both.marks
  }

  /** Whether a page resource was requested. */
  get hasParts(): boolean {
    return this.#both.parts > 0
  }

  /** Whether almost no page resources were requested. */
  get isBare(): boolean {
    return this.#both.parts * PAGES_A_PART < this.#both.pages
  }

  /** Whether many pages are requested from many networks. */
  get isFromMany(): boolean {
    const { paths, networks } = this.#both
    return networks.size >= NETWORKS_OF_MANY && paths.size >= PATHS_OF_MANY
  }

  #page(path: number, network: number, nowMs: number): void {
    this.#both.page(path, network)
    this.#current.page(path, network)
    if (this.#both.paths.size >= PATHS_BROAD) this.#show('asks-broadly')
    const aheadMs = Math.min(Math.max(this.#readMs - nowMs, 0), READ_AHEAD_MS)
    if (aheadMs === READ_AHEAD_MS) this.#show('asks-fast')
    this.#readMs = nowMs + aheadMs + READ_MS
  }

  /**
   * `from`: the page with the link. Redirects do not count as a run: there are few, or each comes from the
   * one before.
   */
  #follow(from: number, pagesMin: number, nowMs: number): void {
    this.#run = from === this.#runFrom && nowMs - this.#runMs <= RUN_GAP_MS ? this.#run + 1 : 1
    this.#runFrom = from
    this.#runMs = nowMs
    if (this.#run >= pagesMin) this.#show('crawls')
  }

  #show(kind: Shown): void {
    this.#both.marks.add(kind)
    this.#current.marks.add(kind)
  }

  #turn(nowMs: number): void {
    const leftMs = this.#endsMs - nowMs
    if (leftMs > 0 && leftMs <= WINDOW_MS) return
    const before = this.#both
    this.#both = this.#current
    this.#current = before
    this.#current.clear()
    this.#endsMs = nowMs + WINDOW_MS
    if (leftMs > -WINDOW_MS && leftMs <= 0) return
    // No request came for a whole window, or the clock went back.
    this.#both.clear()
    this.#readMs = 0
    this.#run = 0
  }
}

type Shown = 'robots-first' | 'asks-sitemap' | 'crawls' | 'asks-broadly' | 'asks-fast'

/** Of one window or of two. */
class Counts {
  requests = 0
  pages = 0
  parts = 0
  readonly paths = new Spread()
  readonly networks = new Spread()
  readonly marks = new EvidenceSet()

  page(path: number, network: number): void {
    this.pages++
    this.paths.add(path)
    this.networks.add(network)
  }

  clear(): void {
    this.requests = 0
    this.pages = 0
    this.parts = 0
    this.paths.clear()
    this.networks.clear()
    this.marks.clear()
  }
}

/**
 * Estimates the number of different hashes. Each hash sets one of 64 bits, so n different ones set about
 * 64·(1 − e^(−n/64)).
 */
class Spread {
  size = 0
  #low = 0
  #high = 0

  add(hash: number): void {
    const bit = 1 << (hash & 31)
    const isLow = (hash & 32) === 0
    if (((isLow ? this.#low : this.#high) & bit) !== 0) return
    if (isLow) this.#low |= bit
    else this.#high |= bit
    this.size++
  }

  clear(): void {
    this.size = 0
    this.#low = 0
    this.#high = 0
  }
}

/**
 * Hashes a path without its query, by its length and its end. A client that makes similar paths only lowers
 * its own count.
 */
function hashOfPath(target: string): number {
  const query = target.indexOf('?')
  return hashOf(target, query === -1 ? target.length : query)
}

export function hashOf(text: string, end: number): number {
  let hash = end
  for (let i = Math.max(0, end - HASHED_MAX); i < end; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 0x2c1b3c6d)
  return hash ^ (hash >>> 13)
}

export const WINDOW_MS = 5 * 60_000
const HASHED_MAX = 64
/** Corresponds to 24 different pages. */
const PATHS_BROAD = 20
/**
 * A person who opens all links of a page, or restores a browser window, opens fewer pages at once than this
 * allows.
 */
const READ_AHEAD_MS = 40_000
const READ_MS = 2000
/** The source of HEAD requests: no page links to them. */
const HEADS = 0
const HEADS_OF_RUN = 4
const LINKS_OF_RUN = 3
const RUN_GAP_MS = 2000
const NETWORKS_OF_MANY = 8
/** Corresponds to 63 different pages. */
const PATHS_OF_MANY = 40
const PAGES_A_PART = 20

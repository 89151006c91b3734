import type { Asked } from './asked.ts'
import { EvidenceSet } from '../known/evidence.ts'

/**
 * What one client, or everybody with one fingerprint, has asked for lately: in the window of time that runs and in the one
 * before it. It is as large after a million requests as after one.
 */
export class Tally {
  /** Of both windows. */
  #both = new Counts()
  /** Of the one that runs. */
  #current = new Counts()
  #endsMs = 0
  #lastPath = 0
  /** Pages that one page links to, each asked for sooner after the one before than anybody reads. */
  #run = 0
  #runFrom = 0
  #runMs = 0
  /** When a person would have read the pages so far. */
  #readMs = 0

  /** `network`: any number that stands for where it comes from. */
  note(asked: Asked, target: string, referer: string | null, network: number, nowMs: number): void {
    this.#turn(nowMs)
    if (asked === 'robots' && this.#both.requests === 0) this.#show('robots-first')
    if (asked === 'sitemap') {
      this.#show('asks-sitemap')
      // What it may ask for, and then all there is.
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

  /** Something that belongs to pages was asked for. */
  get hasParts(): boolean {
    return this.#both.parts > 0
  }

  /** Next to nothing was. */
  get isBare(): boolean {
    return this.#both.parts * PAGES_A_PART < this.#both.pages
  }

  /** Many pages are asked for from many places. */
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

  /** `from`: the page that links here. Redirects are no such run: there are few of them, or each comes from the one before. */
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
    // Nothing came for a whole window, or the clock went back.
    this.#both.clear()
    this.#readMs = 0
    this.#run = 0
  }
}

type Shown = 'robots-first' | 'asks-sitemap' | 'crawls' | 'asks-broadly' | 'asks-fast'

/** Of one window, or of two. */
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

/** How many different ones there were, more or less: each hash is one of 64 bits, so that n of them are 64·(1 − e^(−n/64)). */
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

/** Of a path without its query, by its length and what it ends with. Whoever makes paths that are alike has asked for less. */
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
/** 24 different pages. */
const PATHS_BROAD = 20
/** Who opens all that is on a page, or a window with all it had yesterday, opens fewer pages at once than this many. */
const READ_AHEAD_MS = 40_000
const READ_MS = 2000
/** Those come from no page. */
const HEADS = 0
const HEADS_OF_RUN = 4
const LINKS_OF_RUN = 3
const RUN_GAP_MS = 2000
const NETWORKS_OF_MANY = 8
/** 63 different pages. */
const PATHS_OF_MANY = 40
const PAGES_A_PART = 20

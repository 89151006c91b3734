import { type Campaign, CampaignFinder } from '../../src/classify/campaign/finder.ts'
import { REQUEST_KIND, type SeenRequest } from '../../src/classify/campaign/seen-request.ts'
import { networkHash } from '../../src/manage/intake/sighting-intake.ts'
import { mixed } from '../../src/wire/network-hash.ts'

/** The same sequence for the same seed (mulberry32). */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }

  below(max: number): number {
    return Math.floor(this.next() * max)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** A few pages are read by nearly everybody. */
  zipf(count: number): number {
    return Math.min(count - 1, Math.floor(count ** this.next()) - 1)
  }
}

export const SALT = 0x5eed
export const SITE = 7
export const PAGES = 20_000

export interface Browser {
  readonly program: number
  readonly order: number
}

/** The most common one has number 0. */
export function browser(number: number): Browser {
  return { program: mixed(number + 1), order: mixed(number + 1000) }
}

/** How often people look like a crawler on this site. */
export interface Habits {
  /** All parts are in the cache of the browser. */
  readonly cached: number
  /** One more page is opened without a link. */
  readonly direct: number
  /** The parts come from another host. */
  readonly partsElsewhere: boolean
}

export const USUAL: Habits = { cached: 0.04, direct: 0.1, partsElsewhere: false }

/** The requests of one person: landing, parts, links, and now and then a page of a bookmark. */
export function person(
  dice: Dice,
  addressOf: () => string,
  { program, order }: Browser,
  fromMs: number,
  { cached, direct, partsElsewhere }: Habits = USUAL,
): SeenRequest[] {
  const requests: SeenRequest[] = []
  const isCached = dice.chance(cached)
  let atMs = fromMs
  const add = (kind: number, target: number, ms: number) =>
    requests.push({
      ...{ network: networkHash(addressOf(), SALT), host: SITE, program, order, kind, target, atMs: ms },
    })
  const page = (kind: number) => {
    add(kind, dice.zipf(PAGES), atMs)
    const parts = isCached || partsElsewhere ? 0 : 1 + dice.below(12)
    for (let i = 0; i < parts; i++) add(REQUEST_KIND.part, PAGES + dice.below(500), atMs + dice.below(1_500))
  }
  page(REQUEST_KIND.page)
  while (dice.chance(0.6)) {
    atMs += 4_000 + dice.below(60_000)
    page(dice.chance(direct) ? REQUEST_KIND.page : REQUEST_KIND.followed)
  }
  return requests
}

export interface Crawl {
  readonly requests: number
  readonly perSecond: number
  /** Which address sends request number `i`. */
  addressOf(i: number): string
  /** From 0, like a clock, to 1. */
  readonly jitter?: number
  readonly browser?: Browser
  targetOf?(i: number): number
}

export function crawl(dice: Dice, fromMs: number, of: Crawl): SeenRequest[] {
  const { program, order } = of.browser ?? browser(0)
  const stepMs = 1_000 / of.perSecond
  return Array.from({ length: of.requests }, (_, i) => ({
    network: networkHash(of.addressOf(i), SALT),
    host: SITE,
    program,
    order,
    kind: REQUEST_KIND.page,
    target: of.targetOf?.(i) ?? 100_000 + i,
    atMs: fromMs + i * stepMs + (dice.next() - 0.5) * (of.jitter ?? 0) * stepMs,
  }))
}

export function ipv4(number: number): string {
  return `${10 + (number >>> 24)}.${(number >>> 16) & 255}.${(number >>> 8) & 255}.${number & 255}`
}

export interface Played {
  readonly finder: CampaignFinder
  readonly found: readonly Campaign[]
  /** How many requests of the crawl had come when the first campaign was found; `null`: none was found. */
  readonly crawled: number | null
}

/** Plays requests in order of time. */
export function play(
  requests: readonly SeenRequest[],
  isOfCrawl: (request: SeenRequest) => boolean = () => false,
  finder = newFinder(),
): Played {
  const sorted = requests.toSorted((a, b) => a.atMs - b.atMs)
  const found: Campaign[] = []
  let crawled: number | null = null
  let ofCrawl = 0
  const look = (nowMs: number) => {
    if (finder.isDue(nowMs)) found.push(...finder.look(nowMs).found)
    if (found.length > 0) crawled ??= ofCrawl
  }
  for (const [i, request] of sorted.entries()) {
    finder.note(request)
    if (isOfCrawl(request)) ofCrawl++
    if (i % BATCH === 0) look(request.atMs)
  }
  for (let s = 1; s <= 30; s++) look(sorted.at(-1)!.atMs + s * 1_000)
  return { finder, found, crawled }
}

/** A proxy sends its Sightings in batches. */
const BATCH = 16

export function newFinder(slots?: number): CampaignFinder {
  let count = 0
  const options = { salt: SALT, newId: () => `cmp_${++count}` }
  return new CampaignFinder(slots === undefined ? options : { ...options, slots })
}

export function joinedIn({ finder }: Played): ReadonlySet<number> {
  return new Set(finder.campaigns.flatMap(({ members }) => [...members.keys()]))
}

export const BEGIN_MS = Date.UTC(2026, 0, 1)
export const CRAWL_MS = BEGIN_MS + 600_000
export const CRAWLER = 200 << 16

export interface Place {
  addressOf(person: number, dice: Dice): () => string
  readonly habits?: Habits
  readonly browsers?: number
}

/** People over half an hour. Half of them have the most common browser, in its only version. */
export function people(
  dice: Dice,
  count: number,
  { addressOf, habits = USUAL, browsers = 9 }: Place = HOMES,
) {
  const requests = []
  for (let i = 0; i < count; i++) {
    const which = browser(browsers === 1 || dice.chance(0.5) ? 0 : 1 + dice.below(browsers - 1))
    const fromMs = BEGIN_MS + dice.below(1_800_000)
    requests.push(...person(dice, addressOf(i, dice), which, fromMs, habits))
  }
  return requests
}

export const HOMES: Place = { addressOf: (i) => () => ipv4(i) }

export function crawlFrom(dice: Dice, addresses: number, more: Partial<Crawl> = {}): Crawl {
  const addressOf = () => ipv4(CRAWLER + dice.below(addresses))
  return { requests: 1_500, perSecond: 20, jitter: 1, addressOf, ...more }
}

export function isOfCrawl(addresses: number): (request: { readonly network: number }) => boolean {
  const of = Array.from({ length: addresses }, (_, i) => networkHash(ipv4(CRAWLER + i), SALT))
  const networks = new Set(of)
  return ({ network }) => networks.has(network)
}

/** Plays a crawl among people, and returns how it was joined. */
export function playCrawl(
  seed: number,
  count: number,
  addresses: number,
  more: Partial<Crawl> = {},
  place = HOMES,
) {
  const dice = new Dice(seed)
  const isCrawl = isOfCrawl(addresses)
  const requests = [...people(dice, count, place), ...crawl(dice, CRAWL_MS, crawlFrom(dice, addresses, more))]
  const played = play(requests, isCrawl)
  const joined = [...joinedIn(played)]
  const wrong = joined.filter((network) => !isCrawl({ network })).length
  return { ...played, joined: joined.length - wrong, wrong }
}

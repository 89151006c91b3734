import { type Coverage, coverageOf, type Crowd, crowdsIn } from './crowds.ts'
import { Evenness } from './evenness.ts'
import { judgeCrowd, sitesOf } from './judge-crowd.ts'
import { CAMPAIGNS_MAX, MEMBERS_MAX } from './members.ts'
import { REQUEST_KIND, type SeenRequest } from './seen-request.ts'
import { COHORT, FIRST_TICK, levelOf, NETWORK, PAGES, STATE, Visitors, WORDS } from './visitors.ts'

/** A crawler that is spread over many addresses. */
export interface Campaign {
  readonly id: string
  readonly cohort: number
  /** Hash of the browser's fingerprints and version. Its members are joined to the campaign with it only. */
  readonly program: number
  readonly host: number
  readonly foundAtMs: number
  /** Salted hashes of the networks, and when each last requested a page. */
  readonly members: Map<number, number>
  lastSeenMs: number
  /** Pages that members requested since it was found. */
  requests: number
  signs: CampaignSigns
}

/** Why it is a campaign: what the crowd did when it was last compared with the others. */
export interface CampaignSigns {
  /** Networks that requested pages without parts and links. */
  readonly addresses: number
  /** Networks with the same browser and headers that behave like people. */
  readonly people: number
  /** How many different pages a network has to request, without parts and links, to be joined. */
  readonly pagesMin: number
  readonly coverage: Coverage
  /** The variation of the gaps between pages; `null`: unknown. */
  readonly variation: number | null
}

export interface FinderOptions {
  /** Keeps clients from choosing addresses whose hashes collide. */
  readonly salt: number
  newId(): string
  readonly slots?: number
}

/**
 * Finds campaigns in the requests of all proxies. It needs no clock of its own: `note` takes each request, and
 * `look` compares the crowds every few seconds.
 */
export class CampaignFinder {
  readonly salt: number
  readonly #visitors: Visitors
  readonly #newId: () => string
  /** By cohort. */
  readonly #campaigns = new Map<number, Campaign>()
  /** The gaps between bare pages of the crowds that are large enough. */
  #gaps = new Map<number, Evenness>()
  /** Pages without parts and links since the last `look`. */
  #barePages = 0
  #lookedAtMs = 0
  #isChanged = false

  constructor({ salt, newId, slots }: FinderOptions) {
    this.salt = salt
    this.#newId = newId
    this.#visitors = new Visitors(slots)
  }

  /** The running campaigns, the oldest first. */
  get campaigns(): readonly Campaign[] {
    return [...this.#campaigns.values()]
  }

  get bytes(): number {
    return this.#visitors.bytes
  }

  /** Whether enough has come since the last `look`. */
  isDue(nowMs: number): boolean {
    const sinceMs = nowMs - this.#lookedAtMs
    return this.#barePages >= LOOK_PAGES ? sinceMs >= LOOK_MIN_MS : sinceMs >= LOOK_MAX_MS
  }

  /** A campaign that another process found, or an earlier one. Its members must have the same salt. */
  restore(campaign: Campaign): void {
    this.#campaigns.set(campaign.cohort, campaign)
  }

  note(seen: SeenRequest): void {
    const { words } = this.#visitors
    const at = this.#visitors.note(seen)
    if (at === -1) return
    const cohort = words[at + COHORT]!
    if (cohort === 0) return
    if (words[at + STATE] !== 0) {
      if (this.#campaigns.size === 0) return
      const campaign = this.#campaigns.get(cohort)
      if (campaign?.members.delete(seen.network) === true) this.#isChanged = true
      return
    }
    if (seen.kind !== REQUEST_KIND.page) return
    this.#barePages++
    this.#gaps.get(cohort)?.note(seen.atMs)
    const campaign = this.#campaigns.get(cohort)
    if (campaign?.members.has(seen.network) !== true) return
    campaign.members.set(seen.network, seen.atMs)
    campaign.lastSeenMs = Math.max(campaign.lastSeenMs, seen.atMs)
    campaign.requests++
  }

  /** As if the network had sent no request. */
  forget(network: number): void {
    this.#visitors.forget(network)
    for (const { members } of this.campaigns) if (members.delete(network)) this.#isChanged = true
  }

  /** Compares the crowds; call it when `isDue`. Returns the campaigns that are new, and whether members came or went. */
  look(nowMs: number): { readonly found: readonly Campaign[]; readonly isChanged: boolean } {
    this.#barePages = 0
    this.#lookedAtMs = nowMs
    this.#end(nowMs)
    const crowds = crowdsIn(this.#visitors, nowMs)
    // The largest first: a flood of invented crowds must not take the place of a large one.
    const bySize = [...crowds.values()].sort((a, b) => b.bare[0] - a.bare[0])
    this.#watch(bySize)
    const sites = sitesOf(crowds)
    const found: Campaign[] = []
    for (const crowd of bySize) {
      const known = this.#campaigns.get(crowd.cohort)
      const gaps = this.#gaps.get(crowd.cohort)
      const judgement = judgeCrowd(crowd, sites.get(crowd.host)!, {
        isEven: gaps?.isEven === true,
        coverage: (level) => coverageOf(this.#visitors, crowd, level),
      })
      if (known === undefined && !(judgement.isCampaign && found.length < FOUND_MAX && this.#hasRoom(nowMs)))
        continue
      const campaign = known ?? this.#begin(crowd, nowMs)
      if (known === undefined) found.push(campaign)
      const { addresses, people, pagesMin, coverage } = judgement
      campaign.signs = { addresses, people, pagesMin, coverage, variation: gaps?.variation ?? null }
    }
    if (this.#campaigns.size > 0) this.#join(nowMs)
    const isChanged = this.#isChanged || found.length > 0
    this.#isChanged = false
    return { found, isChanged }
  }

  #begin({ cohort, program, host }: Crowd, nowMs: number): Campaign {
    const members = new Map<number, number>()
    const id = this.#newId()
    const begun = { id, cohort, program, host, foundAtMs: nowMs, lastSeenMs: nowMs, requests: 0 }
    const campaign = { ...begun, members, signs: NO_SIGNS }
    this.#campaigns.set(cohort, campaign)
    return campaign
  }

  /** Adds the networks whose behavior is that of a campaign. */
  #join(nowMs: number): void {
    const { words } = this.#visitors
    const settledTick = this.#visitors.tickOf(nowMs - JOIN_SETTLE_MS)
    for (let at = 0; at < words.length; at += WORDS) {
      if (words[at + PAGES] === 0 || words[at + STATE] !== 0 || words[at + FIRST_TICK]! > settledTick)
        continue
      const campaign = this.#campaigns.get(words[at + COHORT]!)
      if (campaign === undefined) continue
      const { members, signs } = campaign
      if (signs.pagesMin === 0 || levelOf(words[at + PAGES]!) < signs.pagesMin) continue
      const network = words[at + NETWORK]!
      if (members.has(network) || members.size >= MEMBERS_MAX) continue
      members.set(network, nowMs)
      this.#isChanged = true
    }
  }

  #end(nowMs: number): void {
    for (const [cohort, { lastSeenMs, members }] of this.#campaigns) {
      if (nowMs - lastSeenMs > ENDED_MS) {
        this.#campaigns.delete(cohort)
        this.#isChanged = true
        continue
      }
      for (const [network, seenMs] of members) {
        if (nowMs - seenMs <= MEMBER_MS) continue
        members.delete(network)
        this.#isChanged = true
      }
    }
  }

  /** The one that was seen longest ago makes room, unless it goes on. */
  #hasRoom(nowMs: number): boolean {
    if (this.#campaigns.size < CAMPAIGNS_MAX) return true
    const [first] = this.campaigns.toSorted((a, b) => a.lastSeenMs - b.lastSeenMs)
    if (nowMs - first!.lastSeenMs < IDLE_MS) return false
    return this.#campaigns.delete(first!.cohort)
  }

  #watch(bySize: readonly Crowd[]): void {
    const large = bySize.slice(0, WATCHED_MAX)
    this.#gaps = new Map(
      large.map(({ cohort }) => [cohort, this.#gaps.get(cohort) ?? new Evenness()] as const),
    )
  }
}

const NO_SIGNS: CampaignSigns = {
  addresses: 0,
  people: 0,
  pagesMin: 0,
  coverage: { targets: 0, distinct: 0 },
  variation: null,
}
/** After this many pages without parts and links, it is time to look again. */
export const LOOK_PAGES = 256
const LOOK_MIN_MS = 1_000
const LOOK_MAX_MS = 5_000
const IDLE_MS = 60_000
/** New campaigns each time: there is an event for each. */
export const FOUND_MAX = 4
const WATCHED_MAX = 64
/** A network becomes a member when its first page had this long to load its parts. */
const JOIN_SETTLE_MS = 5_000
/** A network that goes on is a member for as long. */
const MEMBER_MS = 21_600_000
export const ENDED_MS = 3_600_000

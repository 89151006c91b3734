import { randomInt } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type Campaign, CampaignFinder, ENDED_MS } from '../../classify/campaign/finder.ts'
import { CAMPAIGNS_MAX, type CampaignList } from '../../classify/campaign/members.ts'
import { REQUEST_KIND } from '../../classify/campaign/seen-request.ts'
import type { Sighting } from '../../plane/sighting.ts'
import type { Log } from '../../shared/log.ts'
import type { Store } from '../../store/store.ts'
import { newId } from '../http/ids.ts'
import {
  campaignOf,
  type CampaignRecord,
  NO_FACTS,
  parseCampaign,
  type ProgramFacts,
  recordOf,
} from './campaign-record.ts'
import { blank, type Names, packSeen, readSeen, unpackSeen } from './campaign-signs.ts'

export interface CampaignLinks {
  readonly store: Pick<Store, 'campaigns' | 'settings'>
  readonly log: Log
  /** Whether other managers receive Sightings too. Then the leader counts those of all. */
  readonly isShared: boolean
  /** Sends the running campaigns to the proxies. */
  publish(list: CampaignList): void
  /** Reports campaigns: each with the pages that its members requested since the last report. */
  report(active: readonly ActiveCampaign[]): Promise<void>
}

export interface ActiveCampaign {
  readonly record: CampaignRecord
  readonly isNew: boolean
  readonly requests: number
}

/** Finds campaigns in stored Sightings, keeps them in the database and tells the proxies of them. */
export class Campaigns {
  readonly #links: CampaignLinks
  /** `null`: not in charge yet. */
  #finder: CampaignFinder | null = null
  #ranAtMs = 0
  #publishedAtMs = 0
  #isUnpublished = false
  #writtenAtMs = 0
  #isUnwritten = false
  readonly #reported = new Map<string, number>()
  readonly #programs = new LRUCache<number, ProgramFacts>({ max: NAMES_MAX })
  readonly #hosts = new LRUCache<number, string>({ max: NAMES_MAX })
  readonly #names: Names = {
    program: (hash, { software, userAgent, stable, http2, ja4 }) => {
      if (!this.#programs.has(hash)) this.#programs.set(hash, { software, userAgent, stable, http2, ja4 })
    },
    host: (hash, text) => {
      if (!this.#hosts.has(hash)) this.#hosts.set(hash, text)
    },
  }
  #salt: number | null = null
  #isFailing = false
  #found = 0

  constructor(links: CampaignLinks) {
    this.#links = links
  }

  /** Call it with Sightings that were stored. */
  take(batch: readonly Sighting[]): void {
    const seen = batch.filter(({ requestKind }) => requestKind !== REQUEST_KIND.other)
    if (seen.length === 0) return
    if (this.#links.isShared) {
      // Not awaited: Sightings must not wait for it, and a loss only delays the discovery.
      this.#leave(seen).then(
        () => {
          this.#isFailing = false
        },
        (error: Error) => {
          if (!this.#isFailing) this.#links.log.warn('requests are not counted for campaigns', { error })
          this.#isFailing = true
        },
      )
      return
    }
    const finder = this.#finder
    if (finder === null) return
    for (const sighting of seen) {
      if (!isTimely(sighting.seenAtMs, this.#ranAtMs)) continue
      readSeen(sighting, finder.salt, SEEN, this.#names)
      finder.note(SEEN)
    }
  }

  /** Call it once a second, on the leader only. */
  async run(nowMs: number): Promise<'done' | 'more'> {
    const finder = await this.#inCharge(nowMs)
    const isMore = await this.#takeLeft(finder, nowMs)
    if (!finder.isDue(nowMs)) return isMore ? 'more' : 'done'
    const { found, isChanged } = finder.look(nowMs)
    this.#found += found.length
    if (isChanged) this.#isUnpublished = this.#isUnwritten = true
    if (found.length > 0 || nowMs - this.#writtenAtMs >= WRITE_MS) await this.#write(finder, found, nowMs)
    if (this.#isUnpublished && (found.length > 0 || nowMs - this.#publishedAtMs >= PUBLISH_MS))
      this.#publish(finder, nowMs)
    return isMore ? 'more' : 'done'
  }

  get running(): readonly Campaign[] {
    return this.#finder?.campaigns ?? []
  }

  /** How many campaigns this process found. */
  get found(): number {
    return this.#found
  }

  /** The finder of this process. A process that was not in charge for a while begins with the stored campaigns. */
  async #inCharge(nowMs: number): Promise<CampaignFinder> {
    const isGone = nowMs - this.#ranAtMs > AWAY_MS
    this.#ranAtMs = nowMs
    if (this.#finder !== null && !(isGone && this.#links.isShared)) return this.#finder
    const { store } = this.#links
    const salt = await campaignSalt(store, nowMs)
    const finder = new CampaignFinder({ salt, newId: () => newId('cmp') })
    for (const { document } of await store.campaigns.since(nowMs - ENDED_MS, CAMPAIGNS_MAX)) {
      const record = parseCampaign(document)
      if (record === null || record.salt !== salt) continue
      finder.restore(campaignOf(record, nowMs))
      const { software, userAgent, stable, http2, ja4 } = record
      this.#programs.set(record.program, { software, userAgent, stable, http2, ja4 })
      if (record.host !== null) this.#hosts.set(record.hostHash, record.host)
      this.#reported.set(record.id, record.requests)
    }
    this.#finder = finder
    if (finder.campaigns.length > 0) this.#publish(finder, nowMs)
    return finder
  }

  async #leave(seen: readonly Sighting[]): Promise<void> {
    const { store } = this.#links
    this.#salt ??= await campaignSalt(store, Date.now())
    await store.campaigns.leave(packSeen(seen, this.#salt), Date.now())
  }

  async #takeLeft(finder: CampaignFinder, nowMs: number): Promise<boolean> {
    const texts = await this.#links.store.campaigns.take(LEFT_AT_ONCE)
    for (const text of texts) {
      const forgotten = unpackSeen(text, this.#names, (seen) => {
        if (isTimely(seen.atMs, nowMs)) finder.note(seen)
      })
      for (const network of forgotten) finder.forget(network)
    }
    return texts.length === LEFT_AT_ONCE
  }

  async #write(finder: CampaignFinder, found: readonly Campaign[], nowMs: number): Promise<void> {
    this.#writtenAtMs = nowMs
    const active = finder.campaigns.map((campaign) => {
      const record = recordOf(campaign, finder.salt, {
        ...(this.#programs.get(campaign.program) ?? NO_FACTS),
        host: this.#hosts.get(campaign.host) ?? null,
      })
      const before = this.#reported.get(campaign.id) ?? 0
      return { record, isNew: found.includes(campaign), requests: campaign.requests - before }
    })
    const changed = active.filter(({ isNew, requests }) => isNew || requests > 0)
    const written = this.#isUnwritten ? active : changed
    if (written.length === 0) return
    await this.#links.store.campaigns.put(
      written.map(({ record }) => ({ ...record, document: JSON.stringify(record) })),
    )
    this.#isUnwritten = false
    if (changed.length > 0) await this.#links.report(changed)
    this.#reported.clear()
    for (const { record } of active) this.#reported.set(record.id, record.requests)
  }

  #publish({ salt, campaigns }: CampaignFinder, nowMs: number): void {
    this.#publishedAtMs = nowMs
    this.#isUnpublished = false
    const list = campaigns.map(({ id, program, members }) => ({ id, program, members: [...members.keys()] }))
    this.#links.publish({ salt, campaigns: list })
  }
}

/** The visitors of earlier requests are forgotten. A request of another time would move the clock of all. */
function isTimely(atMs: number, nowMs: number): boolean {
  return atMs > nowMs - EARLY_MS && atMs < nowMs + LATE_MS
}

/** All managers need the same salt, and so do their successors. */
export async function campaignSalt({ settings }: Pick<Store, 'settings'>, nowMs: number): Promise<number> {
  await settings.put(SALT, randomInt(1, 2 ** 32), 0, nowMs)
  const salt = (await settings.get(SALT))?.value
  return Number.isSafeInteger(salt) ? (salt as number) : 1
}

/** Filled anew for each request. */
const SEEN = blank()
/** Internal, not in the configuration. */
const SALT = 'campaigns.salt'
const NAMES_MAX = 4_096
const LEFT_AT_ONCE = 64
const AWAY_MS = 15_000
const EARLY_MS = 1_800_000
/** The job may not have run for a while. */
const LATE_MS = 300_000
const WRITE_MS = 10_000
const PUBLISH_MS = 5_000

import { fairShare, keptShares } from '../../apps/fair-share.ts'
import { conflictsIn } from '../../classify/verdict/proof-evidence.ts'
import type { Sighting } from '../../plane/sighting.ts'

/** By verdict; `null`: as `default`. */
export type SampleShares = Readonly<Record<'agent' | 'automation' | 'human' | 'unknown', number | null>> & {
  readonly default: number
  /** Of requests that were refused, limited or delayed, whatever their verdict. */
  readonly blocked: number
}

/** Which share of the requests gets a Sighting. All requests are counted. */
export interface SamplingSettings {
  readonly shares: SampleShares
  /** By the id of an app, in place of `shares`. */
  readonly apps?: Readonly<Record<string, SampleShares>>
  /** How many Sightings a second; `null`: no limit. */
  readonly perSecond: number | null
}

/**
 * Chooses the Sightings to send. Those with evidence of a threat are kept, and the first one of each agent, tool and
 * browser in an hour, so that their names and their last use are known.
 */
export class Sampler {
  readonly #settings: SamplingSettings
  readonly #ofApps: ReadonlyMap<string, SampleShares>
  readonly #random: () => number
  /** When each software last had a Sighting. */
  readonly #seen = new Map<string, number>()
  #lastMs: number
  #room = 0

  constructor(settings: SamplingSettings, nowMs: number, random: () => number = Math.random) {
    this.#settings = settings
    this.#ofApps = new Map(Object.entries(settings.apps ?? {}))
    this.#lastMs = nowMs
    this.#random = random
  }

  get isLimited(): boolean {
    return this.#settings.perSecond !== null
  }

  /**
   * Those to send, in order. Marks each with the share that it stands for. With a limit, pass every Sighting since the
   * last call.
   */
  choose(sightings: readonly OwnSighting[], nowMs: number): readonly Sighting[] {
    const notable = new Set<Sighting>()
    const chosen = sightings.filter((sighting) => {
      sighting.sampled = 1
      if (isThreat(sighting) || this.#isFirst(sighting, nowMs)) {
        notable.add(sighting)
        return true
      }
      const share = this.#shareOf(sighting)
      if (share < 1 && this.#random() >= share) return false
      sighting.sampled = share
      return true
    })
    return this.#limited(chosen, notable, nowMs)
  }

  #shareOf({ app, verdict, done, limited }: Sighting): number {
    const shares = this.#ofApps.get(app) ?? this.#settings.shares
    if (limited || REFUSED.has(done)) return shares.blocked
    return shares[verdict as 'agent'] ?? shares.default
  }

  #isFirst({ agent, software, verified }: Sighting, nowMs: number): boolean {
    const name = agent ?? software
    if (name === null) return false
    const key = `${name} ${verified}`
    const seenMs = this.#seen.get(key)
    if (seenMs !== undefined && nowMs - seenMs < FIRST_AGAIN_MS) return false
    if (this.#seen.size >= SEEN_MAX && seenMs === undefined) this.#seen.clear()
    this.#seen.set(key, nowMs)
    return true
  }

  #limited(
    chosen: readonly OwnSighting[],
    notable: ReadonlySet<Sighting>,
    nowMs: number,
  ): readonly Sighting[] {
    const { perSecond } = this.#settings
    if (perSecond === null) return chosen
    const sinceMs = Math.min(nowMs - this.#lastMs, ROOM_MS)
    this.#lastMs = nowMs
    this.#room = Math.min(this.#room % 1, 1) + (perSecond * sinceMs) / 1_000
    const max = Math.floor(this.#room)
    if (chosen.length <= max) return chosen
    const first = this.#fair(
      chosen.filter((each) => notable.has(each)),
      max,
    )
    const rest = this.#fair(
      chosen.filter((each) => !notable.has(each)),
      max - first.length,
    )
    const kept = new Set([...first, ...rest])
    return chosen.filter((each) => kept.has(each))
  }

  /** An equal part for each app that has more. */
  #fair(all: readonly OwnSighting[], max: number): readonly OwnSighting[] {
    if (all.length <= max) return all
    if (max <= 0) return []
    const ofApps = fairShare(all, max, appOf)
    // It keeps one of each app at least.
    const part = Math.min(1, max / ofApps.length)
    const kept = part === 1 ? ofApps : ofApps.filter(() => this.#random() < part)
    const shareOf = keptShares(all, ofApps, appOf)
    for (const each of kept) each.sampled = each.sampled! * part * shareOf(each.app)
    return kept
  }
}

/** A Sighting that only the recorder has. */
export type OwnSighting = { -readonly [Member in keyof Sighting]: Sighting[Member] }

/** Whether it shows one of the threats that a single request can show. */
function isThreat({ evidence, forged }: Sighting): boolean {
  return forged.length > 0 || conflictsIn(evidence.map((kind) => ({ kind }))).length > 0
}

function appOf({ app }: Sighting): string {
  return app
}

const REFUSED: ReadonlySet<string> = new Set(['block', 'tarpit', 'rate_limit', 'charge'])
const FIRST_AGAIN_MS = 3_600_000
/** More than the catalogue has, with their proofs. */
const SEEN_MAX = 10_000
/** A longer pause, as while the management plane is away, leaves no more room than this. */
const ROOM_MS = 1_000

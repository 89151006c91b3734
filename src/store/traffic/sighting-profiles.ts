import { hash } from 'node:crypto'
import { type Selectable, sql } from 'kysely'
import { LateCache } from '../../shared/late-cache.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { isOneOf, unnested } from '../engine/arrays.ts'
import { parts } from '../engine/bulk.ts'
import { kindOf, type Queries } from '../engine/database.ts'
import type { SightingProfileTable } from '../engine/tables/sightings.ts'
import { PART_SIZE } from './sighting-parts.ts'
import { insertProfiles, keyOf, profileOf, type ProfileRow, textOf, textsIn } from './sighting-rows.ts'

/** What Sightings have in common. Writers hold the lock of sightings, so that no profile is added twice. */
export class SightingProfiles {
  /** By what they hold. The database may have deleted one since, so each use compares them. */
  readonly #remembered = new LateCache<Profile>({ max: REMEMBERED_MAX })

  /** The id of the profile of each. Adds those that are missing. */
  async idsOf(sightings: readonly Sighting[], nowMs: number, queries: Queries): Promise<readonly number[]> {
    const keys = sightings.map(keyOf)
    const firsts = new Map<string, Sighting>()
    for (const [at, key] of keys.entries()) if (!firsts.has(key)) firsts.set(key, sightings[at]!)
    const profiles = await this.#recalled([...firsts.keys()], nowMs, queries)
    const others = new Map([...firsts].filter(([key]) => !profiles.has(key)))
    for (const [key, profile] of await this.#stored(others, nowMs, queries)) {
      profiles.set(key, profile)
      this.#remembered.set(key, profile)
    }
    return keys.map((key) => profiles.get(key)!.id)
  }

  /** What these profiles say of their clients, by id. */
  async facts(ids: readonly number[], queries: Queries): Promise<ReadonlyMap<number, ProfileFacts>> {
    const found = new Map<number, ProfileFacts>()
    for (const part of parts(ids)) {
      const rows = await queries
        .selectFrom('sighting_profiles')
        .select(['id', ...FACTS])
        .where('id', 'in', part)
        .execute()
      for (const { id, purposes, evidence, ...facts } of rows)
        found.set(id, { ...facts, purposes: textsIn(purposes), evidence: textsIn(evidence) })
    }
    return found
  }

  /** Deletes some profiles whose Sightings all came before then. `false`: there are no more. */
  async forget(sinceMs: number, queries: Queries): Promise<boolean> {
    const unused = queries
      .selectFrom('sighting_profiles')
      .select('id')
      .where('used_at_ms', '<', sinceMs - TOUCH_MS - CLOCKS_MS)
      .limit(FORGOTTEN_AT_ONCE)
    const { numDeletedRows } = await queries
      .deleteFrom('sighting_profiles')
      .where('id', 'in', unused)
      .executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** The number of profiles. */
  async count(queries: Queries): Promise<number> {
    const { count } = await queries
      .selectFrom('sighting_profiles')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    return Number(count)
  }

  /**
   * Deletes those of the next profiles behind `after` that no Sighting has. Returns the last profile that it looked
   * at, or `null` at the end.
   */
  async forgetUnused(after: number, queries: Queries): Promise<number | null> {
    const next = await queries
      .selectFrom('sighting_profiles')
      .select('id')
      .where('id', '>', after)
      .orderBy('id')
      .limit(LOOKED_AT_ONCE)
      .execute()
    const last = next.at(-1)?.id ?? null
    if (last === null) return null
    const unused = new Set(next.map(({ id }) => id))
    for (const { number } of await queries.selectFrom('sighting_parts').select('number').execute()) {
      // As in the index, which has the profiles of each part in order.
      const used = await queries
        .selectFrom('sightings')
        .select('profile')
        .distinct()
        .where(sql<boolean>`(number >> 16) = ${number}`)
        // Names the partition in PostgreSQL.
        .where('number', '>=', number * PART_SIZE)
        .where('number', '<', (number + 1) * PART_SIZE)
        .where('profile', '>', after)
        .where('profile', '<=', last)
        .execute()
      for (const { profile } of used) unused.delete(profile)
    }
    for (const part of parts([...unused]))
      await queries.deleteFrom('sighting_profiles').where('id', 'in', part).execute()
    return last
  }

  /** Those that this process remembers, and that the database still has. */
  async #recalled(keys: readonly string[], nowMs: number, queries: Queries): Promise<Map<string, Profile>> {
    const recalled = new Map<string, Profile>()
    for (const key of keys) {
      const profile = this.#remembered.get(key)
      if (profile !== undefined && profile.used_at_ms >= nowMs - TOUCH_MS) recalled.set(key, profile)
    }
    const known = [...recalled.values()]
    if (known.length === 0 || (await countOf(known, queries)) === known.length) return recalled
    this.#remembered.clear()
    return new Map()
  }

  /** Adds those that are missing. */
  async #stored(
    sightings: ReadonlyMap<string, Sighting>,
    nowMs: number,
    queries: Queries,
  ): Promise<ReadonlyMap<string, Profile>> {
    const wanted = new Map(
      Array.from(sightings, ([key, sighting]) => {
        const profile = profileOf(sighting)
        const digest = hash('sha256', textOf(profile), 'hex').slice(0, 32)
        return [key, { ...profile, hash: digest, used_at_ms: nowMs }]
      }),
    )
    const known = await this.#byHash([...wanted.values()], queries)
    const stale = [...known.values()].filter(({ used_at_ms }) => used_at_ms < nowMs - TOUCH_MS)
    for (const part of parts(stale.map(({ id }) => id)))
      await queries
        .updateTable('sighting_profiles')
        .set({ used_at_ms: nowMs })
        .where('id', 'in', part)
        .execute()
    const missing = [...wanted.values()].filter((profile) => !known.has(profile.hash))
    if (missing.length > 0) {
      await insertProfiles(missing, queries)
      for (const [digest, profile] of await this.#byHash(missing, queries)) known.set(digest, profile)
    }
    return new Map(Array.from(wanted, ([key, profile]) => [key, known.get(profile.hash)!]))
  }

  async #byHash(profiles: readonly Pick<Profile, 'hash'>[], queries: Queries): Promise<Map<string, Profile>> {
    if (profiles.length === 0) return new Map()
    const hashes = profiles.map((profile) => profile.hash)
    const rows = await queries
      .selectFrom('sighting_profiles')
      .select(['id', 'hash', 'used_at_ms'])
      .where(isOneOf('hash', hashes, queries))
      .execute()
    return new Map(rows.map((row) => [row.hash, row]))
  }
}

type Profile = Pick<Selectable<SightingProfileTable>, 'id' | 'hash' | 'used_at_ms'>

/** How many of these the database has as they are here. */
async function countOf(profiles: readonly Profile[], queries: Queries): Promise<number> {
  const { rows } = await (kindOf(queries) === 'postgres'
    ? sql<{
        count: number
      }>`select count(*) as count from ${unnested(profiles, KNOWN_COLUMNS)} as known (id, hash)
        join sighting_profiles as stored on stored.id = known.id and stored.hash = known.hash`
    : sql<{
        count: number
      }>`select count(*) as count from json_each(${JSON.stringify(profiles.map(({ id, hash: profile }) => [id, profile]))}) as known
        join sighting_profiles as stored on stored.id = known.value ->> 0 and stored.hash = known.value ->> 1`
  ).execute(queries)
  return Number(rows[0]!.count)
}

const KNOWN_COLUMNS = { id: 'bigint', hash: 'text' } as const
/** Each of about a kilobyte. */
const REMEMBERED_MAX = 8_192
/** What a profile says of its client. */
export type ProfileFacts = Pick<ProfileRow, Exclude<(typeof FACTS)[number], 'purposes' | 'evidence'>> &
  Pick<Sighting, 'purposes' | 'evidence'>

const FACTS = [
  ...(['verdict', 'agent', 'category', 'purposes', 'done', 'rule', 'verified', 'ja4', 'ja4h'] as const),
  ...(['http2', 'proxy', 'evidence'] as const),
] as const
/** A profile in use is written this often. */
const TOUCH_MS = 3_600_000
/** How far the clocks of two managers may differ. */
const CLOCKS_MS = 3_600_000
/** Takes a few milliseconds of an idle database. */
const FORGOTTEN_AT_ONCE = 500
/** A range of the index for each part of the Sightings. */
const LOOKED_AT_ONCE = 1_000

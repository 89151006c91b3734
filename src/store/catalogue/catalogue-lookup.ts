import { setImmediate as turn } from 'node:timers/promises'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { type Ja4Type, partsOfFingerprint } from '../../classify/known/fingerprint-form.ts'
import { likenessOf, type StableParts, stableParts } from '../../classify/known/likeness.ts'
import { type KnownSignature, knownIn, knownSignature, seenOnly } from './known-signature.ts'
import type { Tables } from '../engine/tables.ts'

/** A signature, with the similarity of its fingerprint. */
export interface LikeSignature extends KnownSignature {
  readonly score: number
}

export interface LookupFingerprint {
  readonly type: Ja4Type
  /** Whole parts may be `*`. */
  readonly value: string
}

interface LookupLimits {
  /** A limit without a second page, because more results are not useful. */
  readonly exactMax: number
  /** The length of the longest page of a list. */
  readonly partialMax: number
  /** The limit for one search. Parts that more signatures share identify no software. */
  readonly alikeMax: number
}

/** Finds the owners of a fingerprint. Every query uses an index. */
export class CatalogueLookup {
  readonly #db: Kysely<Tables>
  /** The common start of these queries. */
  readonly #known: ReturnType<typeof knownIn>
  readonly #limits: LookupLimits

  constructor(db: Kysely<Tables>, limits = LIMITS) {
    this.#db = db
    this.#known = knownIn(db)
    this.#limits = limits
  }

  /** Signatures that match the whole fingerprint. Sorted by confidence, those without an owner last. */
  async exact(asked: readonly LookupFingerprint[]): Promise<readonly KnownSignature[]> {
    const found: KnownSignature[] = []
    for (const [type, values] of valuesByType(asked)) {
      const written = [...new Set(values.flatMap((value) => starred(type, value)))]
      const rows = await this.#known
        .where('signatures.type', '=', type)
        .where('signatures.value', 'in', written)
        .limit(this.#limits.exactMax)
        .execute()
      found.push(...rows.map(knownSignature))
      found.push(...(await this.#seen(type, values, found)))
    }
    return found.sort(surestFirst).slice(0, this.#limits.exactMax)
  }

  /**
   * Signatures that share stable parts with one of the fingerprints, the most similar first. Searches run
   * in the order of the best possible score, over all fingerprints. They stop once enough results score
   * higher than any later search can.
   */
  async partial(asked: readonly LookupFingerprint[]): Promise<readonly LikeSignature[]> {
    const { partialMax } = this.#limits
    const found = new Map<string, Scored>()
    const add = (signature: KnownSignature, score: number) => {
      const key = `${signature.type} ${signature.value} ${signature.software?.id}`
      if ((found.get(key)?.score ?? -1) < score) found.set(key, { signature, score })
    }
    for (const signature of await this.exact(asked)) add(signature, likenessToSame(signature))
    for (const [score, searches] of searchesByScore(asked)) {
      if (countAbove(score, found.values()) >= partialMax) break
      for (const search of searches) {
        // One of these signatures may share more parts than the search requires.
        for (const signature of await this.#alike(search)) add(signature, likenessIn(search, signature))
        await turn() // takes a millisecond for each search with many matches
      }
    }
    return [...found.values()]
      .sort((one, other) => other.score - one.score || surestFirst(one.signature, other.signature))
      .slice(0, partialMax)
      .map(({ signature, score }) => ({ ...signature, score }))
  }

  async #alike({ type, parts, stable }: Search): Promise<readonly KnownSignature[]> {
    const rows = await this.#known
      .where('signatures.type', '=', type)
      .where(hasParts(stable, parts))
      .limit(this.#limits.alikeMax)
      .execute()
    return rows.map(knownSignature)
  }

  /** Fingerprints on live traffic that no signature matches. */
  async #seen(
    type: Ja4Type,
    values: readonly string[],
    known: readonly KnownSignature[],
  ): Promise<readonly KnownSignature[]> {
    const written = new Set(known.filter((each) => each.type === type).map(({ value }) => value))
    const unknown = values.filter((value) => !starred(type, value).some((each) => written.has(each)))
    if (unknown.length === 0) return []
    const rows = await this.#db
      .selectFrom('fingerprints_seen')
      .selectAll()
      .where('type', '=', type)
      .where('value', 'in', unknown)
      .execute()
    return rows.map(seenOnly)
  }
}

interface Scored {
  readonly signature: KnownSignature
  readonly score: number
}

/** A search for signatures that share some parts with a requested fingerprint. */
interface Search {
  readonly type: Ja4Type
  readonly parts: readonly string[]
  readonly stable: StableParts
}

/** The searches by their score, the highest first. */
function searchesByScore(
  asked: readonly LookupFingerprint[],
): readonly (readonly [number, readonly Search[]])[] {
  const searches = asked.flatMap(({ type, value }): Search[] => {
    const parts = partsOfFingerprint(type, value)
    const said = stableParts(type).filter((stable) => stable.parts.every((part) => parts[part] !== '*'))
    return said.map((stable) => ({ type, parts, stable }))
  })
  const byScore = Map.groupBy(searches, ({ stable }) => stable.score)
  return [...byScore].sort(([one], [other]) => other - one)
}

/** The score of a signature that matches exactly: all its parts except `*` are equal. */
function likenessToSame({ type, value }: KnownSignature): number {
  const parts = partsOfFingerprint(type, value)
  return likenessOf(type, parts, parts)
}

function likenessIn({ type, parts }: Search, { value }: KnownSignature): number {
  return likenessOf(type, parts, partsOfFingerprint(type, value))
}

function countAbove(score: number, found: Iterable<Scored>): number {
  let count = 0
  for (const each of found) if (each.score > score) count++
  return count
}

function valuesByType(asked: readonly LookupFingerprint[]): ReadonlyMap<Ja4Type, readonly string[]> {
  const byType = Map.groupBy(asked, ({ type }) => type)
  return new Map([...byType].map(([type, each]) => [type, each.map(({ value }) => value)]))
}

/** All forms of a matching signature: each part or `*`, but not `*` for all parts. */
function starred(type: Ja4Type, value: string): readonly string[] {
  const parts = partsOfFingerprint(type, value)
  const all = 2 ** parts.length - 1
  const ways = Array.from({ length: all }, (_, stars) =>
    parts.map((part, index) => ((stars & (1 << index)) !== 0 ? '*' : part)),
  )
  return [...new Set(ways.filter((way) => way.some((part) => part !== '*')).map((way) => way.join('_')))]
}

/** Leading parts are a range of the primary key. The second and third part have indexes. */
function hasParts({ parts: wanted }: StableParts, parts: readonly string[]): RawBuilder<boolean> {
  const beginning = wanted.filter((part, index) => part === index)
  const conditions: RawBuilder<boolean>[] = []
  if (beginning.length > 0) {
    const start = beginning.map((part) => parts[part]).join('_')
    conditions.push(sql`signatures.value >= ${`${start}_`} and signatures.value < ${`${start}\``}`)
  }
  for (const part of wanted.slice(beginning.length))
    conditions.push(sql`${sql.ref(part === 1 ? 'signatures.part_b' : 'signatures.part_c')} = ${parts[part]}`)
  return sql<boolean>`${sql.join(conditions, sql` and `)}`
}

function surestFirst(one: KnownSignature, other: KnownSignature): number {
  return (
    Number(one.software === null) - Number(other.software === null) ||
    other.confidence - one.confidence ||
    other.observations - one.observations ||
    compareTexts(one.value, other.value) ||
    compareTexts(one.software?.id ?? '', other.software?.id ?? '')
  )
}

function compareTexts(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

const LIMITS: LookupLimits = { exactMax: 500, partialMax: 200, alikeMax: 200 }

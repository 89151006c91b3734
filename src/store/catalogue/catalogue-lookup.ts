import { setImmediate as turn } from 'node:timers/promises'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { type Ja4Type, partsOfFingerprint } from '../../classify/known/fingerprint-form.ts'
import { likenessOf, type StableParts, stableParts } from '../../classify/known/likeness.ts'
import { type KnownSignature, knownIn, knownSignature, seenOnly } from './catalogue-lists.ts'
import type { Tables } from '../engine/tables.ts'

/** A signature, and how much of a fingerprint it says. */
export interface LikeSignature extends KnownSignature {
  readonly score: number
}

export interface Asked {
  readonly type: Ja4Type
  /** Whole parts of it may be `*`. */
  readonly value: string
}

export interface LookupLimits {
  /** More are of use to nobody, and there is no second page. */
  readonly exactMax: number
  /** As many as the longest page of a list has. */
  readonly partialMax: number
  /** Parts that more have in common are no mark of anybody. */
  readonly alikeMax: number
}

/** Who has a fingerprint: by indexes alone, whatever is asked for. */
export class CatalogueLookup {
  readonly #db: Kysely<Tables>
  /** What all these queries begin with. */
  readonly #known: ReturnType<typeof knownIn>
  readonly #limits: LookupLimits

  constructor(db: Kysely<Tables>, limits = LIMITS) {
    this.#db = db
    this.#known = knownIn(db)
    this.#limits = limits
  }

  /** Signatures that say nothing else than it does: the surest first, and those of nobody last. */
  async exact(asked: readonly Asked[]): Promise<readonly KnownSignature[]> {
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
   * Signatures that share the stable parts with one of them, the most alike first. What is more alike is looked for
   * first, of all that are asked for: once there are enough of those, nobody reads what cannot be among them.
   */
  async partial(asked: readonly Asked[]): Promise<readonly LikeSignature[]> {
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
        // Where more than some share so much, one of them may share more.
        for (const signature of await this.#alike(search)) add(signature, likenessIn(search, signature))
        await turn() // a millisecond each, where much is alike
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

  /** What live traffic shows, and no signature is of. */
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

/** For those that have some parts in common with one that is asked for. */
interface Search {
  readonly type: Ja4Type
  readonly parts: readonly string[]
  readonly stable: StableParts
}

/** By how alike those are that they find, the most alike first. */
function searchesByScore(asked: readonly Asked[]): readonly (readonly [number, readonly Search[]])[] {
  const searches = asked.flatMap(({ type, value }): Search[] => {
    const parts = partsOfFingerprint(type, value)
    const said = stableParts(type).filter((stable) => stable.parts.every((part) => parts[part] !== '*'))
    return said.map((stable) => ({ type, parts, stable }))
  })
  const byScore = Map.groupBy(searches, ({ stable }) => stable.score)
  return [...byScore].sort(([one], [other]) => other - one)
}

/** What says nothing else than is asked for has all in common with it that it says. */
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

function valuesByType(asked: readonly Asked[]): ReadonlyMap<Ja4Type, readonly string[]> {
  const byType = Map.groupBy(asked, ({ type }) => type)
  return new Map([...byType].map(([type, each]) => [type, each.map(({ value }) => value)]))
}

/** All ways in which a signature that says nothing else can be written: with any of its parts as `*`, but not all. */
function starred(type: Ja4Type, value: string): readonly string[] {
  const parts = partsOfFingerprint(type, value)
  const all = 2 ** parts.length - 1
  const ways = Array.from({ length: all }, (_, stars) =>
    parts.map((part, index) => ((stars & (1 << index)) !== 0 ? '*' : part)),
  )
  return [...new Set(ways.filter((way) => way.some((part) => part !== '*')).map((way) => way.join('_')))]
}

/** What a fingerprint begins with stands side by side in the primary key; its second and third part have indexes. */
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

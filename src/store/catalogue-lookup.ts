import { setImmediate as turn } from 'node:timers/promises'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { type Ja4Type, partsOfFingerprint } from '../classify/fingerprint-form.ts'
import { likenessOf, type StableParts, stableParts } from '../classify/likeness.ts'
import { type KnownSignature, knownIn, knownSignature, seenOnly } from './catalogue-lists.ts'
import type { Tables } from './tables.ts'

/** A signature, and how much of a fingerprint it says. */
export interface LikeSignature extends KnownSignature {
  readonly score: number
}

export interface Asked {
  readonly type: Ja4Type
  /** Whole parts of it may be `*`. */
  readonly value: string
}

/** Who has a fingerprint: by indexes alone, whatever is asked for. */
export class CatalogueLookup {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Signatures that say nothing else than it does: the surest first, and those of nobody last. */
  async exact(asked: readonly Asked[]): Promise<readonly KnownSignature[]> {
    const found: KnownSignature[] = []
    for (const [type, values] of valuesByType(asked)) {
      const written = [...new Set(values.flatMap((value) => starred(type, value)))]
      const rows = await knownIn(this.#db)
        .where('signatures.type', '=', type)
        .where('signatures.value', 'in', written)
        .where('signatures.status', '<>', 'retired')
        .limit(FOUND_MAX)
        .execute()
      found.push(...rows.map(knownSignature))
      found.push(...(await this.#seen(type, values, found)))
    }
    return found.sort(surestFirst).slice(0, FOUND_MAX)
  }

  /** Signatures that share the stable parts with one of them, the most alike first. */
  async partial(asked: readonly Asked[]): Promise<readonly LikeSignature[]> {
    const found = new Map<string, LikeSignature>()
    const add = (signature: KnownSignature, score: number) => {
      const key = [signature.type, signature.value, signature.software?.id].join(' ')
      if ((found.get(key)?.score ?? -1) < score) found.set(key, { ...signature, score })
    }
    for (const { type, value } of asked) {
      const parts = partsOfFingerprint(type, value)
      const likeness = (signature: KnownSignature) =>
        likenessOf(type, parts, partsOfFingerprint(type, signature.value))
      for (const signature of await this.exact([{ type, value }])) add(signature, likeness(signature))
      for (const signature of await this.#alike(type, parts)) add(signature, likeness(signature))
      await turn() // some milliseconds each, where much is alike
    }
    return [...found.values()]
      .sort((one, other) => other.score - one.score || surestFirst(one, other))
      .slice(0, FOUND_MAX)
  }

  async #alike(type: Ja4Type, parts: readonly string[]): Promise<readonly KnownSignature[]> {
    const found: KnownSignature[] = []
    for (const stable of stableParts(type)) {
      if (stable.parts.some((part) => parts[part] === '*')) continue
      const rows = await knownIn(this.#db)
        .where('signatures.type', '=', type)
        .where(hasParts(stable, parts))
        .where('signatures.status', '<>', 'retired')
        .limit(ALIKE_MAX)
        .execute()
      found.push(...rows.map(knownSignature))
    }
    return found
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
    (one.value < other.value ? -1 : 1)
  )
}

/** More are of use to nobody, and there is no second page. */
const FOUND_MAX = 500
/** Parts that more have in common are no mark of anybody. */
const ALIKE_MAX = 200

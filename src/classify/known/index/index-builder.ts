import { Fault } from '../../../shared/fault.ts'
import { FingerprintKey, KEY_FORM_OF, KEY_FORMS, type Seed } from './fingerprint-key.ts'
import { CANDIDATES_MAX } from './index-layout.ts'
import { Keys, Lists, Numbers, type Rows } from './index-rows.ts'
import { type Groups, group, type Table, tableOf } from './index-tables.ts'
import { notIndexed, writeIndex } from './index-writer.ts'
import type { FingerprintType } from '../signature.ts'

/** A fingerprint signature as an index stores it. */
export interface IndexedSignature {
  readonly type: FingerprintType
  readonly value: string
  /** The Software's number, in the list that belongs to the index. */
  readonly software: number
  readonly observations: number
}

/** Builds the bytes of a SignatureIndex. Throws a Fault if a signature cannot be indexed. */
export function buildSignatureIndex(
  signatures: Iterable<IndexedSignature>,
  seed: Seed,
): Uint8Array<ArrayBuffer> {
  const builder = new IndexBuilder()
  for (const signature of signatures) builder.add(signature)
  return builder.build(seed)
}

/** Collects signatures one by one. Each takes about forty bytes and no object. */
export class IndexBuilder {
  /** In the order they were added, with one owner each. A pattern may occur more than once. */
  readonly #records = KEY_FORMS.map((form): Rows => ({ keys: new Keys(form), owners: new Lists() }))
  readonly #key = new FingerprintKey()
  #count = 0

  /** Throws a Fault if the signature cannot be indexed. */
  add({ type, value, software, observations }: IndexedSignature): void {
    const count = this.#count + 1
    if (count > SIGNATURES_MAX) throw notIndexed(`more than ${SIGNATURES_MAX} signatures`)
    const form = KEY_FORM_OF[type]
    const parts = this.#key.readPattern(form, value)
    if (parts === 0)
      throw notIndexed(`signature ${count} is not a valid ${type}: ${JSON.stringify(value.slice(0, 60))}`)
    if (!Number.isInteger(software) || software < 0 || software >= SOFTWARE_MAX)
      throw notIndexed(
        `signature ${count} has the software number ${software}; expected a number below ${SOFTWARE_MAX}`,
      )
    if (!Number.isSafeInteger(observations) || observations < 0)
      throw notIndexed(`signature ${count} has an invalid number of observations: ${observations}`)
    const { keys, owners } = this.#records[form.number]!
    keys.push(parts, this.#key.words, 0)
    owners.begin()
    owners.push(software, observations)
    this.#count = count
  }

  /** The contents in memory. The same signatures in the same order give the same contents. */
  *memory(): Generator<Int32Array | Float64Array> {
    for (const { keys, owners } of this.#records) {
      yield keys.parts.used
      yield keys.words.subarray(0, keys.wordCount)
      yield owners.software.used
      yield Float64Array.from(owners.observations)
    }
  }

  /**
   * Builds the bytes of a SignatureIndex. A million signatures take seconds, so do not call this on a thread
   * that answers requests. `seed`: two 32-bit numbers that a person who can have signatures imported must not
   * be able to guess.
   */
  build(seed: Seed): Uint8Array<ArrayBuffer> {
    for (let attempt = 0; attempt < SEEDS_MAX; attempt++) {
      const bytes = build(this.#records, [seed[0] | 0, (seed[1] + attempt) | 0])
      if (bytes !== null) return bytes
    }
    throw new Fault('INDEX_SEED', 'too many signatures collide in the index; use another seed')
  }
}

/** `null`: with this seed, too many keys collide. */
function build(records: readonly Rows[], seed: Seed): Uint8Array<ArrayBuffer> | null {
  const all: Rows[] = []
  for (const each of records) {
    const rows = distinct(each, seed)
    if (rows === null) return null
    all.push(rows)
  }
  const lists = new Lists()
  for (const { keys, owners } of all)
    for (let row = 0; row < keys.count; row++) lists.copy(owners, row, CANDIDATES_MAX)
  const mergedRows = new Numbers()
  const tables: Table[] = []
  let firstRow = 0
  for (const rows of all) {
    for (let parts = 0; parts <= rows.keys.form.whole; parts++) {
      const groups = group(rows.keys, rowsWith(rows.keys, parts), parts, seed)
      if (groups === null) return null
      const listOf = mergeLists(rows.owners, groups, firstRow, lists, mergedRows)
      const table = tableOf(rows.keys, parts, groups, listOf, seed)
      if (table === null) return null
      tables.push(table)
    }
    firstRow += rows.keys.count
  }
  return writeIndex({ rows: all, lists, mergedRows, tables }, seed)
}

/** Merges equal patterns. Each pattern then has all its owners. */
function distinct({ keys, owners }: Rows, seed: Seed): Rows | null {
  const rows: Rows = { keys: new Keys(keys.form), owners: new Lists() }
  for (let parts = 1; parts <= keys.form.whole; parts++) {
    const groups = group(
      keys,
      rowsThat(keys, (has) => has === parts),
      parts,
      seed,
    )
    if (groups === null) return null
    for (let i = 0; i < groups.count; i++) {
      const first = groups.members[groups.starts[i]!]!
      rows.keys.push(parts, keys.words, keys.starts[first]!)
      if (groups.starts[i + 1]! - groups.starts[i]! === 1) {
        rows.owners.copy(owners, first, 1)
        continue
      }
      for (let at = groups.starts[i]!; at < groups.starts[i + 1]!; at++)
        rows.owners.addAll(owners, groups.members[at]!)
      rows.owners.pushSums(Number.POSITIVE_INFINITY)
    }
  }
  return rows
}

/** The rows that are found by these parts. */
function rowsWith(keys: Keys, parts: number): Int32Array {
  const isTelling = keys.form.telling.has(parts)
  return rowsThat(keys, (has) => has === parts || (isTelling && (has & parts) === parts))
}

function rowsThat(keys: Keys, isMeant: (parts: number) => boolean): Int32Array {
  const rows = new Numbers()
  for (let row = 0; row < keys.count; row++) if (isMeant(keys.parts.items[row]!)) rows.push(row)
  return rows.items.slice(0, rows.length)
}

/** The list of each group: that of its only row, or a new list merged from all rows. */
function mergeLists(
  owners: Lists,
  groups: Groups,
  firstRow: number,
  lists: Lists,
  mergedRows: Numbers,
): Int32Array {
  const listOf = new Int32Array(groups.count)
  for (let i = 0; i < groups.count; i++) {
    const from = groups.starts[i]!
    const end = groups.starts[i + 1]!
    const first = firstRow + groups.members[from]!
    listOf[i] = end - from === 1 ? first : lists.starts.length
    if (end - from === 1) continue
    for (let at = from; at < end; at++) lists.addAll(owners, groups.members[at]!)
    lists.pushSums(CANDIDATES_MAX)
    mergedRows.push(first)
  }
  return listOf
}

/**
 * With more signatures, there could be more lists than a slot can address, if most of them have parts in
 * common.
 */
export const SIGNATURES_MAX = 4_000_000
const SOFTWARE_MAX = 2 ** 31 - 1
const SEEDS_MAX = 8

import { Fault } from '../../../shared/fault.ts'
import {
  hashKey,
  isSameKey,
  KEY,
  KEY_FORM_OF,
  KEY_FORMS,
  type KeyForm,
  readPattern,
  type Seed,
  textWords,
} from './fingerprint-key.ts'
import {
  CANDIDATE_WORDS,
  CANDIDATES_MAX,
  COUNT_BITS,
  HEAD_WORDS,
  homeOf,
  type IndexLayout,
  LIST_BITS,
  LIST_MASK,
  LISTS_MAX,
  layoutOf,
  MERGED_WORDS,
  OTHERS_MAX,
  PROBES_MAX,
  TEXT_FORM,
  writeHeader,
} from './index-layout.ts'
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
  #count = 0

  /** Throws a Fault if the signature cannot be indexed. */
  add({ type, value, software, observations }: IndexedSignature): void {
    const count = this.#count + 1
    if (count > SIGNATURES_MAX) throw fault(`more than ${SIGNATURES_MAX} signatures`)
    const form = KEY_FORM_OF[type]
    const parts = readPattern(form, value)
    if (parts === 0)
      throw fault(`signature ${count} is not a valid ${type}: ${JSON.stringify(value.slice(0, 60))}`)
    if (!Number.isInteger(software) || software < 0 || software >= SOFTWARE_MAX)
      throw fault(
        `signature ${count} has the software number ${software}; expected a number below ${SOFTWARE_MAX}`,
      )
    if (!Number.isSafeInteger(observations) || observations < 0)
      throw fault(`signature ${count} has an invalid number of observations: ${observations}`)
    const { keys, owners } = this.#records[form.number]!
    keys.push(parts, KEY, 0)
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

/** Keys of one type. */
class Keys {
  readonly form: KeyForm
  /** The set of parts of each key. */
  readonly parts = new Numbers()
  readonly #words = new Numbers()
  readonly #starts = new Numbers()

  constructor(form: KeyForm) {
    this.form = form
  }

  get count(): number {
    return this.parts.length
  }

  get words(): Int32Array {
    return this.#words.items
  }

  /** The start of each key in `words`. */
  get starts(): Int32Array {
    return this.#starts.items
  }

  get wordCount(): number {
    return this.#words.length
  }

  push(parts: number, words: Int32Array, at: number): void {
    this.parts.push(parts)
    this.#starts.push(this.#words.length)
    const count = this.form.stride === 0 ? textWords(words[at]!) : this.form.stride
    for (let i = 0; i < count; i++) this.#words.push(words[at + i]!)
  }
}

/** Lists of candidates, stored one after another. */
class Lists {
  readonly starts = new Numbers()
  readonly software = new Numbers()
  readonly observations: number[] = []
  readonly #sums = new Map<number, number>()

  /** Begins the next list. */
  begin(): void {
    this.starts.push(this.software.length)
  }

  push(software: number, observations: number): void {
    this.software.push(software)
    this.observations.push(observations)
  }

  /** Adds the candidates of another list to the sums, for `pushSums`. */
  addAll(others: Lists, list: number): void {
    const end = others.endOf(list)
    for (let i = others.starts.items[list]!; i < end; i++)
      this.add(others.software.items[i]!, others.observations[i]!)
  }

  add(software: number, observations: number): void {
    const sum = (this.#sums.get(software) ?? 0) + observations
    this.#sums.set(software, Math.min(sum, Number.MAX_SAFE_INTEGER))
  }

  /** Begins the next list with the sums, most observed first. */
  pushSums(countMax: number): void {
    const sums = [...this.#sums].sort(([one, ones], [other, others]) => others - ones || one - other)
    this.#sums.clear()
    this.begin()
    for (const [software, observations] of sums.slice(0, countMax)) this.push(software, observations)
  }

  /** Begins the next list with the first candidates of another list. */
  copy(others: Lists, list: number, countMax: number): void {
    this.begin()
    const from = others.starts.items[list]!
    const end = Math.min(others.endOf(list), from + countMax)
    for (let i = from; i < end; i++) this.push(others.software.items[i]!, others.observations[i]!)
  }

  endOf(list: number): number {
    return list + 1 < this.starts.length ? this.starts.items[list + 1]! : this.software.length
  }
}

/** Everything of one type: the keys and their owners. */
interface Rows {
  readonly keys: Keys
  readonly owners: Lists
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
  return write(all, lists, mergedRows, tables, seed)
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

/** Rows that are equal in some parts. The members of a group run from its start to the next start. */
interface Groups {
  readonly count: number
  readonly starts: Int32Array
  readonly members: Int32Array
  /** A hash table of the groups, as in an index. A slot holds the number of the group plus one. */
  readonly slots: Int32Array
  readonly probes: number
}

function group(keys: Keys, rows: Int32Array, parts: number, seed: Seed): Groups | null {
  const slots = new Int32Array(rows.length * 2)
  const firsts = new Numbers()
  const groupOf = new Int32Array(rows.length)
  const sizes = new Numbers()
  const { form, words, starts } = keys
  let probesMost = 0
  for (let i = 0; i < rows.length; i++) {
    const at = starts[rows[i]!]!
    const hash = hashKey(form, parts, words, at, seed)
    let slot = homeOf(hash, slots.length)
    let probes = 1
    for (; slots[slot] !== 0; probes++) {
      const found = slots[slot]!
      if ((found ^ (hash << LIST_BITS)) >>> LIST_BITS === 0) {
        const first = firsts.items[(found & LIST_MASK) - 1]!
        if (isSameKey(form, parts, words, at, words, starts[first]!)) break
      }
      if (++slot === slots.length) slot = 0
    }
    if (probes > PROBES_MAX) return null
    probesMost = Math.max(probesMost, probes)
    if (slots[slot] === 0) {
      firsts.push(rows[i]!)
      sizes.push(0)
      slots[slot] = (hash << LIST_BITS) | firsts.length
    }
    groupOf[i] = (slots[slot]! & LIST_MASK) - 1
    sizes.items[groupOf[i]!]!++
  }
  return { ...sortByGroup(rows, groupOf, sizes), slots, probes: probesMost }
}

function sortByGroup(
  rows: Int32Array,
  groupOf: Int32Array,
  sizes: Numbers,
): Pick<Groups, 'count' | 'starts' | 'members'> {
  const count = sizes.length
  const starts = new Int32Array(count + 1)
  for (let i = 0; i < count; i++) starts[i + 1] = starts[i]! + sizes.items[i]!
  const next = starts.slice()
  const members = new Int32Array(rows.length)
  for (const [i, row] of rows.entries()) members[next[groupOf[i]!]!++] = row
  return { count, starts, members }
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

interface Table {
  readonly slots: Int32Array
  readonly probes: number
}

/** The table of the groups, at most half full. */
function tableOf(keys: Keys, parts: number, groups: Groups, listOf: Int32Array, seed: Seed): Table | null {
  const roomy = groups.slots.length > groups.count * 2
  const found = roomy ? slotsOf(keys, parts, groups, seed) : groups
  if (found === null) return null
  const slots = found.slots.map((slot) =>
    slot === 0 ? 0 : (slot & ~LIST_MASK) | (listOf[(slot & LIST_MASK) - 1]! + 1),
  )
  return { slots, probes: found.probes }
}

/** The same groups in as few slots as a table needs. */
function slotsOf(keys: Keys, parts: number, groups: Groups, seed: Seed): Table | null {
  const slots = new Int32Array(groups.count * 2)
  let probesMost = 0
  for (let i = 0; i < groups.count; i++) {
    const at = keys.starts[groups.members[groups.starts[i]!]!]!
    const hash = hashKey(keys.form, parts, keys.words, at, seed)
    let slot = homeOf(hash, slots.length)
    let probes = 1
    for (; slots[slot] !== 0; probes++) if (++slot === slots.length) slot = 0
    if (probes > PROBES_MAX) return null
    probesMost = Math.max(probesMost, probes)
    slots[slot] = (hash << LIST_BITS) | (i + 1)
  }
  return { slots, probes: probesMost }
}

function write(
  all: readonly Rows[],
  lists: Lists,
  mergedRows: Numbers,
  tables: readonly Table[],
  seed: Seed,
): Uint8Array<ArrayBuffer> {
  const others = lists.software.length - lists.starts.length
  if (lists.starts.length > LISTS_MAX || others > OTHERS_MAX)
    throw fault(`more than ${LISTS_MAX} lists or ${OTHERS_MAX} candidates`)
  const layout = layoutOf(
    {
      signatures: all.reduce((count, { owners }) => count + owners.software.length, 0),
      software: lists.software.max() + 1,
      merged: mergedRows.length,
      others,
      textWords: all[TEXT_FORM]!.keys.wordCount,
      rows: all.map(({ keys }) => keys.count),
      slots: tables.map(({ slots }) => slots.length),
      probes: tables.map(({ probes }) => probes),
    },
    seed,
  )
  const bytes = new Uint8Array(layout.words * 4)
  const words = new Int32Array(bytes.buffer)
  for (const { keys } of all) writeRows(words, layout, keys, lists)
  for (const [i, row] of mergedRows.used.entries()) {
    const at = layout.mergedAt + i * MERGED_WORDS
    words[at] = row
    writeList(words, layout, at + 1, lists, layout.rowCount + i)
  }
  for (const [table, { slots }] of tables.entries()) words.set(slots, layout.slotsAt[table]!)
  writeHeader(words, layout)
  return bytes
}

function writeRows(words: Int32Array, layout: IndexLayout, keys: Keys, lists: Lists): void {
  const { stride, number } = keys.form
  const rowWords = layout.rowWords[number]!
  if (stride === 0) words.set(keys.words.subarray(0, keys.wordCount), layout.textsAt)
  for (let row = 0; row < keys.count; row++) {
    const at = layout.rowsAt[number]! + row * rowWords
    const key = keys.starts[row]!
    if (stride === 0) words[at] = key
    else for (let word = 0; word < stride; word++) words[at + word] = keys.words[key + word]!
    writeList(words, layout, at + rowWords - HEAD_WORDS, lists, layout.firstRow[number]! + row)
  }
}

function writeList(words: Int32Array, layout: IndexLayout, head: number, lists: Lists, list: number): void {
  const first = lists.starts.items[list]!
  const count = lists.endOf(list) - first
  // Each list before this one has a first candidate, which is not counted among the others.
  const others = first - list
  writeCandidate(words, head, lists, first)
  words[head + CANDIDATE_WORDS] = (others << COUNT_BITS) | (count - 1)
  for (let i = 1; i < count; i++)
    writeCandidate(words, layout.othersAt + (others + i - 1) * CANDIDATE_WORDS, lists, first + i)
}

function writeCandidate(words: Int32Array, at: number, lists: Lists, entry: number): void {
  const observations = lists.observations[entry]!
  words[at] = lists.software.items[entry]!
  words[at + 1] = observations | 0
  words[at + 2] = Math.floor(observations / 2 ** 32)
}

/** A growing array of 32-bit integers. */
class Numbers {
  length = 0
  /** Only the first `length` are used. */
  items = new Int32Array(16)

  get used(): Int32Array {
    return this.items.subarray(0, this.length)
  }

  push(number: number): void {
    if (this.length === this.items.length) {
      const more = new Int32Array(this.length * 2)
      more.set(this.items)
      this.items = more
    }
    this.items[this.length++] = number
  }

  /** -1 if empty. */
  max(): number {
    let most = -1
    for (let i = 0; i < this.length; i++) most = Math.max(most, this.items[i]!)
    return most
  }
}

function fault(what: string): Fault {
  return new Fault('SIGNATURES_NOT_INDEXED', `signatures cannot be indexed: ${what}`)
}

/**
 * With more signatures, there could be more lists than a slot can address, if most of them have parts in
 * common.
 */
export const SIGNATURES_MAX = 4_000_000
const SOFTWARE_MAX = 2 ** 31 - 1
const SEEDS_MAX = 8

import { Fault } from '../../../shared/fault.ts'
import { KEY_FORMS, type Seed } from './fingerprint-key.ts'

/**
 * The counts of everything in an index; they determine the layout. A row is one pattern of one type: its key,
 * and the head of its list of owners. After the rows follow the merged lists, each of several rows that have
 * parts in common. A table finds the list for the parts of a fingerprint. The data that a lookup needs is
 * stored together: in a large index, each access to another place waits for memory.
 */
export interface IndexCounts {
  readonly signatures: number
  /** Software numbers are below this. */
  readonly software: number
  /** Lists of more than one row. */
  readonly merged: number
  /** Candidates that are not the first of their list. */
  readonly others: number
  /** Words of the keys that are texts. */
  readonly textWords: number
  /** Of each type. */
  readonly rows: readonly number[]
  /** Of each table. */
  readonly slots: readonly number[]
  /** Of each table: how many slots a lookup checks before it gives up. */
  readonly probes: readonly number[]
}

/** Positions in an index, in 32-bit words. */
export interface IndexLayout extends IndexCounts {
  readonly seed: Seed
  readonly rowCount: number
  readonly listCount: number
  /** The first row of each type. */
  readonly firstRow: readonly number[]
  /** Of each type. A row is the key, or the position of its text, then a head. */
  readonly rowsAt: readonly number[]
  /** Of each type. */
  readonly rowWords: readonly number[]
  /** A merged list is a row number, to compare the list's parts with, then a head. */
  readonly mergedAt: number
  readonly othersAt: number
  readonly textsAt: number
  /** A slot is 0, or eight bits of the hash and the number of the list plus one. */
  readonly slotsAt: readonly number[]
  /** The total size. */
  readonly words: number
}

export function layoutOf(counts: IndexCounts, seed: Seed): IndexLayout {
  let at = HEADER_WORDS
  const after = (words: number) => {
    const from = at
    at += words
    return from
  }
  const rowCount = sum(counts.rows)
  const firstRow = counts.rows.map((_, form) => sum(counts.rows.slice(0, form)))
  const rowWords = KEY_FORMS.map(({ stride }) => (stride === 0 ? 1 : stride) + HEAD_WORDS)
  const rowsAt = counts.rows.map((rows, form) => after(rows * rowWords[form]!))
  const mergedAt = after(counts.merged * MERGED_WORDS)
  const othersAt = after(counts.others * CANDIDATE_WORDS)
  const textsAt = after(counts.textWords)
  const slotsAt = counts.slots.map((slots) => after(slots))
  return {
    ...counts,
    seed,
    rowCount,
    listCount: rowCount + counts.merged,
    firstRow,
    rowsAt,
    rowWords,
    mergedAt,
    othersAt,
    textsAt,
    slotsAt,
    words: at,
  }
}

export function writeHeader(words: Int32Array, layout: IndexLayout): void {
  words.set([MAGIC, VERSION, layout.words, 0, ...layout.seed])
  words.set([layout.signatures, layout.software, layout.merged, layout.others, layout.textWords], FIRST_COUNT)
  words.set([...layout.rows, ...layout.slots, ...layout.probes], FIRST_ROWS)
  words[CHECKSUM] = checksum(words, SUMMED_FROM, words.length, 0)
}

/** Throws a Fault unless everything in the header fits exactly into these words. */
export function readHeader(words: Int32Array): IndexLayout {
  if (words.length < HEADER_WORDS) throw indexFault('is too short')
  if (words[0] !== MAGIC)
    throw indexFault('has an invalid header, or was built on a machine with another byte order')
  if (words[1] !== VERSION) throw indexFault(`has version ${words[1]!}, expected ${VERSION}`)
  const [signatures, software, merged, others, textWords] = words.subarray(FIRST_COUNT, FIRST_ROWS)
  const rows = [...words.subarray(FIRST_ROWS, FIRST_SLOTS)]
  const slots = [...words.subarray(FIRST_SLOTS, FIRST_PROBES)]
  const probes = [...words.subarray(FIRST_PROBES, HEADER_WORDS)]
  const counts = {
    signatures: signatures!,
    software: software!,
    merged: merged!,
    others: others!,
    textWords: textWords!,
    rows,
    slots,
    probes,
  }
  const all = [counts.signatures, counts.software, merged!, others!, textWords!, ...rows, ...slots, ...probes]
  if (all.some((count) => count < 0)) throw indexFault('contains a negative count')
  if (probes.some((count) => count > PROBES_MAX)) throw indexFault(`has more than ${PROBES_MAX} probes`)
  const layout = layoutOf(counts, [words[SEED]!, words[SEED + 1]!])
  if (layout.listCount > LISTS_MAX) throw indexFault(`has more than ${LISTS_MAX} lists`)
  if (layout.others > OTHERS_MAX) throw indexFault(`has more than ${OTHERS_MAX} candidates`)
  if (layout.words !== words.length || words[TOTAL] !== words.length)
    throw indexFault(`has ${words.length * 4} bytes, expected ${layout.words * 4}`)
  return layout
}

export function sumInHeader(words: Int32Array): number {
  return words[CHECKSUM]!
}

/**
 * Any change of one word changes the checksum. It does not protect against attackers; for that, the sender of
 * a file gives its SHA-256.
 */
export function checksum(words: Int32Array, from: number, to: number, before: number): number {
  let sum = before
  for (let i = from; i < to; i++) {
    sum = Math.imul(sum ^ words[i]!, 0x9e3779b1)
    sum = (sum << 13) | (sum >>> 19)
  }
  return sum
}

export function indexFault(what: string): Fault {
  return new Fault('INDEX_INVALID', `the signature index ${what}; build it again`)
}

/** The slot at which the search for a hash begins. */
export function homeOf(hash: number, slots: number): number {
  return Math.floor((hash * slots) / 2 ** 32)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/**
 * The bits of a slot for the number of the list plus one. The other bits are from the hash; they save most
 * comparisons with other keys.
 */
export const LIST_BITS = 24
export const LIST_MASK = 2 ** LIST_BITS - 1
export const LISTS_MAX = LIST_MASK - 1
/**
 * A candidate: software, observations (the lower 32 bits, the upper 21). The head of a list: its first
 * candidate, then one word with the number of other candidates in the lowest bits, and the index of the first
 * of them in the rest.
 */
export const CANDIDATE_WORDS = 3
export const HEAD_WORDS = CANDIDATE_WORDS + 1
export const MERGED_WORDS = 1 + HEAD_WORDS
export const COUNT_BITS = 4
/** In one list. The most observed are kept: parts that more software has in common distinguish none of it. */
export const CANDIDATES_MAX = 2 ** COUNT_BITS
export const OTHERS_MAX = 2 ** (32 - COUNT_BITS)
/** In a half-full table, a longer run does not occur by chance. */
export const PROBES_MAX = 128
export const TABLES = KEY_FORMS.reduce((tables, { whole }) => tables + whole + 1, 0)
export const TEXT_FORM = KEY_FORMS.findIndex(({ stride }) => stride === 0)
/** "GHSI" */
const MAGIC = 0x49534847
const VERSION = 1
const TOTAL = 2
const CHECKSUM = 3
export const SUMMED_FROM = 4
const SEED = 4
const FIRST_COUNT = 6
const FIRST_ROWS = 11
const FIRST_SLOTS = FIRST_ROWS + KEY_FORMS.length
const FIRST_PROBES = FIRST_SLOTS + TABLES
const HEADER_WORDS = FIRST_PROBES + TABLES

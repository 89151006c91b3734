import { Fault } from '../../../shared/fault.ts'
import type { Seed } from './fingerprint-key.ts'
import {
  CANDIDATE_WORDS,
  COUNT_BITS,
  HEAD_WORDS,
  type IndexLayout,
  LISTS_MAX,
  layoutOf,
  MERGED_WORDS,
  OTHERS_MAX,
  TEXT_FORM,
  writeHeader,
} from './index-layout.ts'
import type { Keys, Lists, Numbers, Rows } from './index-rows.ts'
import type { Table } from './index-tables.ts'

/** What an index is written from. */
export interface IndexContents {
  /** Of each type. */
  readonly rows: readonly Rows[]
  readonly lists: Lists
  /** A row of each merged list. */
  readonly mergedRows: Numbers
  readonly tables: readonly Table[]
}

export function writeIndex(
  { rows: all, lists, mergedRows, tables }: IndexContents,
  seed: Seed,
): Uint8Array<ArrayBuffer> {
  const others = lists.software.length - lists.starts.length
  if (lists.starts.length > LISTS_MAX || others > OTHERS_MAX)
    throw notIndexed(`more than ${LISTS_MAX} lists or ${OTHERS_MAX} candidates`)
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

export function notIndexed(what: string): Fault {
  return new Fault('SIGNATURES_NOT_INDEXED', `signatures cannot be indexed: ${what}`)
}

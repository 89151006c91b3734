import {
  FingerprintKey,
  hashKey,
  KEY_FORM_OF,
  KEY_FORMS,
  type KeyForm,
  type PartsAlike,
  partsOf,
  TEXT_CHARACTERS_MAX,
  textWords,
} from './fingerprint-key.ts'
import {
  CANDIDATE_WORDS,
  COUNT_BITS,
  checksum,
  HEAD_WORDS,
  homeOf,
  type IndexLayout,
  indexFault,
  LIST_BITS,
  LIST_MASK,
  layoutOf,
  MERGED_WORDS,
  readHeader,
  SUMMED_FROM,
  sumInHeader,
  TABLES,
} from './index-layout.ts'
import type { FingerprintType } from '../signature.ts'

/** How much of two fingerprints is equal. */
export type Likeness = 'exact' | PartsAlike

/** An owner of a fingerprint. */
export interface Candidate {
  /** The Software's number in the list that the index was built with. */
  readonly software: number
  /** Summed over the signatures; 0 if the fingerprint was only published. */
  readonly observations: number
}

export interface Nearest {
  /** `stable`: the fingerprint differs, but the client's stable key is known. */
  readonly likeness: Likeness | 'stable'
  /** At least one. */
  readonly candidates: readonly Candidate[]
}

/**
 * All fingerprint signatures, for lookup. The index is one buffer and is used in place, so a million
 * signatures are ready as soon as their bytes are. It is never changed, only replaced as a whole and closed.
 */
export class SignatureIndex {
  /** The number of signatures. */
  readonly count: number
  /** Software numbers are below this. A shorter list is not the one that the index was built with. */
  readonly softwareCount: number
  readonly #bytes: ArrayBufferLike
  #layout: IndexLayout
  #words: Int32Array
  /** A cache of candidate lists. Each list has one place, which it shares with other lists. */
  readonly #kept: (readonly Candidate[])[] = new Array(KEPT_LISTS).fill(NO_CANDIDATES)
  readonly #keptHead = new Int32Array(KEPT_LISTS)
  /** The fingerprint that is looked up. */
  readonly #key = new FingerprintKey()

  private constructor(layout: IndexLayout, words: Int32Array) {
    this.count = layout.signatures
    this.softwareCount = layout.software
    this.#bytes = words.buffer
    this.#layout = layout
    this.#words = words
  }

  /**
   * Throws a Fault if a lookup in the first `length` bytes could fail. The index owns the bytes from now on.
   */
  static open(bytes: ArrayBufferLike, length = bytes.byteLength): SignatureIndex {
    const opening = SignatureIndex.opening(bytes, length)
    for (;;) {
      const step = opening.next()
      if (step.done) return step.value
    }
  }

  /** The same, yielding after at most half a millisecond of checks. */
  static *opening(bytes: ArrayBufferLike, length = bytes.byteLength): Generator<undefined, SignatureIndex> {
    if (length % 4 !== 0) throw indexFault('has a length that is not a multiple of 4')
    const words = new Int32Array(bytes, 0, length / 4)
    const layout = readHeader(words)
    yield* checkSum(words)
    for (const form of KEY_FORMS) yield* checkRows(words, layout, form)
    yield* checkMerged(words, layout)
    for (const form of KEY_FORMS) yield* checkTables(words, layout, form)
    return new SignatureIndex(layout, words)
  }

  /**
   * The owners of a fingerprint, most observed first. Empty if the value is not a fingerprint of this type.
   */
  find(type: FingerprintType, value: string, likeness: Likeness): readonly Candidate[] {
    const form = KEY_FORM_OF[type]
    if (!this.#key.read(form, value)) return NO_CANDIDATES
    return this.#candidates(this.#headFor(form, partsOf(form, likeness)))
  }

  /**
   * Looks up the whole fingerprint, then the client's stable key if it is given, then the most telling parts.
   */
  nearest(type: FingerprintType, value: string, stable: string | null = null): Nearest | null {
    const form = KEY_FORM_OF[type]
    const isOne = this.#key.read(form, value)
    const whole = isOne ? this.#headFor(form, form.whole) : NO_HEAD
    if (whole !== NO_HEAD) return { likeness: 'exact', candidates: this.#candidates(whole) }
    if (stable !== null) {
      const same = this.find('stable', stable, 'exact')
      if (same.length > 0) return { likeness: 'stable', candidates: same }
      if (isOne) this.#key.read(form, value) // `find` has read the stable key
    }
    if (!isOne) return null
    for (let i = 0; i < form.order.length; i++) {
      const head = this.#headFor(form, form.orderParts[i]!)
      if (head !== NO_HEAD) return { likeness: form.order[i]!, candidates: this.#candidates(head) }
    }
    return null
  }

  /** After this call, every lookup finds nothing, and the caller may reuse the bytes. */
  close(): ArrayBufferLike {
    this.#layout = CLOSED
    this.#words = new Int32Array(0)
    return this.#bytes
  }

  /** The position of the list for these parts of `#key`. */
  #headFor(form: KeyForm, parts: number): number {
    const layout = this.#layout
    const table = form.firstTable + parts
    const slots = layout.slots[table]!
    if (slots === 0) return NO_HEAD
    const words = this.#words
    const hash = hashKey(form, parts, this.#key.words, 0, layout.seed)
    const from = layout.slotsAt[table]!
    let slot = homeOf(hash, slots)
    for (let left = layout.probes[table]!; left > 0; left--) {
      const found = words[from + slot]!
      if (found === 0) return NO_HEAD
      if (found >>> LIST_BITS === (hash & TAG_MASK)) {
        const list = (found & LIST_MASK) - 1
        const row = rowAt(layout, form, rowOf(words, layout, list))
        if (this.#key.isAt(form, parts, words, keyAt(words, layout, form, row)))
          return list < layout.rowCount
            ? row + layout.rowWords[form.number]! - HEAD_WORDS
            : layout.mergedAt + (list - layout.rowCount) * MERGED_WORDS + 1
      }
      if (++slot === slots) slot = 0
    }
    return NO_HEAD
  }

  #candidates(head: number): readonly Candidate[] {
    if (head === NO_HEAD) return NO_CANDIDATES
    const place = head % KEPT_LISTS
    if (this.#keptHead[place] === head) return this.#kept[place]!
    const words = this.#words
    const candidates = [candidateAt(words, head)]
    const others = words[head + CANDIDATE_WORDS]!
    let at = this.#layout.othersAt + (others >>> COUNT_BITS) * CANDIDATE_WORDS
    for (let left = others & COUNT_MASK; left > 0; left--, at += CANDIDATE_WORDS)
      candidates.push(candidateAt(words, at))
    this.#kept[place] = candidates
    this.#keptHead[place] = head
    return candidates
  }
}

/** The row of a list; for a merged list, one of its rows. */
function rowOf(words: Int32Array, layout: IndexLayout, list: number): number {
  return list < layout.rowCount ? list : words[layout.mergedAt + (list - layout.rowCount) * MERGED_WORDS]!
}

function rowAt(layout: IndexLayout, form: KeyForm, row: number): number {
  return layout.rowsAt[form.number]! + (row - layout.firstRow[form.number]!) * layout.rowWords[form.number]!
}

function keyAt(words: Int32Array, layout: IndexLayout, form: KeyForm, rowAt: number): number {
  return form.stride === 0 ? layout.textsAt + words[rowAt]! : rowAt
}

function candidateAt(words: Int32Array, at: number): Candidate {
  return { software: words[at]!, observations: observationsAt(words, at) }
}

function observationsAt(words: Int32Array, at: number): number {
  return words[at + 2]! * 2 ** 32 + (words[at + 1]! >>> 0)
}

function* checkSum(words: Int32Array): Generator<undefined, void> {
  let sum = 0
  for (const [from, to] of slices(words.length - SUMMED_FROM)) {
    sum = checksum(words, from + SUMMED_FROM, to + SUMMED_FROM, sum)
    yield
  }
  if (sum !== sumInHeader(words)) throw indexFault('is damaged')
}

/** Checks that each row has a list, and a text if its key is a text. */
function* checkRows(words: Int32Array, layout: IndexLayout, form: KeyForm): Generator<undefined, void> {
  const rowWords = layout.rowWords[form.number]!
  for (const [from, to] of slices(layout.rows[form.number]!)) {
    for (let i = from; i < to; i++) {
      const at = layout.rowsAt[form.number]! + i * rowWords
      if (form.stride === 0) checkText(words, layout, words[at]!)
      checkList(words, layout, at + rowWords - HEAD_WORDS)
    }
    yield
  }
}

function checkText(words: Int32Array, { textsAt, textWords: all }: IndexLayout, start: number): void {
  const length = start >= 0 && start < all ? words[textsAt + start]! : -1
  if (length < 0 || length > TEXT_CHARACTERS_MAX || start + textWords(length) > all)
    throw indexFault('refers to a missing text')
}

/** Checks that each merged list has a row. */
function* checkMerged(words: Int32Array, layout: IndexLayout): Generator<undefined, void> {
  for (const [from, to] of slices(layout.merged)) {
    for (let i = from; i < to; i++) {
      const at = layout.mergedAt + i * MERGED_WORDS
      if (words[at]! < 0 || words[at]! >= layout.rowCount) throw indexFault('contains a list without a row')
      checkList(words, layout, at + 1)
    }
    yield
  }
}

/** Checks that the candidates of a list are sorted, most observed first. */
function checkList(words: Int32Array, layout: IndexLayout, head: number): void {
  const others = words[head + CANDIDATE_WORDS]!
  const from = others >>> COUNT_BITS
  const count = others & COUNT_MASK
  if (from + count > layout.others) throw indexFault('contains a list without candidates')
  checkCandidate(words, layout, head, Number.MAX_SAFE_INTEGER)
  let most = observationsAt(words, head)
  for (let i = 0; i < count; i++) {
    const at = layout.othersAt + (from + i) * CANDIDATE_WORDS
    checkCandidate(words, layout, at, most)
    most = observationsAt(words, at)
  }
}

function checkCandidate(words: Int32Array, { software }: IndexLayout, at: number, most: number): void {
  const observations = observationsAt(words, at)
  if (words[at]! < 0 || words[at]! >= software) throw indexFault('contains a candidate with invalid software')
  if (observations < 0 || observations > most) throw indexFault('contains candidates in the wrong order')
}

/** Checks that each slot has a list of its own type. */
function* checkTables(words: Int32Array, layout: IndexLayout, form: KeyForm): Generator<undefined, void> {
  for (let table = form.firstTable; table <= form.firstTable + form.whole; table++) {
    for (const [from, to] of slices(layout.slots[table]!)) {
      const at = layout.slotsAt[table]!
      checkSlots(words, layout, form, at + from, at + to)
      yield
    }
  }
}

function checkSlots(words: Int32Array, layout: IndexLayout, form: KeyForm, from: number, to: number): void {
  const firstRow = layout.firstRow[form.number]!
  const rowEnd = firstRow + layout.rows[form.number]!
  for (let at = from; at < to; at++) {
    if (words[at] === 0) continue
    const list = (words[at]! & LIST_MASK) - 1
    const row = list >= 0 && list < layout.listCount ? rowOf(words, layout, list) : -1
    if (row < firstRow || row >= rowEnd) throw indexFault('contains a slot without a list of its type')
  }
}

function* slices(length: number): Generator<readonly [from: number, to: number]> {
  for (let from = 0; from < length; from += SLICE) yield [from, Math.min(length, from + SLICE)]
}

const CLOSED = layoutOf(
  {
    signatures: 0,
    software: 0,
    merged: 0,
    others: 0,
    textWords: 0,
    rows: KEY_FORMS.map(() => 0),
    slots: Array(TABLES).fill(0),
    probes: Array(TABLES).fill(0),
  },
  [0, 0],
)
const NO_CANDIDATES: readonly Candidate[] = Object.freeze([])
/** Only the header begins at 0, so no list does. */
const NO_HEAD = 0
/** About a hundred bytes each. Frequent clients have few different fingerprints. */
const KEPT_LISTS = 4096
const TAG_MASK = 2 ** (32 - LIST_BITS) - 1
const COUNT_MASK = 2 ** COUNT_BITS - 1
const SLICE = 8192

import { type KeyForm, textWords } from './fingerprint-key.ts'

/** Keys of one type. */
export class Keys {
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
export class Lists {
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
export interface Rows {
  readonly keys: Keys
  readonly owners: Lists
}

/** A growing array of 32-bit integers. */
export class Numbers {
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

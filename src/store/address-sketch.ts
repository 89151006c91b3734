/**
 * How many distinct addresses there were, in a text of bounded length: exact up to 16, then HyperLogLog with 64
 * registers, which is off by some 13 %. Sketches of the same thing can be joined.
 */
export class AddressSketch {
  /** Hashes, while they are few. */
  #few: Set<number> | null = new Set()
  #registers: Uint8Array | null = null

  static parse(text: string): AddressSketch {
    const sketch = new AddressSketch()
    if (text.startsWith(FEW)) {
      for (let at = FEW.length; at < text.length; at += 8)
        sketch.add(Number.parseInt(text.slice(at, at + 8), 16))
    } else {
      sketch.#few = null
      sketch.#registers = Uint8Array.from(text, (character) => character.charCodeAt(0) - ZERO)
    }
    return sketch
  }

  /** `hash`: 32 bits of the address, evenly spread. */
  add(hash: number): void {
    if (this.#few === null) return this.#register(hash)
    this.#few.add(hash)
    if (this.#few.size > FEW_MAX) this.#spread()
  }

  join(other: AddressSketch): void {
    for (const hash of other.#few ?? []) this.add(hash)
    if (other.#registers === null) return
    if (this.#few !== null) this.#spread()
    const registers = this.#registers!
    for (const [at, rank] of other.#registers.entries()) if (rank > registers[at]!) registers[at] = rank
  }

  get count(): number {
    if (this.#few !== null) return this.#few.size
    let sum = 0
    let zeros = 0
    for (const rank of this.#registers!) {
      sum += 2 ** -rank
      if (rank === 0) zeros++
    }
    const estimate = (ALPHA * REGISTERS * REGISTERS) / sum
    // Flajolet et al. 2007: below this, counting empty registers is closer.
    const isSmall = estimate <= 2.5 * REGISTERS && zeros > 0
    const count = Math.round(isSmall ? REGISTERS * Math.log(REGISTERS / zeros) : estimate)
    // It was exact when it became an estimate.
    return Math.max(FEW_MAX + 1, count)
  }

  get text(): string {
    if (this.#few === null) return String.fromCharCode(...this.#registers!.map((rank) => rank + ZERO))
    const hashes = [...this.#few].sort((one, other) => one - other)
    return FEW + hashes.map((hash) => hash.toString(16).padStart(8, '0')).join('')
  }

  #spread(): void {
    const few = this.#few!
    this.#few = null
    this.#registers = new Uint8Array(REGISTERS)
    for (const hash of few) this.#register(hash)
  }

  #register(hash: number): void {
    const at = hash & (REGISTERS - 1)
    const rank = Math.min(Math.clz32((hash & ~(REGISTERS - 1)) >>> 0), RANK_MAX) + 1
    if (rank > this.#registers![at]!) this.#registers![at] = rank
  }
}

const FEW = 'few:'
const FEW_MAX = 16
const REGISTERS = 64
const RANK_MAX = 26
const ALPHA = 0.709
/** So that the text has no control characters. */
const ZERO = 48

/**
 * Counts distinct addresses in a text of bounded length that reveals no address. For up to 16 addresses it
 * stores 16 bits of each one's hash, which thousands of other addresses share. For more, it keeps
 * HyperLogLog's 64 registers, with an error of some 13 %. Sketches can be merged.
 */
export class AddressSketch {
  /** The upper half of each hash, while there are few addresses. */
  #few: Set<number> | null = new Set()
  #registers: Uint8Array | null = null

  static parse(text: string): AddressSketch {
    const sketch = new AddressSketch()
    if (text.startsWith(FEW)) {
      for (let at = FEW.length; at < text.length; at += 4)
        sketch.#addHalf(Number.parseInt(text.slice(at, at + 4), 16))
    } else {
      sketch.#few = null
      const registers = new Uint8Array(text.length)
      for (let at = 0; at < text.length; at++) registers[at] = text.charCodeAt(at) - ZERO
      sketch.#registers = registers
    }
    return sketch
  }

  /** `hash`: a 32-bit hash of the address, evenly distributed. */
  add(hash: number): void {
    if (this.#few === null) this.#register(hash)
    else this.#addHalf(hash >>> 16)
  }

  join(other: AddressSketch): void {
    for (const half of other.#few ?? []) this.#addHalf(half)
    if (other.#registers === null) return
    if (this.#few !== null) this.#spread()
    const registers = this.#registers!
    for (let at = 0; at < registers.length; at++)
      registers[at] = Math.max(registers[at]!, other.#registers[at]!)
  }

  get count(): number {
    if (this.#few !== null) return this.#few.size
    let sum = 0
    let zeros = 0
    for (const rank of this.#registers!) {
      sum += INVERSES[rank]!
      if (rank === 0) zeros++
    }
    const estimate = (ALPHA * REGISTERS * REGISTERS) / sum
    // Flajolet et al. 2007: below this, counting empty registers is more accurate.
    const isSmall = estimate <= 2.5 * REGISTERS && zeros > 0
    const count = Math.round(isSmall ? REGISTERS * Math.log(REGISTERS / zeros) : estimate)
    // The exact count was above FEW_MAX when estimation started.
    return Math.max(FEW_MAX + 1, count)
  }

  get text(): string {
    if (this.#few === null) return Buffer.from(this.#registers!.map((rank) => rank + ZERO)).toString('latin1')
    const halves = [...this.#few].sort((one, other) => one - other)
    return FEW + halves.map((half) => half.toString(16).padStart(4, '0')).join('')
  }

  #addHalf(half: number): void {
    if (this.#few === null) return this.#register(half * 0x10000 + UNKNOWN_HALF)
    this.#few.add(half)
    if (this.#few.size > FEW_MAX) this.#spread()
  }

  #spread(): void {
    const few = this.#few!
    this.#few = null
    this.#registers = new Uint8Array(REGISTERS)
    for (const half of few) this.#addHalf(half)
  }

  /**
   * The upper half of the hash decides the register and nearly always the rank, so
   * half a hash gives the same result.
   */
  #register(hash: number): void {
    const at = (hash >>> 16) & (REGISTERS - 1)
    const others = (hash >>> 22) * 0x10000 + (hash & 0xffff)
    const rank = Math.clz32(others) - (32 - RANK_BITS) + 1
    if (rank > this.#registers![at]!) this.#registers![at] = rank
  }
}

const FEW = 'few:'
const FEW_MAX = 16
/** Two to the sixth: six bits of a hash select the register. */
const REGISTERS = 64
const RANK_BITS = 26
/** Makes the rank depend on the upper half only. */
const UNKNOWN_HALF = 0xffff
/** Of each rank: two to the minus it. */
const INVERSES = Array.from({ length: 256 }, (_, rank) => 2 ** -rank)
const ALPHA = 0.709
/** Avoids control characters in the text. */
const ZERO = 48

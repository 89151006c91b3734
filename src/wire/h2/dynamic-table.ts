/** The dynamic table of HPACK (RFC 7541 §2.3.2 and §4), a ring. Index 0 is the newest field. */
export class DynamicTable {
  /** Each name and its value. */
  #texts: string[] = []
  /** How many fields have room: a power of two, as a ring needs it, or 0. */
  #room = 0
  #added = 0
  #length = 0
  #bytes = 0
  #bytesMax = TABLE_BYTES_DEFAULT

  get length(): number {
    return this.#length
  }

  /** How many fields were ever added: one less is the number of the newest. */
  get added(): number {
    return this.#added
  }

  get bytes(): number {
    return this.#bytes
  }

  get bytesMax(): number {
    return this.#bytesMax
  }

  /** `index` is less than `length`. */
  nameAt(index: number): string {
    return this.#texts[2 * ((this.#added - 1 - index) & (this.#room - 1))]!
  }

  /** `index` is less than `length`. */
  valueAt(index: number): string {
    return this.#texts[2 * ((this.#added - 1 - index) & (this.#room - 1)) + 1]!
  }

  /** §4.4: a field larger than the table empties it, which is not an error. Returns whether it was added. */
  add(name: string, value: string): boolean {
    const bytes = fieldBytes(name, value)
    this.#evictTo(this.#bytesMax - bytes)
    if (bytes > this.#bytesMax) return false
    if (this.#length === this.#room) this.#grow()
    const at = 2 * (this.#added & (this.#room - 1))
    this.#texts[at] = name
    this.#texts[at + 1] = value
    this.#added++
    this.#length++
    this.#bytes += bytes
    return true
  }

  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax
    this.#evictTo(bytesMax)
  }

  #evictTo(bytes: number): void {
    while (this.#bytes > bytes && this.#length > 0) {
      const at = 2 * ((this.#added - this.#length) & (this.#room - 1))
      this.#bytes -= fieldBytes(this.#texts[at]!, this.#texts[at + 1]!)
      this.#texts[at] = ''
      this.#texts[at + 1] = ''
      this.#length--
    }
  }

  #grow(): void {
    const room = Math.max(2 * this.#room, ROOM_MIN)
    const texts = new Array<string>(2 * room).fill('')
    for (let index = 0; index < this.#length; index++) {
      const at = 2 * ((this.#added - 1 - index) & (room - 1))
      texts[at] = this.nameAt(index)
      texts[at + 1] = this.valueAt(index)
    }
    this.#texts = texts
    this.#room = room
  }
}

/** §4.1. */
export function fieldBytes(name: string, value: string): number {
  return name.length + value.length + 32
}

/** RFC 9113 §6.5.2: the size until a size update changes it. */
export const TABLE_BYTES_DEFAULT = 4096

/** A small client fills no more. */
const ROOM_MIN = 4

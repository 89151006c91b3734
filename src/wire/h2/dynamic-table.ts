/** The dynamic table of HPACK (RFC 7541 §2.3.2 and §4), a ring. Index 0 is the newest field. */
export class DynamicTable {
  #names: string[] = new Array<string>(ROOM_MIN).fill('')
  #values: string[] = new Array<string>(ROOM_MIN).fill('')
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
    return this.#names[(this.#added - 1 - index) & (this.#names.length - 1)]!
  }

  /** `index` is less than `length`. */
  valueAt(index: number): string {
    return this.#values[(this.#added - 1 - index) & (this.#values.length - 1)]!
  }

  /** §4.4: a field larger than the table empties it, which is not an error. Returns whether it was added. */
  add(name: string, value: string): boolean {
    const bytes = fieldBytes(name, value)
    this.#evictTo(this.#bytesMax - bytes)
    if (bytes > this.#bytesMax) return false
    if (this.#length === this.#names.length) this.#grow()
    const at = this.#added & (this.#names.length - 1)
    this.#names[at] = name
    this.#values[at] = value
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
      const at = (this.#added - this.#length) & (this.#names.length - 1)
      this.#bytes -= fieldBytes(this.#names[at]!, this.#values[at]!)
      this.#names[at] = ''
      this.#values[at] = ''
      this.#length--
    }
  }

  #grow(): void {
    const room = 2 * this.#names.length
    const names = new Array<string>(room).fill('')
    const values = new Array<string>(room).fill('')
    for (let index = 0; index < this.#length; index++) {
      const at = (this.#added - 1 - index) & (room - 1)
      names[at] = this.nameAt(index)
      values[at] = this.valueAt(index)
    }
    this.#names = names
    this.#values = values
  }
}

/** §4.1. */
export function fieldBytes(name: string, value: string): number {
  return name.length + value.length + 32
}

/** RFC 9113 §6.5.2: the size until a size update changes it. */
export const TABLE_BYTES_DEFAULT = 4096

/** A power of two, as a ring needs it. */
const ROOM_MIN = 16

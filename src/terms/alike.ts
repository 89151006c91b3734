/** Values made once for equal parts. Objects are equal if they are the same. */
export class Alike<Value> {
  readonly #numbers = new Map<unknown, number>()
  readonly #known = new Map<string, Value>()

  of(parts: readonly unknown[], make: () => Value): Value {
    const key = parts.map((part) => this.#numberOf(part)).join()
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const made = make()
    this.#known.set(key, made)
    return made
  }

  #numberOf(part: unknown): number {
    const number = this.#numbers.get(part) ?? this.#numbers.size
    this.#numbers.set(part, number)
    return number
  }
}

import { inspect } from 'node:util'

/** Something that is only ever shown on purpose: whatever prints it by accident prints `<redacted>`. */
export class Secret<Value> {
  /** Where it can be read again when it changes; `null`: it was given directly. */
  readonly file: string | null
  readonly #value: Value

  constructor(value: Value, file: string | null = null) {
    this.file = file
    this.#value = value
  }

  reveal(): Value {
    return this.#value
  }

  toString(): string {
    return REDACTED
  }

  toJSON(): string {
    return REDACTED
  }

  [inspect.custom](): string {
    return REDACTED
  }
}

export const REDACTED = '<redacted>'

/** What a file of one secret says: its last line may have an end. */
export function secretText(text: string): string {
  return text.replace(/\r?\n$/, '')
}

/** What a file of several secrets says, one a line. */
export function secretLines(text: string): readonly string[] {
  return text.split(/\r?\n/).filter((line) => line !== '')
}

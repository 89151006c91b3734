import { inspect } from 'node:util'

/** A secret value that is shown only on purpose: accidental output prints `<redacted>`. */
export class Secret<Value> {
  /** The file to read it from again when it changes; `null`: it was given directly. */
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

/** The secret in a file: drops the line end after the last line. */
export function secretText(text: string): string {
  return text.replace(/\r?\n$/, '')
}

/** The secrets in a file, one per line. */
export function secretLines(text: string): readonly string[] {
  return text.split(/\r?\n/).filter((line) => line !== '')
}

import { inspect } from 'node:util'

/** Something that is only ever shown on purpose: whatever prints it by accident prints `<redacted>`. */
export class Secret<Value> {
  readonly #value: Value

  constructor(value: Value) {
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

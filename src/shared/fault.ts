/**
 * The world's failure (a file, a network, an operator's setting), told apart by `code`. A peer's failure is
 * a value, never thrown; our own is an assertion.
 */
export class Fault extends Error {
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'Fault'
    this.code = code
  }
}

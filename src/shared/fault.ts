/**
 * A failure of the environment (a file, a network, an operator's setting), identified by `code`. Failures of
 * peers are returned as values, never thrown. Bugs are assertions.
 */
export class Fault extends Error {
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'Fault'
    this.code = code
  }
}

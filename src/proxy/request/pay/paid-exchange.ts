import type { Exchange } from '../../connection/exchange.ts'
import { WrappedExchange } from '../publish/wrapped-exchange.ts'

/** A request that was paid for. */
export interface Paid {
  /** The receipt, for the client. */
  readonly headers: readonly string[]
  /** Called once the app has answered, or will not. `status` 0: it has not. Only the first call counts. */
  done(status: number): void
}

/** Adds the receipt to the answer of the app. */
export class PaidExchange extends WrappedExchange {
  readonly #paid: Paid

  constructor(inner: Exchange, paid: Paid) {
    super(inner)
    this.#paid = paid
  }

  override answer(...[status, headers, ...others]: Parameters<Exchange['answer']>): void {
    this.#paid.done(status)
    super.answer(status, [...forOneClient(headers), ...this.#paid.headers], ...others)
  }
}

/** A shared cache would give to others what one client has paid for. */
function forOneClient(headers: readonly string[]): readonly string[] {
  const isKept = (i: number) => headers[i]!.toLowerCase() === 'cache-control'
  const values = headers.flatMap((_, i) => (i % 2 === 0 && isKept(i) ? [headers[i + 1]!] : []))
  if (values.some((value) => /\b(?:private|no-store)\b/i.test(value))) return headers
  const others = headers.filter((_, i) => !isKept(i - (i % 2)))
  return [...others, 'Cache-Control', 'private']
}

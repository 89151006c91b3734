import type { Exchange } from '../../connection/exchange.ts'

/** An exchange that does all of another one; what is different is in classes that extend it. */
export abstract class WrappedExchange implements Exchange {
  protected readonly inner: Exchange

  constructor(inner: Exchange) {
    this.inner = inner
  }

  get connection() {
    return this.inner.connection
  }

  get head() {
    return this.inner.head
  }

  get authority() {
    return this.inner.authority
  }

  get body() {
    return this.inner.body
  }

  get isBodyWhole() {
    return this.inner.isBodyWhole
  }

  get bodyLength() {
    return this.inner.bodyLength
  }

  get expectsContinue() {
    return this.inner.expectsContinue
  }

  get acceptsTrailers() {
    return this.inner.acceptsTrailers
  }

  get trailers() {
    return this.inner.trailers
  }

  get answered() {
    return this.inner.answered
  }

  get onGone() {
    return this.inner.onGone
  }

  set onGone(then) {
    this.inner.onGone = then
  }

  get onDrain() {
    return this.inner.onDrain
  }

  set onDrain(then) {
    this.inner.onDrain = then
  }

  inform(status: number, headers: readonly string[]): void {
    this.inner.inform(status, headers)
  }

  answer(...answer: Parameters<Exchange['answer']>): void {
    this.inner.answer(...answer)
  }

  write(chunk: Uint8Array): boolean {
    return this.inner.write(chunk)
  }

  end(trailers: readonly string[]): void {
    this.inner.end(trailers)
  }

  abort(): void {
    this.inner.abort()
  }
}

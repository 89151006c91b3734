import type { Readable } from 'node:stream'
import type { Exchange } from '../../connection/exchange.ts'
import { FedBody } from '../../http/fed-body.ts'
import { WrappedExchange } from '../publish/wrapped-exchange.ts'

/** An exchange whose body was read to its end, or a part of it, and is there again. */
export class MessageExchange extends WrappedExchange {
  readonly #body: PassedBody

  constructor(inner: Exchange, body: PassedBody) {
    super(inner)
    this.#body = body
  }

  override get body(): Readable {
    return this.#body
  }

  override get isBodyWhole(): boolean {
    return this.#body.isWhole
  }

  /** The client was told to send its body. */
  override get expectsContinue(): boolean {
    return false
  }
}

/** A body that begins with bytes that were read already. */
export class PassedBody extends FedBody {
  readonly #rest: Readable | null

  /** `rest`: the source of the other bytes. `null`: the bytes that were read are the whole body. */
  constructor(rest: Readable | null) {
    super(() => rest?.resume())
    this.#rest = rest
    rest?.on('data', this.#came)
    rest?.on('end', this.#ended)
    rest?.on('error', this.#broke)
    rest?.on('close', this.#broke)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const rest = this.#rest
    rest?.off('data', this.#came)
    rest?.off('end', this.#ended)
    rest?.off('error', this.#broke)
    rest?.off('close', this.#broke)
    // Its connection goes on with what follows.
    if (rest?.destroyed === false) rest.resume()
    super._destroy(error, done)
  }

  readonly #came = (chunk: Uint8Array): void => {
    if (!this.feed(chunk)) this.#rest!.pause()
  }

  readonly #ended = (): void => this.finish()

  readonly #broke = (): void => {
    if (!this.isWhole) this.destroy()
  }
}

import { FedBody } from './fed-body.ts'

/** A request body in the fast lane: the announced number of bytes. */
export class FastBody extends FedBody {
  /** Bytes still to come. */
  left: number

  constructor(length: number, onWanted: () => void) {
    super(onWanted)
    this.left = length
  }

  override feed(bytes: Uint8Array): boolean {
    this.left -= bytes.length
    const hasRoom = super.feed(bytes)
    if (this.left === 0) this.finish()
    return hasRoom
  }
}

import { Pieces } from './pieces.ts'

/** Reassembles fragmented IP datagrams. */
export class IpFragments {
  readonly #datagrams = new Map<string, { readonly pieces: Pieces; length: number | null }>()

  /** The whole payload if this fragment completes it, otherwise `null`. */
  add(key: string, offset: number, more: boolean, fragment: Uint8Array): Buffer | null {
    const end = offset + fragment.length
    if (fragment.length === 0 || end > DATAGRAM_BYTES_MAX) return null
    let datagram = this.#datagrams.get(key)
    if (datagram === undefined) {
      // Drops the oldest incomplete datagram.
      if (this.#datagrams.size === DATAGRAMS_MAX) this.#datagrams.delete(this.#datagrams.keys().next().value!)
      datagram = { pieces: new Pieces(), length: null }
      this.#datagrams.set(key, datagram)
    }
    if (!more) datagram.length = end
    datagram.pieces.add(offset, fragment)
    const whole = datagram.length === null ? null : datagram.pieces.join(datagram.length)
    if (whole !== null) this.#datagrams.delete(key)
    return whole
  }
}

const DATAGRAM_BYTES_MAX = 65_535
const DATAGRAMS_MAX = 512

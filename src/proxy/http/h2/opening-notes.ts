import {
  type Http2Priority,
  type Http2Said,
  type Http2Setting,
  http2Fingerprint,
  pageWeight,
  PRIORITIES_MAX,
  SETTINGS_MAX,
} from '../../../fingerprint/http2.ts'
import type { ConnectionPrint } from '../../../fingerprint/print.ts'
import { HAS_PRIORITY, PADDED, u31At, u32At } from '../../../wire/h2/frame.ts'

/** What a client says before its first request, for `http2Fingerprint`. */
export class OpeningNotes {
  readonly #settings: Http2Setting[] = []
  readonly #priorities: Http2Priority[] = []
  #windowUpdate: number | null = null
  #headersWeight = 0
  #isExcessive = false

  /** The payload of the first SETTINGS frame. */
  settings(payload: Uint8Array): void {
    this.#isExcessive = payload.length > SETTINGS_MAX * 6
    if (this.#isExcessive) return
    for (let at = 0; at < payload.length; at += 6)
      this.#settings.push({ id: (payload[at]! << 8) | payload[at + 1]!, value: u32At(payload, at + 2) })
  }

  /** The increment of a WINDOW_UPDATE for the connection. */
  windowUpdate(increment: number): void {
    this.#windowUpdate ??= increment
  }

  /** The payload of a PRIORITY frame. */
  priority(stream: number, payload: Uint8Array): void {
    if (this.#priorities.length === PRIORITIES_MAX) {
      this.#isExcessive = true
      return
    }
    const isExclusive = payload[0]! >>> 7 === 1
    const [dependsOn, weight] = [u31At(payload, 0), payload[4]! + 1]
    this.#priorities.push({ stream, isExclusive, dependsOn, weight })
  }

  /** The first HEADERS frame. */
  headers(payload: Uint8Array, flags: number): void {
    this.#headersWeight = weightIn(payload, flags)
  }

  /** `null` if a client sends more than any real one. */
  get said(): Http2Said | null {
    if (this.#isExcessive) return null
    return {
      settings: this.#settings,
      windowUpdate: this.#windowUpdate,
      priorities: this.#priorities,
      headersWeight: this.#headersWeight,
    }
  }

  /** `fields` are those of the first request. */
  print(fields: readonly string[]): Pick<ConnectionPrint, 'http2' | 'pageWeight'> {
    const { said } = this
    return said === null
      ? { http2: null, pageWeight: null }
      : { http2: http2Fingerprint(said, fields), pageWeight: pageWeight(said, fields) }
  }
}

/** RFC 9113 §6.2: the priority follows the length of the padding. */
function weightIn(payload: Uint8Array, flags: number): number {
  if ((flags & HAS_PRIORITY) === 0) return 0
  const at = flags & PADDED ? 5 : 4
  return payload.length > at ? payload[at]! + 1 : 0
}

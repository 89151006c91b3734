import { isConnectionField } from './answer-fields.ts'

/** Why a field section is malformed (RFC 9113 §8.1.1), or `null`. */
export type Malformed =
  | 'malformed-field'
  | 'malformed-name'
  | 'malformed-pseudo'
  | 'malformed-connection-field'
  | null

/**
 * Checks the fields of one connection. A request mostly repeats the fields of the one before, and the decoder
 * returns the same strings for them, so each such field costs two comparisons.
 */
export class FieldRules {
  #before: readonly string[] = []

  /** The fields of a request. `malformed-*` names the rule that they break. */
  request(fields: readonly string[]): Malformed {
    let seen = 0
    let isRegular = false
    let method = ''
    const before = this.#before
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i]!
      const value = fields[i + 1]!
      if (name.charCodeAt(0) === COLON) {
        const pseudo = PSEUDO.indexOf(name)
        if (isRegular || pseudo === -1 || (seen & (1 << pseudo)) !== 0) return 'malformed-pseudo'
        seen |= 1 << pseudo
        if (pseudo === 0) method = value
        if (!isSame(before, i, fields) && NOT_IN_VALUE.test(value)) return 'malformed-field'
        continue
      }
      isRegular = true
      if (isSame(before, i, fields)) continue
      const fault = regular(name, value)
      if (fault !== null) return fault
    }
    // §8.3.1, and §8.5 for CONNECT, which has no scheme and path, but has them with a protocol (RFC 8441 §4).
    if (
      method === 'CONNECT'
        ? seen !== (METHOD | AUTHORITY) && seen !== EXTENDED
        : (seen & (REQUIRED | PROTOCOL)) !== REQUIRED
    )
      return 'malformed-pseudo'
    this.#before = fields
    return null
  }

  /** The fields of an answer: `:status`, and no pseudo-header behind it (§8.3.2). */
  answer(fields: readonly string[]): Malformed {
    if (fields[0] !== ':status') return 'malformed-pseudo'
    const before = this.#before
    for (let i = 2; i < fields.length; i += 2) {
      if (fields[i]!.charCodeAt(0) === COLON) return 'malformed-pseudo'
      const fault = isSame(before, i, fields) ? null : regular(fields[i]!, fields[i + 1]!)
      if (fault !== null) return fault
    }
    this.#before = fields
    return null
  }

  /** §8.1: trailers have no pseudo-headers. */
  static trailers(fields: readonly string[]): Malformed {
    for (let i = 0; i < fields.length; i += 2) {
      const name = fields[i]!
      if (name.charCodeAt(0) === COLON) return 'malformed-pseudo'
      const fault = regular(name, fields[i + 1]!)
      if (fault !== null) return fault
    }
    return null
  }
}

function isSame(before: readonly string[], at: number, fields: readonly string[]): boolean {
  return before[at] === fields[at] && before[at + 1] === fields[at + 1]
}

/** §8.2.1 and §8.2.2. */
function regular(name: string, value: string): Malformed {
  if (!NAME.test(name)) return 'malformed-name'
  if (NOT_IN_VALUE.test(value)) return 'malformed-field'
  // Of an answer HTTP2-Settings is left out. RFC 9113 does not name it in §8.2.2.
  if (isConnectionField(name) && name !== 'http2-settings') return 'malformed-connection-field'
  return name === 'te' && value.toLowerCase() !== 'trailers' ? 'malformed-connection-field' : null
}

const PSEUDO = [':method', ':scheme', ':authority', ':path', ':protocol']
const METHOD = 1
const SCHEME = 2
const AUTHORITY = 4
const PATH = 8
const PROTOCOL = 16
const REQUIRED = METHOD | SCHEME | PATH
const EXTENDED = REQUIRED | AUTHORITY | PROTOCOL
/** A token (RFC 9110 §5.6.2) without capital letters. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** No control character except tab, and no blank at either end. */
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]|^[\t ]|[\t ]$/
const COLON = 0x3a

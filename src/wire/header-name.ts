/** Whether a name has letters, digits and hyphens only, which every server reads as what it is. */
export function isPlainName(name: string): boolean {
  for (let i = 0; i < name.length; i++) if (PLAIN[name.charCodeAt(i)] !== 1) return false
  return true
}

/** Whether any name in a flat list (name, value, …) has another character. Pseudo-headers of HTTP/2 do not count. */
export function hasOddNames(rawHeaders: readonly string[]): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (!isPlainName(name) && name.charCodeAt(0) !== COLON) return true
  }
  return false
}

/**
 * The form in which names are compared: lower case, and every character outside [a-z0-9] is a hyphen. CGI, FastCGI and
 * WSGI servers give the app one variable for all spellings of a name that have the same form: `X.Plan`, `X_Plan` and
 * `X-Plan` are HTTP_X_PLAN (RFC 3875 §4.1.18).
 */
export function foldHeaderName(name: string): string {
  return isPlainName(name) ? name.toLowerCase() : name.replace(NOT_ALPHANUMERIC, '-').toLowerCase()
}

/** The same as `foldHeaderName(sent) === folded`, without a copy. */
export function isFoldedName(sent: string, folded: string): boolean {
  if (sent.length !== folded.length) return false
  for (let i = 0; i < folded.length; i++) {
    if ((FOLDED[sent.charCodeAt(i)] ?? HYPHEN) !== folded.charCodeAt(i)) return false
  }
  return true
}

/**
 * A first look at names: by first character and length alone, most that are not in a list are told apart. A name whose
 * look is true may still not be in the list.
 */
export class NameLook {
  /** By the low bits of the first character: a bit for each length. */
  readonly #lengths = new Uint32Array(32)

  /** `names` are folded; one that ends with `*` is all names that begin so. */
  constructor(names: Iterable<string>) {
    for (const name of names) {
      const bits = name.endsWith('*') ? -1 : lengthBit(name.length)
      this.#lengths[name.charCodeAt(0) & 31]! |= bits
    }
  }

  mayHave(name: string): boolean {
    return (this.#lengths[name.charCodeAt(0) & 31]! & lengthBit(name.length)) !== 0
  }
}

/** Lengths from 31 on share one. */
function lengthBit(length: number): number {
  return 1 << (length < 31 ? length : 31)
}

const COLON = 0x3a
const HYPHEN = 0x2d
const NOT_ALPHANUMERIC = /[^A-Za-z0-9]/g
const PLAIN = new Uint8Array(128)
/** By code: the code it is compared as. */
const FOLDED = new Uint8Array(128).fill(HYPHEN)
for (const character of 'abcdefghijklmnopqrstuvwxyz0123456789') {
  for (const each of [character, character.toUpperCase()]) {
    PLAIN[each.charCodeAt(0)] = 1
    FOLDED[each.charCodeAt(0)] = character.charCodeAt(0)
  }
}
PLAIN[HYPHEN] = 1

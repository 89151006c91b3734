/** Whether a name has only letters, digits and hyphens. All servers read such a name alike. */
export function isPlainName(name: string): boolean {
  for (let i = 0; i < name.length; i++) if (PLAIN[name.charCodeAt(i)] !== 1) return false
  return true
}

/**
 * Whether any name in a flat list (name, value, …) has another character. HTTP/2 pseudo-headers are ignored.
 */
export function hasOddNames(rawHeaders: readonly string[]): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (!isPlainName(name) && name.charCodeAt(0) !== COLON) return true
  }
  return false
}

/**
 * The form in which names are compared: lower case, with a hyphen for every character outside [a-z0-9]. CGI,
 * FastCGI and WSGI servers give the app one variable for all spellings with the same form: `X.Plan`, `X_Plan`
 * and `X-Plan` are HTTP_X_PLAN (RFC 3875 §4.1.18).
 */
export function foldHeaderName(name: string): string {
  return isPlainName(name) ? name.toLowerCase() : name.replace(NOT_ALPHANUMERIC, '-').toLowerCase()
}

/** The same as `foldHeaderName(sent) === folded`, but without a copy. */
export function isFoldedName(sent: string, folded: string): boolean {
  if (sent.length !== folded.length) return false
  for (let i = 0; i < folded.length; i++) {
    if ((FOLDED[sent.charCodeAt(i)] ?? HYPHEN) !== folded.charCodeAt(i)) return false
  }
  return true
}

/**
 * A quick filter by first character and length. If `mayHave` is false, the name is not in the list; if true,
 * it still may not be.
 */
export class NameLook {
  /** Index: the low bits of the first character. Value: one bit for each length. */
  readonly #lengths = new Uint32Array(32)

  /** `names` are folded. A name that ends with `*` is a prefix. */
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

/** Lengths from 31 on share one bit. */
function lengthBit(length: number): number {
  return 1 << (length < 31 ? length : 31)
}

const COLON = 0x3a
const HYPHEN = 0x2d
const ALPHANUMERIC = /[A-Za-z0-9]/
const NOT_ALPHANUMERIC = /[^A-Za-z0-9]/g
/** The folded code of each character code. */
const FOLDED = Uint8Array.from({ length: 128 }, (_, code) =>
  ALPHANUMERIC.test(String.fromCharCode(code))
    ? String.fromCharCode(code).toLowerCase().charCodeAt(0)
    : HYPHEN,
)
/** 1 for the character codes of names that all servers read alike. */
const PLAIN = Uint8Array.from(FOLDED, (folded, code) => (folded !== HYPHEN || code === HYPHEN ? 1 : 0))

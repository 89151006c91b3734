/**
 * A path can be written in many ways, and an upstream may or may not take `/a/..%2fadmin` for `/admin`. So a
 * path has two forms. The sent form undoes only encodings that mean the same to every server. The plain form
 * undoes everything that any server might undo. If both are equal, the path has one reading.
 */
export function hasOneForm(path: string, end: number): boolean {
  for (let at = 0; at < end; at++) {
    const code = path.charCodeAt(at)
    if (code === PERCENT || code === BACKSLASH || code === SEMICOLON) return false
    if (code === SLASH && isDoubtful(path, at + 1, end)) return false
  }
  return true
}

/** Decodes everything except characters that could be taken for the path's structure or its end. */
export function sentForm(path: string): string {
  return path.replace(ENCODED, (encoded, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return STRUCTURE.test(character) ? encoded.toUpperCase() : character
  })
}

/**
 * Removes parameters (`;v=1`), decodes once, cuts at a NUL (where some servers end a path), joins segments
 * with one slash, and resolves `.` and `..`.
 */
export function plainForm(path: string): string {
  const [text] = decoded(path.replace(PARAMETERS, '')).split('\0', 1)
  const segments = text!.replaceAll('\\', '/').split('/')
  const kept: string[] = []
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  const isFolder = NAMES_A_FOLDER.has(segments.at(-1)!) && kept.length > 0
  return `/${kept.join('/')}${isFolder ? '/' : ''}`
}

export function decoded(text: string): string {
  return text.replace(ENCODED, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** Whether a second slash, or a segment `.` or `..`, follows a slash. */
function isDoubtful(path: string, at: number, end: number): boolean {
  if (at === end) return false
  if (path.charCodeAt(at) === SLASH) return true
  let dots = at
  while (dots < end && path.charCodeAt(dots) === DOT) dots++
  return dots > at && dots - at <= 2 && (dots === end || path.charCodeAt(dots) === SLASH)
}

const PERCENT = 0x25
const DOT = 0x2e
const SLASH = 0x2f
const SEMICOLON = 0x3b
const BACKSLASH = 0x5c
const ENCODED = /%([0-9a-f]{2})/gi
// biome-ignore lint/suspicious/noControlCharactersInRegex: some servers end a path at a control character
const STRUCTURE = /[\x00-\x1f\x7f/\\;%?#]/
const PARAMETERS = /;[^/]*/g
const NAMES_A_FOLDER: ReadonlySet<string> = new Set(['', '.', '..'])

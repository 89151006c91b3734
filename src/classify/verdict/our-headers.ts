import { foldHeaderName } from '../../wire/header-name.ts'

/** Whether a folded name is that of a header that only the proxy sets and never accepts from a client. */
export function isOurHeader(folded: string): boolean {
  return folded.startsWith(TAG_PREFIX) || FINGERPRINTS.has(folded)
}

/**
 * Whether a folded name describes where a request comes from. The proxy sets these headers too. Hops in front
 * of it may send some, and clients often send them without bad intent.
 */
export function isForwardingHeader(folded: string): boolean {
  return folded.startsWith(FORWARDED_PREFIX) || folded === 'forwarded' || folded === 'x-real-ip'
}

/**
 * The folded names of headers with which a client pretends to be the proxy: the proxy's own headers in any
 * spelling, and forwarding headers in a spelling that no proxy writes.
 */
export function forgedHeaders(rawHeaders: readonly string[]): readonly string[] {
  const forged: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (!FIRST_LETTERS.includes(name[0]!)) continue
    const folded = foldHeaderName(name)
    if (isOurHeader(folded) || (isForwardingHeader(folded) && folded !== name.toLowerCase()))
      forged.push(folded)
  }
  return forged
}

/**
 * Patterns that match every name for which one of the functions above can be true. For a fast first check.
 */
export const OUR_NAME_PATTERNS: readonly string[] = ['x*', 'forwarded']

const TAG_PREFIX = 'x-agent-'
const FORWARDED_PREFIX = 'x-forwarded-'
const FIRST_LETTERS = 'xXfF'
const FINGERPRINTS: ReadonlySet<string> = new Set([
  'x-ja4-fingerprint',
  'x-ja4-source',
  'x-ja4h-fingerprint',
  'x-ja4s-fingerprint',
  'x-http2-fingerprint',
])

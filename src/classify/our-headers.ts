/** Lower case, and with the hyphens that some servers make of underscores. */
export function plainHeaderName(name: string): string {
  const lower = name.toLowerCase()
  return lower.includes('_') ? lower.replaceAll('_', '-') : lower
}

/** Whether a plain name is that of a header that only we set, in a spelling that nobody before us has a reason for. */
export function isOurHeader(plain: string): boolean {
  return plain.startsWith('x-agent-') || OURS.has(plain) || FORWARDING.has(plain)
}

/** Names in our namespace among the headers of a request, plain: its client tried to tag itself. */
export function forgedHeaders(rawHeaders: readonly string[]): readonly string[] {
  const forged: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (!OUR_FIRSTS.includes(name[0]!)) continue
    const plain = plainHeaderName(name)
    const isOfHops = FORWARDING.has(plain) && !name.includes('_')
    if (isOurHeader(plain) && !isOfHops) forged.push(plain)
  }
  return forged
}

/** With which all of ours begin: most headers begin otherwise. */
const OUR_FIRSTS = 'xXfF'
const OURS: ReadonlySet<string> = new Set([
  'x-ja4-fingerprint',
  'x-ja4-source',
  'x-ja4h-fingerprint',
  'x-ja4s-fingerprint',
  'x-http2-fingerprint',
])
/** With which hops before us say where a request comes from; spelled with underscores by nobody who means well. */
const FORWARDING: ReadonlySet<string> = new Set([
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'forwarded'],
])

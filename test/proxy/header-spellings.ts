/** Headers that only the gateway sets. */
export const OURS: readonly string[] = [
  ...['X-JA4-Fingerprint', 'X-JA4-Source', 'X-JA4H-Fingerprint', 'X-JA4S-Fingerprint', 'X-HTTP2-Fingerprint'],
  ...['X-Agent-Verdict', 'X-Agent-Name', 'X-Agent-Category', 'X-Agent-Purpose', 'X-Agent-Confidence'],
  'X-Agent-Verified',
  ...['X-Agent-Identity', 'X-Agent-Key', 'X-Agent-Conflict', 'X-Agent-Action', 'X-Agent-Decision-Id'],
  ...['X-Agent-Signature', 'X-Agent-Anything'],
]
/** Those that say where a request comes from. */
export const FORWARDING: readonly string[] = [
  ...[
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'X-Forwarded-Host',
    'X-Forwarded-Port',
    'X-Real-IP',
    'Forwarded',
  ],
]
/** Those that apps commonly trust, and that no client is believed in. */
export const NOT_FROM_CLIENTS: readonly string[] = [
  ...['True-Client-IP', 'X-Client-IP', 'X-Cluster-Client-IP', 'CF-Connecting-IP', 'Fastly-Client-IP'],
  ...['X-Original-URL', 'X-Rewrite-URL', 'Proxy'],
]
/** Every character that a name may have beside letters, digits and hyphens (RFC 9110 §5.6.2). */
export const ODD_CHARACTERS: readonly string[] = [..."!#$%&'*+.^_`|~"]

/** The name in all its cases, and with each odd character instead of each hyphen, and of all of them. */
export function spellingsOf(name: string): readonly string[] {
  const hyphens = [...name.matchAll(/-/g)].map(({ index }) => index)
  const spellings = [name, name.toLowerCase(), name.toUpperCase()]
  for (const character of hyphens.length === 0 ? [] : ODD_CHARACTERS) {
    for (const at of hyphens) spellings.push(name.slice(0, at) + character + name.slice(at + 1))
    const all = name.replaceAll('-', character)
    spellings.push(all, all.toLowerCase(), all.toUpperCase())
  }
  return spellings
}

import { hash } from 'node:crypto'
import type { GrantFinish } from '../../../store/people/gnap-grants.ts'

/** Checks the URI to which browsers are sent back (RFC 9635 §2.5.2.1). Returns the error, or `null`. */
export function wrongInFinishUri(uri: string): string | null {
  // The pattern excludes backslashes, which browsers read as slashes, and spaces, which they skip.
  const url = URI.test(uri) ? URL.parse(uri) : null
  if (url === null) return 'is not an absolute URI'
  if (uri.includes('#')) return 'contains a fragment'
  if (url.username !== '' || url.password !== '' || /^[^/]*\/\/[^/?]*@/.test(uri))
    return 'contains a user name or a password'
  const isLoopback = url.protocol === 'http:' && LOOPBACK.has(url.hostname)
  if (url.protocol !== 'https:' && !isLoopback)
    return 'must be https, or http to 127.0.0.1, [::1] or localhost'
  if (TAKEN.some((name) => url.searchParams.has(name)))
    return `must not have ${TAKEN.join(' or ')} in its query`
  return null
}

/** The redirect target, with the hash that ties it to the client's request (RFC 9635 §4.2.1). */
export function finishLocation(finish: GrantFinish, reference: string, grantEndpoint: string): string {
  const url = new URL(finish.uri)
  // Append to the existing query without re-encoding it.
  const added = `hash=${interactionHash(finish, reference, grantEndpoint)}&interact_ref=${reference}`
  url.search = url.search === '' ? added : `${url.search}&${added}`
  return url.href
}

/** RFC 9635 §4.2.3. */
export function interactionHash(
  { nonce, serverNonce, hashMethod }: Pick<GrantFinish, 'nonce' | 'serverNonce' | 'hashMethod'>,
  reference: string,
  grantEndpoint: string,
): string {
  const text = [nonce, serverNonce, reference, grantEndpoint].join('\n')
  return hash(HASHES.get(hashMethod)!, text, 'buffer').toString('base64url')
}

export function isHashMethod(method: string): boolean {
  return HASHES.has(method)
}

const URI = /^[!-[\]-~]{1,2048}$/
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost'])
const TAKEN = ['hash', 'interact_ref']
/** From the names in IANA's hash algorithm registry to the names in Node. */
const HASHES: ReadonlyMap<string, string> = new Map([
  ['sha-256', 'sha256'],
  ['sha-384', 'sha384'],
  ['sha-512', 'sha512'],
  ['sha3-256', 'sha3-256'],
  ['sha3-384', 'sha3-384'],
  ['sha3-512', 'sha3-512'],
])

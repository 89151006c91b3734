import { createHmac } from 'node:crypto'
import { type SigningKey, signBase } from '../../identity/keys/signing-key.ts'

/** What a signature covers besides the headers, so that it cannot be reused for another request. */
export interface TaggedRequest {
  readonly method: string
  /** `null` if the app does not see the client's authority. */
  readonly authority: string | null
  /** The scheme as the app sees it: `https`, or anything else for plain HTTP. */
  readonly scheme: string
  readonly target: string
}

/**
 * Signs the proxy's headers for the app, so that it can tell them from forged ones. The header contains the
 * parameters and the signature of an HTTP Message Signature (RFC 9421) over method, authority, path, query
 * and all headers that the proxy sets. The key is a secret shared with the app (HMAC-SHA256), or a private
 * key whose public half the app has.
 */
export class TagSigner {
  readonly #sign: (base: string) => string
  readonly #parameters: string

  constructor(key: string | SigningKey, keyId = 'gatehouse') {
    const isShared = typeof key === 'string'
    const named = (isShared ? keyId : key.thumbprint).replace(/[\\"]/g, '\\$&')
    this.#parameters = `;keyid="${named}";alg="${isShared ? 'hmac-sha256' : key.algorithm}"`
    this.#sign = isShared
      ? (base) => createHmac('sha256', key).update(base, 'latin1').digest('base64')
      : (base) => signBase(key, base).toString('base64')
  }

  /** The value of X-Agent-Signature. `tags` is the flat list of headers to sign. */
  sign(request: TaggedRequest, tags: readonly string[], nowS: number): string {
    const parts = derivedParts(request)
    for (let i = 0; i < tags.length; i += 2) {
      const name = tags[i]!.toLowerCase()
      const before = parts.get(name)
      const value = fieldValue(tags[i + 1]!)
      parts.set(name, before === undefined ? value : `${before}, ${value}`)
    }
    const covered = Array.from(parts.keys(), (name) => `"${name}"`).join(' ')
    const parameters = `(${covered});created=${nowS}${this.#parameters}`
    let base = ''
    for (const [name, value] of parts) base += `"${name}": ${value}\n`
    base += `"@signature-params": ${parameters}`
    return `${parameters};sig=:${this.#sign(base)}:`
  }
}

/** RFC 9421 §2.2. Field names are in lower case, and none begins with @. */
function derivedParts({ method, authority, scheme, target }: TaggedRequest): Map<string, string> {
  const [, path = '', query = ''] = TARGET.exec(target) ?? []
  const parts = new Map([['@method', method]])
  if (authority !== null) parts.set('@authority', normalAuthority(authority, scheme))
  return parts.set('@path', path === '' ? '/' : path).set('@query', query === '' ? '?' : query)
}

/** RFC 9110 §4.2.3: lower case, without a default port. */
function normalAuthority(authority: string, scheme: string): string {
  return authority.toLowerCase().replace(scheme === 'https' ? /:443$/ : /:80$/, '')
}

/** RFC 9421 §2.1: one line, without blanks at its ends. */
function fieldValue(text: string): string {
  if (!text.includes('\n')) return withoutBlanks(text)
  return withoutBlanks(
    text
      .split(/\r?\n(?=[ \t])/)
      .map(withoutBlanks)
      .join(' '),
  )
}

/** Trims blanks. Not a regular expression, which would be slow on a long run of blanks in the middle. */
function withoutBlanks(text: string): string {
  let [from, to] = [0, text.length]
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** The path and query of a target, which may be a whole URL. */
const TARGET = /^(?:[a-z]+:\/\/[^/?]*)?([^?]*)(.*)$/is

import { createHmac } from 'node:crypto'
import { type SigningKey, signBase } from '../../identity/keys/signing-key.ts'

/** What a signature is for, beside the headers: nobody shall use it again for another request. */
export interface SignedRequest {
  readonly method: string
  /** `null` where the app does not see the one the client sent. */
  readonly authority: string | null
  /** As the app sees it: `https`, or anything else for plain HTTP. */
  readonly scheme: string
  readonly target: string
}

/**
 * Signs what we tell the app, so that it can tell our headers from anybody's: an HTTP Message Signature (RFC 9421), with a
 * secret that the app has, too (HMAC-SHA256), or with a key of which it has the public half, over method, authority, path, query and every header we set, parameters and signature in one header.
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

  /** The value of X-Agent-Signature. `tags` is the flat list of the headers to vouch for. */
  sign(request: SignedRequest, tags: readonly string[], nowS: number): string {
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

/** RFC 9421 §2.2. The names of fields are in lower case, and none begins with an @. */
function derivedParts({ method, authority, scheme, target }: SignedRequest): Map<string, string> {
  const [, path = '', query = ''] = TARGET.exec(target) ?? []
  const parts = new Map([['@method', method]])
  if (authority !== null) parts.set('@authority', normalAuthority(authority, scheme))
  return parts.set('@path', path === '' ? '/' : path).set('@query', query === '' ? '?' : query)
}

/** RFC 9110 §4.2.3: lower case, without the port that goes without saying. */
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

/** At its ends. No pattern: of a text that is all blanks but its end, one would begin at each of them. */
function withoutBlanks(text: string): string {
  let [from, to] = [0, text.length]
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** The path and the query of a target, which a proxy may be sent as a whole URL. */
const TARGET = /^(?:[a-z]+:\/\/[^/?]*)?([^?]*)(.*)$/is

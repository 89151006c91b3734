import { createHmac } from 'node:crypto'

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
 * Signs what we tell the app, so that it can tell our headers from anybody's: an HTTP Message Signature (RFC 9421,
 * HMAC-SHA256) over method, authority, path, query and every header we set, parameters and signature in one header.
 */
export class TagSigner {
  readonly #key: string
  readonly #keyId: string

  constructor(key: string, keyId = 'gatehouse') {
    this.#key = key
    this.#keyId = `"${keyId.replace(/[\\"]/g, '\\$&')}"`
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
    const parameters = `(${covered});created=${nowS};keyid=${this.#keyId};alg="hmac-sha256"`
    let base = ''
    for (const [name, value] of parts) base += `"${name}": ${value}\n`
    base += `"@signature-params": ${parameters}`
    const signature = createHmac('sha256', this.#key).update(base, 'latin1').digest('base64')
    return `${parameters};sig=:${signature}:`
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
  return text.replace(/[ \t]*\r?\n[ \t]+/g, ' ').replace(/^[ \t]+|[ \t]+$/g, '')
}

/** The path and the query of a target, which a proxy may be sent as a whole URL. */
const TARGET = /^(?:[a-z]+:\/\/[^/?]*)?([^?]*)(.*)$/is

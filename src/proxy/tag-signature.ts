import { createHmac } from 'node:crypto'

/**
 * Signs what we tell the app, so that it can tell our headers from anybody's: an HTTP Message Signature (RFC 9421,
 * HMAC-SHA256) over method, authority, path and every header we set, parameters and signature in one header.
 */
export class TagSigner {
  readonly #key: string
  readonly #keyId: string

  constructor(key: string, keyId = 'gatehouse') {
    this.#key = key
    this.#keyId = keyId
  }

  /** The value of X-Agent-Signature. `tags` is the flat list of the headers to vouch for. */
  sign(method: string, authority: string, target: string, tags: readonly string[], nowS: number): string {
    const path = target.split('?', 1)[0]!
    const lines = [`"@method": ${method}`, `"@authority": ${authority.toLowerCase()}`, `"@path": ${path}`]
    const covered = ['"@method"', '"@authority"', '"@path"']
    for (let i = 0; i < tags.length; i += 2) {
      const name = `"${tags[i]!.toLowerCase()}"`
      covered.push(name)
      lines.push(`${name}: ${tags[i + 1]!.trim()}`)
    }
    const parameters = `(${covered.join(' ')});created=${nowS};keyid="${this.#keyId}";alg="hmac-sha256"`
    lines.push(`"@signature-params": ${parameters}`)
    const signature = createHmac('sha256', this.#key).update(lines.join('\n')).digest('base64')
    return `${parameters};sig=:${signature}:`
  }
}

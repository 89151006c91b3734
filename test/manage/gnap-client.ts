import { createHash, randomBytes } from 'node:crypto'
import { contentDigest, newSigner, type Signer, signed, type Wanted } from '../identity/signer.ts'
import type { Answered } from './management.ts'

/** How a request is made otherwise than it should be. */
export interface Changes extends Partial<Omit<Wanted, 'fields'>> {
  readonly fields?: readonly string[]
  /** After it was signed. */
  readonly body?: string | Buffer<ArrayBuffer>
  /** Before it is signed. */
  readonly coding?: 'gzip'
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly path?: string
  /** What the target is said to be. */
  readonly url?: string
}

/** A client of GNAP (RFC 9635) with a key of its own, whose requests are signed by a library that is none of ours. */
export class GnapClient {
  readonly url: string
  readonly signer: Signer
  readonly nowMs: () => number

  constructor(url: string, signer: Signer = newSigner(), nowMs: () => number = Date.now) {
    this.url = url
    this.signer = signer
    this.nowMs = nowMs
  }

  get thumbprint(): string {
    return this.signer.key.thumbprint
  }

  /** For `client` in a request. */
  get key() {
    return { proof: 'httpsig', jwk: this.signer.jwk }
  }

  /** Asks for tokens; `more` takes the place of members of the request. */
  grant(actions: readonly string[], more: Readonly<Record<string, unknown>> = {}, changes: Changes = {}) {
    const body = {
      access_token: { access: [{ type: 'service-api', actions }] },
      client: { key: this.key },
      ...more,
    }
    return this.send('POST', '/gnap/grant', null, body, changes)
  }

  continue({ uri, access_token }: Continue, reference: string | null = null, changes: Changes = {}) {
    const body = reference === null ? undefined : { interact_ref: reference }
    return this.send('POST', this.pathOf(uri), access_token.value, body, changes)
  }

  withdraw({ uri, access_token }: Continue) {
    return this.send('DELETE', this.pathOf(uri), access_token.value)
  }

  rotate({ manage }: Token, body?: unknown, changes: Changes = {}) {
    return this.send('POST', this.pathOf(manage.uri), manage.access_token.value, body, changes)
  }

  revoke({ manage }: Token, changes: Changes = {}) {
    return this.send('DELETE', this.pathOf(manage.uri), manage.access_token.value, undefined, changes)
  }

  /** Uses a token that is bound to the key. */
  ask(method: string, path: string, { value }: Pick<Token, 'value'>, body?: unknown, changes: Changes = {}) {
    return this.send(method, path, value, body, changes)
  }

  async send(
    method: string,
    path: string,
    token: string | null,
    body?: unknown,
    changes: Changes = {},
  ): Promise<Answered> {
    const isWhole = body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
    const text = isWhole ? (body as string | Buffer<ArrayBuffer> | undefined) : JSON.stringify(body)
    const {
      fields,
      headers,
      body: sent = text,
      method: sentMethod,
      path: sentPath,
      url,
      coding,
      ...wanted
    } = changes
    const covered = ['@method', '@target-uri']
    if (text !== undefined) covered.push('content-digest', 'content-type')
    if (token !== null) covered.push('authorization')
    const plain = {
      ...(token !== null && { authorization: `GNAP ${token}` }),
      ...(coding !== undefined && { 'content-encoding': coding }),
      ...(text !== undefined && {
        'content-type': 'application/json',
        'content-digest': contentDigest(text),
      }),
    }
    const all = await signed(
      this.signer,
      { method, url: url ?? `${this.url}${path}`, headers: plain },
      { fields: fields ?? covered, createdS: Math.floor(this.nowMs() / 1000), nonce: newNonce(), ...wanted },
    )
    const response = await fetch(`${this.url}${sentPath ?? path}`, {
      method: sentMethod ?? method,
      headers: { ...(all as Record<string, string>), ...headers },
      redirect: 'manual',
      ...(sent === undefined ? {} : { body: sent }),
    })
    const answer = await response.text()
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
    const read = (answer === '' ? null : JSON.parse(answer)) as any
    return { status: response.status, headers: response.headers, body: read }
  }

  pathOf(uri: string): string {
    return uri.slice(this.url.length)
  }
}

export interface Continue {
  readonly uri: string
  readonly wait: number
  readonly access_token: { readonly value: string }
}

export interface Token {
  readonly value: string
  readonly manage: { readonly uri: string; readonly access_token: { readonly value: string } }
}

export function newNonce(): string {
  return randomBytes(16).toString('base64url')
}

/** RFC 9635 §4.2.3, as a client reckons it. */
export function hashOfInteraction(
  method: 'sha256' | 'sha3-512',
  parts: readonly [nonce: string, serverNonce: string, reference: string, grantEndpoint: string],
): string {
  return createHash(method).update(parts.join('\n')).digest('base64url')
}

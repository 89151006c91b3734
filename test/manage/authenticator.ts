import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** What an authenticator, or who plays one, says otherwise than it should. */
export interface Lies {
  readonly origin?: string
  readonly rpId?: string
  readonly type?: string
  readonly challenge?: string
  readonly userHandle?: string
  /** Present (1), verified (4), with a new credential (64). */
  readonly flags?: number
  readonly counter?: number
  readonly format?: string
  readonly statement?: ReadonlyMap<string, unknown>
  /** Signs with it instead. */
  readonly key?: KeyObject
  readonly id?: string
}

/** An authenticator in software, and the browser in front of it (WebAuthn Level 3 §6, §5.8.1). */
export class Authenticator {
  readonly #origin: string
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  readonly id = randomBytes(32).toString('base64url')
  #handle = ''
  counter = 0

  constructor(origin: string) {
    this.#origin = origin
  }

  // biome-ignore lint/suspicious/noExplicitAny: what is on the page
  make({ challenge, rp, user }: any, lies: Lies = {}): string {
    this.#handle = user.id
    const { x, y } = this.#keys.publicKey.export({ format: 'jwk' })
    const key = new Map<number, unknown>([
      [1, 2],
      [3, -7],
      [-1, 1],
    ])
    key.set(-2, Buffer.from(x!, 'base64url')).set(-3, Buffer.from(y!, 'base64url'))
    const id = Buffer.from(lies.id ?? this.id, 'base64url')
    const length = Buffer.from([id.length >> 8, id.length & 255])
    const data = [this.#data(rp.id, { flags: 69, ...lies }), Buffer.alloc(16), length, id, cbor(key)]
    const attestation = new Map<string, unknown>([['fmt', lies.format ?? 'none']])
    attestation.set('attStmt', lies.statement ?? new Map()).set('authData', Buffer.concat(data))
    return this.#said(lies, {
      clientDataJSON: this.#clientData('webauthn.create', challenge, lies),
      attestationObject: cbor(attestation).toString('base64url'),
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: what is on the page
  use({ challenge, rpId }: any, lies: Lies = {}): string {
    const data = this.#data(rpId, { flags: 5, ...lies })
    const clientDataJSON = this.#clientData('webauthn.get', challenge, lies)
    const hash = createHash('sha256').update(Buffer.from(clientDataJSON, 'base64url')).digest()
    const signature = sign('sha256', Buffer.concat([data, hash]), lies.key ?? this.#keys.privateKey)
    return this.#said(lies, {
      ...{ clientDataJSON, authenticatorData: data.toString('base64url') },
      ...{ signature: signature.toString('base64url'), userHandle: lies.userHandle ?? this.#handle },
    })
  }

  #data(rpId: string, lies: Lies): Buffer {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(lies.counter ?? this.counter)
    const host = createHash('sha256')
      .update(lies.rpId ?? rpId)
      .digest()
    return Buffer.concat([host, Buffer.from([lies.flags!]), counter])
  }

  #clientData(type: string, challenge: string, lies: Lies): string {
    const said = {
      type: lies.type ?? type,
      challenge: lies.challenge ?? challenge,
      origin: lies.origin ?? this.#origin,
    }
    return Buffer.from(JSON.stringify({ ...said, crossOrigin: false })).toString('base64url')
  }

  #said({ id = this.id }: Lies, response: object): string {
    return JSON.stringify({ id, rawId: id, type: 'public-key', response })
  }
}

/** As much of RFC 8949 as authenticators need. */
function cbor(value: unknown): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)])
  const entries = [...(value as Map<unknown, unknown>)]
  return Buffer.concat([head(5, entries.length), ...entries.flat().map(cbor)])
}

function head(major: number, argument: number): Buffer {
  if (argument < 24) return Buffer.from([(major << 5) | argument])
  if (argument < 256) return Buffer.from([(major << 5) | 24, argument])
  return Buffer.from([(major << 5) | 25, argument >> 8, argument & 255])
}

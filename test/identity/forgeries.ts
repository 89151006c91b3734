import { constants, createHmac, type KeyObject, sign } from 'node:crypto'
import type { Signer } from './signer.ts'

/** An agent with a key of each kind, all of them in its directory. */
export interface TestAgent {
  readonly id: string
  readonly ed25519: Signer
  readonly p256: Signer
  readonly rsa: Signer
}

/** Where it is sent, and when. */
export interface Scene {
  readonly agent: TestAgent
  /** Of the agent's key directory, and none of its own. */
  readonly stranger: Signer
  /** Of the gateway: `localhost:8443`. */
  readonly authority: string
  readonly nowS: number
}

export interface Sent {
  readonly method: string
  readonly target: string
  readonly authority: string
  readonly headers: readonly string[]
}

/** A request that falsely claims to be from an agent, and the expected finding. */
export interface Forgery {
  readonly name: string
  readonly finding: 'failed' | 'unchecked'
  readonly why: string
  make(scene: Scene): Sent
}

/** How one is signed that is right; whatever is changed of it makes it something else. */
export interface Making {
  /** As written in Signature-Input, with what is signed for each. */
  readonly components: readonly (readonly [identifier: string, value: string])[]
  /** As written; `null` leaves it out. */
  readonly created: string | null
  readonly expires: string | null
  readonly nonce: string | null
  readonly keyid: string | null
  readonly alg: string | null
  readonly tag: string | null
  readonly more: string
  readonly label: string
  readonly signature: (base: Buffer) => Buffer
  readonly agent: string
  readonly sent: Partial<Sent>
}

export function made(scene: Scene, changes: Partial<Making> = {}): Sent {
  const { agent, authority, nowS } = scene
  const label = changes.label ?? 'sig1'
  // Another URL than an origin is the document with the keys.
  const type = new URL(agent.id).origin === agent.id ? '' : ';type=jwks_uri'
  const shown = changes.agent ?? `${label}="${agent.id}"${type}`
  const value = shown.slice(shown.indexOf('=') + 1)
  const making: Making = {
    components: [
      ['"@authority"', authority],
      [`"signature-agent";key="${label}"`, value],
    ],
    ...{ created: `${nowS}`, expires: `${nowS + 300}`, nonce: newNonce(), alg: null, tag: 'web-bot-auth' },
    ...{ keyid: agent.ed25519.key.thumbprint, more: '', label, agent: shown, sent: {} },
    signature: (base) => sign(null, base, agent.ed25519.privateKey),
    ...changes,
  }
  const input = inputOf(making)
  const base = [...making.components, ['"@signature-params"', input]]
    .map(([identifier, of]) => `${identifier}: ${of}`)
    .join('\n')
  const signature = making.signature(Buffer.from(base, 'latin1')).toString('base64')
  const headers = [
    ...['Signature-Agent', making.agent, 'Signature-Input', `${label}=${input}`],
    ...['Signature', `${label}=:${signature}:`],
  ]
  return { method: 'GET', target: '/cart?id=7', authority, headers, ...making.sent }
}

export const FORGERIES: readonly Forgery[] = [
  failed('signed for another host', 'wrong', (scene) =>
    made(scene, { components: coveringAs(scene, 'other.example') }),
  ),
  failed('signed for another host, and sent with its name', 'other-host', (scene) =>
    made(scene, { components: coveringAs(scene, 'other.example'), sent: { authority: 'other.example' } }),
  ),
  failed('stale', 'expired', (scene) =>
    made(scene, { created: `${scene.nowS - 90_000}`, expires: `${scene.nowS - 3_600}` }),
  ),
  failed('expired', 'expired', (scene) =>
    made(scene, { created: `${scene.nowS - 300}`, expires: `${scene.nowS - 120}` }),
  ),
  failed('expires before it is made', 'expired', (scene) => made(scene, { expires: `${scene.nowS - 1}` })),
  failed('from the future', 'created-in-future', (scene) =>
    made(scene, { created: `${scene.nowS + 180}`, expires: `${scene.nowS + 360}` }),
  ),
  failed('lives too long', 'lives-too-long', (scene) => made(scene, { expires: `${scene.nowS + 86_401}` })),
  failed('no expires', 'no-expires', (scene) => made(scene, { expires: null })),
  failed('no created', 'no-created', (scene) => made(scene, { created: null })),
  failed('an invalid time', 'malformed', (scene) => made(scene, { created: '"now"' })),
  failed('a time below zero', 'malformed', (scene) => made(scene, { created: '-1' })),
  failed('the authority is not covered', 'not-covered', (scene) =>
    made(scene, { components: coveringAs(scene, '').slice(1) }),
  ),
  failed('a part of the query is covered in its place', 'not-covered', (scene) =>
    made(scene, { components: [['"@query-param";name="id"', '7'], ...coveringAs(scene, '').slice(1)] }),
  ),
  failed('the signer is not covered', 'no-agent', (scene) =>
    made(scene, { components: coveringAs(scene, scene.authority).slice(0, 1) }),
  ),
  failed('another member than the covered one names the signer', 'no-agent', (scene) =>
    made(scene, {
      agent: `sig2="${scene.agent.id}"`,
      components: coveringAs(scene, scene.authority).slice(0, 1),
    }),
  ),
  failed('a component that is not in the request', 'no-component', (scene) =>
    made(scene, { components: [...coveringAs(scene, scene.authority), ['"x-gone"', '1']] }),
  ),
  failed('an unknown component', 'no-component', (scene) =>
    made(scene, { components: [...coveringAs(scene, scene.authority), ['"@magic"', '1']] }),
  ),
  failed('a component of answers', 'no-component', (scene) =>
    made(scene, { components: [...coveringAs(scene, scene.authority), ['"@status"', '200']] }),
  ),
  failed('a component with an unknown flag', 'no-component', (scene) =>
    made(scene, { components: [['"@authority";x', scene.authority], ...coveringAs(scene, '')] }),
  ),
  failed('a component given twice', 'malformed', (scene) =>
    made(scene, { components: [['"@authority"', scene.authority], ...coveringAs(scene, scene.authority)] }),
  ),
  failed('the method is covered, and another', 'wrong', (scene) =>
    made(scene, {
      components: [...coveringAs(scene, scene.authority), ['"@method"', 'GET']],
      sent: { method: 'DELETE' },
    }),
  ),
  failed('the path is covered, and another', 'wrong', (scene) =>
    made(scene, {
      components: [...coveringAs(scene, scene.authority), ['"@path"', '/cart']],
      sent: { target: '/admin' },
    }),
  ),
  failed('the query is covered, and another', 'wrong', (scene) =>
    made(scene, {
      components: [...coveringAs(scene, scene.authority), ['"@query"', '?id=7']],
      sent: { target: '/cart?id=8' },
    }),
  ),
  failed('wrong tag', 'other-tag', (scene) => made(scene, { tag: 'gnap' })),
  failed('no tag', 'other-tag', (scene) => made(scene, { tag: null })),
  failed('no keyid', 'no-thumbprint', (scene) => made(scene, { keyid: null })),
  failed('a keyid that is not a thumbprint', 'no-thumbprint', (scene) => made(scene, { keyid: 'my-key' })),
  failed('the keyid of another of its keys', 'wrong', (scene) =>
    made(scene, { keyid: scene.agent.p256.key.thumbprint }),
  ),
  failed('the keyid of a key that the agent does not have', 'unknown-key', (scene) =>
    made(scene, {
      keyid: scene.stranger.key.thumbprint,
      signature: (base) => sign(null, base, scene.stranger.privateKey),
    }),
  ),
  failed('its keyid, and the key of another agent', 'wrong', (scene) =>
    made(scene, { signature: (base) => sign(null, base, scene.stranger.privateKey) }),
  ),
  failed('no address of an agent', 'other-agent', (scene) => made(scene, { agent: 'sig1="an agent"' })),
  failed('an agent with a password in its address', 'other-agent', (scene) =>
    made(scene, { agent: `sig1="${scene.agent.id.replace('://', '://a:b@')}"` }),
  ),
  failed('alg says RSA of an Ed25519 key', 'other-algorithm', (scene) =>
    made(scene, { alg: 'rsa-pss-sha512' }),
  ),
  failed('alg says Ed25519 of an RSA key', 'other-algorithm', (scene) =>
    made(scene, {
      ...{ alg: 'ed25519', keyid: scene.agent.rsa.key.thumbprint },
      signature: (base) => signedByRsa(scene.agent.rsa.privateKey, base),
    }),
  ),
  failed('the signature of a P-256 key, and the keyid of an Ed25519 key', 'wrong', (scene) =>
    made(scene, { signature: (base) => signedByP256(scene.agent.p256.privateKey, base) }),
  ),
  failed('a P-256 signature in DER', 'wrong', (scene) =>
    made(scene, {
      keyid: scene.agent.p256.key.thumbprint,
      signature: (base) => sign('sha256', base, scene.agent.p256.privateKey),
    }),
  ),
  failed('RSA, padded as in PKCS#1 1.5', 'wrong', (scene) =>
    made(scene, {
      keyid: scene.agent.rsa.key.thumbprint,
      signature: (base) => sign('sha512', base, scene.agent.rsa.privateKey),
    }),
  ),
  failed('HMAC with the public key as the secret', 'other-algorithm', (scene) =>
    made(scene, { alg: 'hmac-sha256', signature: (base) => hmacOf(scene, base) }),
  ),
  failed('HMAC with the public key, and no word of it', 'wrong', (scene) =>
    made(scene, { signature: (base) => hmacOf(scene, base) }),
  ),
  failed('an unknown algorithm', 'other-algorithm', (scene) => made(scene, { alg: 'none' })),
  failed('an empty signature', 'wrong', (scene) => made(scene, { signature: () => Buffer.alloc(0) })),
  failed('a signature of zeros', 'wrong', (scene) => made(scene, { signature: () => Buffer.alloc(64) })),
  failed('P-256 of zeros', 'wrong', (scene) =>
    made(scene, { keyid: scene.agent.p256.key.thumbprint, signature: () => Buffer.alloc(64) }),
  ),
  failed('a signature that is cut', 'wrong', (scene) =>
    made(scene, { signature: (base) => sign(null, base, scene.agent.ed25519.privateKey).subarray(0, 63) }),
  ),
  failed('a signature of 10 KiB', 'too-large', (scene) =>
    made(scene, {
      signature: (base) => Buffer.alloc(10_240, sign(null, base, scene.agent.ed25519.privateKey)),
    }),
  ),
  failed('parameters of 2 KiB', 'too-large', (scene) => made(scene, { more: `;x="${'x'.repeat(2_048)}"` })),
  failed('a structured field of 4 KiB', 'no-component', (scene) => {
    const components = [['"x-long";key="a"', '1'] as const, ...coveringAs(scene, scene.authority)]
    const { headers, ...sent } = made(scene, { components })
    return { ...sent, headers: [...headers, 'X-Long', `a=1, b=tok;c="${'x'.repeat(4_096)}"`] }
  }),
  failed('a part of a query of 4 KiB', 'no-component', (scene) => {
    const components = [...coveringAs(scene, scene.authority), ['"@query-param";name="id"', '7'] as const]
    return made(scene, { components, sent: { target: `/cart?id=7&x=${'%21'.repeat(1_365)}` } })
  }),
  failed('Signature-Agent of 3 KiB', 'no-agent', (scene) =>
    made(scene, { agent: `"${scene.agent.id}/${'x'.repeat(3_072)}"`, components: bareAgent(scene) }),
  ),
  failed('parameters of 10 KiB', 'too-large', (scene) => made(scene, { more: `;x="${'x'.repeat(10_240)}"` })),
  failed('forty components', 'too-large', (scene) =>
    made(scene, {
      components: Array.from({ length: 40 }, (_, i) => [`"x-${i}"`, ''] as const),
    }),
  ),
  failed('Signature-Agent of 5 KiB', 'no-component', (scene) =>
    made(scene, { agent: `sig1="${scene.agent.id}/${'x'.repeat(5_120)}"` }),
  ),
  failed('two Signature-Input headers', 'malformed', (scene) => withLine(made(scene), 'Signature-Input')),
  failed('two Signature headers', 'malformed', (scene) => withLine(made(scene), 'Signature')),
  failed('two Signature-Agent headers', 'no-agent', (scene) => {
    const sent = made(scene, { agent: `"${scene.agent.id}"`, components: bareAgent(scene) })
    return withLine(sent, 'Signature-Agent')
  }),
  failed('a member of Signature-Agent twice', 'no-agent', (scene) =>
    made(scene, {
      agent: `sig1="https://other.example", sig1="${scene.agent.id}"`,
      components: coveringAs(scene, scene.authority),
    }),
  ),
  failed('a label twice', 'malformed', (scene) => {
    const { headers, ...sent } = made(scene)
    return { ...sent, headers: headers.map((text, i) => (i === 3 ? `${text}, ${text}` : text)) }
  }),
  failed('a parameter twice', 'malformed', (scene) => made(scene, { more: `;expires=${scene.nowS + 300}` })),
  failed('two signatures of agents, both with another key', 'wrong', (scene) => {
    const signature = (base: Buffer) => sign(null, base, scene.stranger.privateKey)
    return twice(made(scene, { signature }), made(scene, { signature, label: 'sig2' }))
  }),
  unchecked('keys that are found in an unknown way', 'ignored-agent', (scene) => ofType(scene, ';type=did')),
  unchecked('a type that is a text', 'ignored-agent', (scene) => ofType(scene, ';type="directory"')),
  unchecked('a directory below an origin', 'ignored-agent', (scene) =>
    ofType({ ...scene, agent: { ...scene.agent, id: `${scene.agent.id}/x` } }, ''),
  ),
  unchecked('a key set that is an origin', 'ignored-agent', (scene) => ofType(scene, ';type=jwks_uri')),
  unchecked(
    'a signature of the Trusted Agent Protocol as its specification writes it',
    'payment-tag',
    (scene) => {
      const { headers, ...sent } = made(scene, { tag: 'agent-payer-auth' })
      return { ...sent, headers: headers.map((text) => text.replace(';keyid=', '; keyId=')) }
    },
  ),
  unchecked('the tag of a payment protocol', 'payment-tag', (scene) =>
    made(scene, { tag: 'agent-payer-auth' }),
  ),
  failed('the signature of another label', 'malformed', (scene) => {
    const { headers, ...sent } = made(scene)
    return { ...sent, headers: headers.map((text, i) => (i === 5 ? text.replace('sig1', 'sig2') : text)) }
  }),
  failed('no signature', 'malformed', (scene) => {
    const { headers, ...sent } = made(scene)
    return { ...sent, headers: headers.slice(0, 4) }
  }),
  failed('nothing but a name', 'unsigned', (scene) => {
    const { headers, ...sent } = made(scene)
    return { ...sent, headers: headers.slice(0, 2) }
  }),
  failed('a signature that is not a byte sequence', 'malformed', (scene) => {
    const { headers, ...sent } = made(scene)
    return { ...sent, headers: headers.map((text, i) => (i === 5 ? 'sig1="AAAA"' : text)) }
  }),
  failed('a tab in a nonce', 'malformed', (scene) => made(scene, { nonce: 'a\tb' })),
  failed('a letter beyond ASCII in a nonce', 'malformed', (scene) => made(scene, { nonce: 'a\xe9b' })),
  failed('a letter beyond ASCII in a component', 'no-component', (scene) => {
    const components = [...coveringAs(scene, scene.authority), ['"x-name"', 'caf\xe9'] as const]
    const { headers, ...sent } = made(scene, { components })
    return { ...sent, headers: [...headers, 'X-Name', 'caf\xe9'] }
  }),
]

/** What is covered by one that is right, with another host in it. */
function coveringAs({ agent }: Scene, authority: string): Making['components'] {
  return [
    ['"@authority"', authority],
    ['"signature-agent";key="sig1"', `"${agent.id}"`],
  ]
}

/** As drafts had it. */
export function bareAgent({ agent, authority }: Scene): Making['components'] {
  return [
    ['"@authority"', authority],
    ['"signature-agent"', `"${agent.id}"`],
  ]
}

export function signedByP256(key: KeyObject, base: Buffer): Buffer {
  return sign('sha256', base, { key, dsaEncoding: 'ieee-p1363' })
}

export function signedByRsa(key: KeyObject, base: Buffer): Buffer {
  return sign('sha512', base, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 })
}

function inputOf({ components, created, expires, nonce, keyid, alg, tag, more }: Making): string {
  const list = components.map(([identifier]) => identifier).join(' ')
  const quoted = (name: string, value: string | null) => (value === null ? '' : `;${name}="${value}"`)
  const times = `${created === null ? '' : `;created=${created}`}${expires === null ? '' : `;expires=${expires}`}`
  const texts = `${quoted('nonce', nonce)}${quoted('keyid', keyid)}${quoted('alg', alg)}${quoted('tag', tag)}`
  return `(${list})${times}${texts}${more}`
}

/** The header once more, as it is. */
function withLine({ headers, ...sent }: Sent, name: string): Sent {
  return { ...sent, headers: [...headers, name, headers[headers.indexOf(name) + 1]!] }
}

function hmacOf({ agent }: Scene, base: Buffer): Buffer {
  return createHmac('sha256', Buffer.from(agent.ed25519.jwk.x!, 'base64url')).update(base).digest()
}

function failed(name: string, why: string, make: Forgery['make']): Forgery {
  return { name, finding: 'failed', why, make }
}

function unchecked(name: string, why: string, make: Forgery['make']): Forgery {
  return { name, finding: 'unchecked', why, make }
}

/** With the signatures of both. */
export function twice(one: Sent, other: Sent): Sent {
  return {
    ...one,
    headers: one.headers.map((text, i) => (i % 2 === 1 ? `${text}, ${other.headers[i]}` : text)),
  }
}

function ofType(scene: Scene, type: string): Sent {
  const value = `"${scene.agent.id}"${type}`
  return made(scene, {
    agent: `sig1=${value}`,
    components: [
      ['"@authority"', scene.authority],
      ['"signature-agent";key="sig1"', value],
    ],
  })
}

let nonces = 0

function newNonce(): string {
  return `nonce-${process.pid}-${nonces++}`
}

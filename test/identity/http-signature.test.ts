import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { verifySignature as verifyByLibrary } from 'http-message-sig'
import { parseItem } from 'structured-headers'
import { test } from 'tap'
import { isDigestOf, readContentDigest } from '../../src/identity/signature/content-digest.ts'
import {
  isCovered,
  readSignatures,
  replayIdOf,
  type SignaturePolicy,
  verifyRequest,
  verifySignature,
} from '../../src/identity/verify/http-signature.ts'
import {
  ComponentValues,
  componentOf,
  type SignedRequest,
} from '../../src/identity/signature/signature-base.ts'
import { readSignatureKey, type SignatureKey } from '../../src/identity/signature/signature-key.ts'
import { contentDigest, newSigner, rawHeadersOf, type Signer, signed, type Wanted } from './signer.ts'

interface VectorRequest extends Omit<SignedRequest, 'rawHeaders'> {
  readonly headers: readonly (readonly [string, string])[]
  readonly body?: string
}

const vectors: {
  readonly keys: Readonly<Record<string, unknown>>
  readonly signatures: readonly {
    readonly name: string
    readonly key: string
    readonly now: number
    readonly tag?: string
    readonly request: VectorRequest
    readonly base: string | null
    readonly fault?: string
  }[]
  readonly components: readonly {
    readonly request: VectorRequest
    readonly identifier: string
    readonly value: string | null
  }[]
} = JSON.parse(readFileSync('test/vectors/http-signatures.json', 'utf8'))

const ANY: SignaturePolicy = {
  tag: null,
  covers: [],
  needsExpiry: false,
  fieldLengthMax: 8_192,
  ageMaxS: 300,
  skewS: 0,
}
const NOW_S = 1_700_000_000
const NOW_MS = NOW_S * 1000
const POLICY: SignaturePolicy = {
  tag: 'gnap',
  covers: [['@method'], ['@target-uri', '@authority']],
  needsExpiry: false,
  fieldLengthMax: 8_192,
  ageMaxS: 300,
  skewS: 30,
}

function requestOf({ headers, ...request }: VectorRequest): SignedRequest {
  return { ...request, rawHeaders: headers.flat() }
}

function keyOf(name: string): SignatureKey {
  const read = readSignatureKey(vectors.keys[name], true)
  assert.equal(read.kind, 'key')
  return (read as { key: SignatureKey }).key
}

for (const { name, key, now, tag, request, base, fault } of vectors.signatures)
  test(`vector: ${name}`, async () => {
    const read = readSignatures(requestOf(request), { ...ANY, tag: tag ?? null }, now * 1000)
    assert.ok(read.kind === 'signatures', JSON.stringify(read))
    const [signature] = read.signatures
    if (base !== null) assert.equal(signature!.base, base)
    assert.equal(verifySignature(signature!, keyOf(key)), fault ?? null)
    for (const other of Object.keys(vectors.keys).filter((each) => each !== key))
      assert.equal(verifySignature(signature!, keyOf(other)) === null, false, `not by ${other}`)
  })

test('vectors: what a component stands for', async () => {
  for (const { request, identifier, value } of vectors.components) {
    const component = componentOf(parseItem(identifier))
    const found = component === null ? null : new ComponentValues(requestOf(request)).of(component)
    assert.equal(found, value, identifier)
  }
})

test('vectors: the digest of the body', async () => {
  const { request } = vectors.signatures[0]!
  const digest = readContentDigest(requestOf(request).rawHeaders)!
  assert.equal(isDigestOf(digest, Buffer.from(request.body!)), true)
  assert.equal(isDigestOf(digest, Buffer.from(`${request.body!} `)), false)
})

/** A request, signed as `wanted` says. */
async function madeBy(
  signer: Signer,
  wanted: Partial<Wanted> = {},
  given: Partial<Sent> = {},
): Promise<SignedRequest> {
  const { method, base, target, headers } = { ...SENT, ...given }
  const fields = ['@method', '@target-uri']
  const all = await signed(
    signer,
    { method, url: base + target, headers },
    { fields, createdS: NOW_S, ...wanted },
  )
  return { method, base, target, rawHeaders: rawHeadersOf(all) }
}

interface Sent {
  readonly method: string
  readonly base: string
  readonly target: string
  readonly headers: Readonly<Record<string, string | string[]>>
}

const SENT: Sent = {
  method: 'POST',
  base: 'https://gate.example:8443',
  target: '/v1/detect?a=1&b=%20x',
  headers: { 'content-type': 'application/json', authorization: 'GNAP abc', 'x-two': ['a', 'b'] },
}

function outcome(request: SignedRequest, { key }: Signer, policy: Partial<SignaturePolicy> = {}): string {
  const verification = verifyRequest(request, { ...POLICY, ...policy }, key, NOW_MS)
  return verification.kind === 'verified' ? 'verified' : verification.fault
}

const ALGORITHMS = ['ed25519', 'ecdsa-p256-sha256', 'ecdsa-p384-sha384', 'rsa-pss-sha512'] as const
const SIGNERS = new Map(ALGORITHMS.map((algorithm) => [algorithm, newSigner(algorithm)]))
const SIGNER = SIGNERS.get('ecdsa-p256-sha256')!

const COMPONENTS = [
  ...['@method', '@target-uri', '@authority', '@scheme', '@path', '@query', '@query-param;name="a"'],
  ...['content-type', 'authorization', 'x-two', 'x-two;bs', 'dict;key="k"', 'content-digest;sf'],
]

for (const [algorithm, signer] of SIGNERS)
  test(`${algorithm}: what another program has signed is verified, whatever it covers`, async () => {
    const headers = { ...SENT.headers, dict: 'j=1, k=("x"  2);p', 'content-digest': contentDigest('{}') }
    await fc.assert(
      fc.asyncProperty(
        fc.subarray(COMPONENTS),
        fc.webPath(),
        fc.boolean(),
        async (fields, path, hasNonce) => {
          const wanted = {
            fields: [
              '@method',
              '@target-uri',
              ...fields.filter((name) => !['@method', '@target-uri'].includes(name)),
            ],
            ...(hasNonce && { nonce: 'n' }),
          }
          const target = `${path.startsWith('/') ? path : `/${path}`}?a=x%2Fy`
          const request = await madeBy(signer, wanted, {
            headers,
            target: new URL(`http://x${target}`).href.slice(8),
          })
          assert.equal(outcome(request, signer), 'verified')
          const other = newSignerOf(algorithm)
          assert.equal(outcome(request, other), 'other-key')
          assert.equal(
            outcome(request, { ...other, key: { ...other.key, thumbprint: signer.key.thumbprint } }),
            'wrong',
          )
        },
      ),
      { numRuns: algorithm.startsWith('rsa') ? 20 : 60 },
    )
  })

const OTHERS = new Map(ALGORITHMS.map((algorithm) => [algorithm, newSigner(algorithm)]))
function newSignerOf(algorithm: (typeof ALGORITHMS)[number]): Signer {
  return OTHERS.get(algorithm)!
}

test('every byte that is changed is noticed', async () => {
  const fields = ['@method', '@target-uri', 'authorization', 'content-type', 'x-two']
  for (const algorithm of ['ed25519', 'ecdsa-p256-sha256'] as const) {
    const signer = SIGNERS.get(algorithm)!
    const request = await madeBy(signer, { fields, nonce: 'n1' })
    assert.equal(outcome(request, signer), 'verified')
    let changes = 0
    for (const changed of changesOf(request)) {
      changes++
      assert.notEqual(outcome(changed, signer), 'verified', JSON.stringify(changed))
    }
    assert.ok(changes > 700, `${changes}`)
  }
})

/** In each byte of the request a bit, but where it means the same or is not covered. */
function* changesOf(request: SignedRequest): Generator<SignedRequest> {
  for (const member of ['method', 'base', 'target'] as const)
    for (const text of bitsOf(request[member])) yield { ...request, [member]: text }
  for (const [index, given] of request.rawHeaders.entries())
    for (const text of bitsOf(given)) {
      // Names in other case, labels that agree, and the unused bits at the end of base64.
      const isSame = index % 2 === 0 && text.toLowerCase() === given.toLowerCase()
      const isBlank = index % 2 === 1 && text.trim() === given
      const isEqual = bytesIn(text) !== null && bytesIn(text) === bytesIn(given)
      if (!isSame && !isBlank && !isEqual)
        yield { ...request, rawHeaders: request.rawHeaders.with(index, text) }
    }
}

function bytesIn(text: string): string | null {
  const [, base64] = /^sig1=:(.*):$/.exec(text) ?? []
  return base64 === undefined || !/^[\w+/=]*$/.test(base64)
    ? null
    : Buffer.from(base64, 'base64').toString('hex')
}

function* bitsOf(text: string): Generator<string> {
  for (let i = 0; i < text.length; i++)
    for (const bit of [1, 2, 32])
      yield text.slice(0, i) + String.fromCharCode(text.charCodeAt(i) ^ bit) + text.slice(i + 1)
}

test('nothing that a peer sends is thrown back at us', async () => {
  const pieces = fc.constantFrom(
    ...[
      'sig1',
      '=',
      '(',
      ')',
      '"@method"',
      '"@target-uri"',
      ';',
      ',',
      ' ',
      'created',
      '1700000000',
      ':',
      'AAAA',
    ],
    ...[
      '"',
      '\\',
      'tag',
      '"gnap"',
      '@',
      '%"',
      '?1',
      '-',
      '1.5',
      'keyid',
      'key',
      'sf',
      'bs',
      'req',
      '\xe9',
      '\t',
    ],
  )
  const text = fc.array(pieces, { maxLength: 30 }).map((each) => each.join(''))
  fc.assert(
    fc.property(text, text, text, fc.string({ maxLength: 20 }), (input, signature, digest, target) => {
      const rawHeaders = ['Signature-Input', input, 'Signature', signature, 'Content-Digest', digest]
      readContentDigest(rawHeaders)
      const request = { method: 'GET', base: 'https://gate.example', target, rawHeaders }
      assert.ok(
        ['signatures', 'refused'].includes(readSignatures(request, { ...ANY, skewS: 1e6 }, NOW_MS).kind),
      )
    }),
    { numRuns: 3000 },
  )
})

const REFUSED: readonly (readonly [
  title: string,
  fault: string,
  wanted: Partial<Wanted>,
  policy?: Partial<SignaturePolicy>,
])[] = [
  ['another tag', 'other-tag', { tag: 'web-bot-auth' }],
  ['no tag', 'other-tag', { tag: null }],
  ['created too long ago', 'too-old', { createdS: NOW_S - 331 }],
  ['created in the future', 'created-in-future', { createdS: NOW_S + 31 }],
  ['expired', 'expired', { createdS: NOW_S - 100, expiresS: NOW_S - 31 }],
  ['expired before it was created', 'expired', { expiresS: NOW_S - 1 }],
  ['no end where one is needed', 'no-expires', {}, { needsExpiry: true }],
  ['a life too long', 'lives-too-long', { expiresS: NOW_S + 301 }, { needsExpiry: true }],
  ['the target not covered', 'not-covered', { fields: ['@method', 'content-type'] }],
  ['a part of a query for the target', 'not-covered', { fields: ['@method', '@query-param;name="a"'] }],
  ['nothing covered', 'not-covered', { fields: [] }],
  ['another algorithm named', 'other-algorithm', { algorithm: 'ed25519' }],
  ['a shared secret named', 'other-algorithm', { algorithm: 'hmac-sha256' }],
  ['another key named', 'other-key', { keyId: 'other' }],
  ['no key named', 'other-key', { keyId: null }],
  ['a nonce as long as a book', 'malformed', { nonce: 'n'.repeat(513) }],
  ['more than a few components', 'too-large', { fields: Array.from({ length: 33 }, (_, i) => `x-${i}`) }],
]

for (const [title, fault, wanted, policy] of REFUSED)
  test(`refused: ${title}`, async () => {
    const headers = {
      ...SENT.headers,
      ...Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`x-${i}`, '1'])),
    }
    assert.equal(outcome(await madeBy(SIGNER, wanted, { headers }), SIGNER, policy), fault)
  })

test('accepted: at the edges of time, with the algorithm named, with unknown parameters', async () => {
  for (const wanted of [
    { createdS: NOW_S - 329 },
    { createdS: NOW_S + 30 },
    { createdS: NOW_S - 100, expiresS: NOW_S - 29 },
    { algorithm: 'ecdsa-p256-sha256' },
  ])
    assert.equal(outcome(await madeBy(SIGNER, wanted), SIGNER), 'verified', JSON.stringify(wanted))
})

test('a replay has to be remembered for as long as the signature is good', async () => {
  for (const wanted of [{}, { createdS: NOW_S - 200 }, { expiresS: NOW_S + 10 }]) {
    const request = await madeBy(SIGNER, wanted)
    const read = readSignatures(request, POLICY, NOW_MS)
    assert.ok(read.kind === 'signatures')
    const { goodUntilMs } = read.signatures[0]!
    assert.equal(verifyRequest(request, POLICY, SIGNER.key, goodUntilMs - 1).kind, 'verified')
    assert.equal(verifyRequest(request, POLICY, SIGNER.key, goodUntilMs).kind, 'refused')
  }
})

/** What no signer makes, with a signature of the key over exactly what it says. */
async function forged(input: string, more: readonly string[] = []): Promise<string> {
  const request = await madeBy(SIGNER)
  const index = request.rawHeaders.indexOf('Signature-Input')
  return outcome({ ...request, rawHeaders: [...request.rawHeaders.with(index + 1, input), ...more] }, SIGNER)
}

test('refused: what could be read as two things, or is not for requests', async () => {
  const end = `;created=${NOW_S};keyid="${SIGNER.key.thumbprint}";tag="gnap"`
  const whole = `sig1=("@method" "@target-uri")${end}`
  assert.equal(await forged(whole), 'verified')
  const malformed = [
    ...[`${whole}, ${whole}`, `${whole};tag="gnap"`, `sig1=("@method";x;x "@target-uri")${end}`],
    ...[`sig1=("@method" "@method" "@target-uri")${end}`, `sig2=("@method" "@target-uri")${end}`],
    ...[`sig1="@method"${end}`, 'sig1', '', `${whole},`, `${whole};expires="1"`, `${whole};nonce=:AA==:`],
    ...[`sig1=("@method" "x-two";key="a" "x-two";key="a";sf "@target-uri")${end}`],
  ]
  const two = ['X-Two', 'a=1, b=2']
  for (const input of malformed) assert.match(await forged(input, two), /malformed|no-component/, input)
  for (const component of [
    ...[
      '"@status"',
      '"@signature-params"',
      '"@unknown"',
      '"@method";req',
      '"content-type";tr',
      '"X-Two"',
      'method',
    ],
    ...[
      '"@method";sf',
      '"x-two";bs;sf',
      '"x-two";bs;key="a"',
      '"x-two";sf',
      '"x-two";unknown',
      '"x-two";bs=?0',
    ],
    ...[
      '"@query-param"',
      '"@query-param";name="unknown"',
      '"absent"',
      '1',
      '"content type"',
      '"@path";key="a"',
    ],
  ])
    assert.equal(await forged(`sig1=("@method" "@target-uri" ${component})${end}`), 'no-component', component)
  assert.equal(await forged(whole, ['Signature-Input', `other=()${end}`]), 'malformed')
  assert.equal(await forged(whole, ['Signature', 'other=:AAAA:']), 'malformed')
  assert.equal(await forged(`${whole};x="${'x'.repeat(8192)}"`), 'too-large')
  const many = Array.from({ length: 9 }, (_, i) => `s${i}=()`).join(', ')
  assert.equal(await forged(many), 'too-large')
})

test('refused: a parameter of the query that is there twice', async () => {
  const fields = ['@method', '@authority', '@query-param;name="a"']
  const request = await madeBy(SIGNER, { fields })
  assert.equal(outcome(request, SIGNER), 'verified')
  assert.equal(outcome({ ...request, target: `${request.target}&a=1` }, SIGNER), 'no-component')
})

test('the secret of an HMAC is not what everybody knows', async () => {
  const request = await madeBy(SIGNER)
  const read = readSignatures(request, POLICY, NOW_MS)
  assert.ok(read.kind === 'signatures')
  const signature = read.signatures[0]!
  for (const secret of [SIGNER.key.key.export({ type: 'spki', format: 'der' }), JSON.stringify(SIGNER.jwk)]) {
    const bytes: Buffer = createHmac('sha256', secret).update(signature.base).digest()
    for (const length of [32, 64]) {
      const padded = Buffer.concat([bytes, bytes]).subarray(0, length)
      assert.equal(verifySignature({ ...signature, bytes: padded }, SIGNER.key), 'wrong')
    }
  }
})

test('of several signatures one that is good is enough, and the others do no harm', async () => {
  const other = newSignerOf('ed25519')
  const foreign = await signed(
    other,
    { method: SENT.method, url: SENT.base + SENT.target, headers: SENT.headers },
    { fields: ['@method', '@target-uri'], createdS: NOW_S, label: 'proxy' },
  )
  const both = await madeBy(SIGNER, {}, { headers: foreign })
  assert.equal(outcome(both, SIGNER), 'verified')
  assert.equal(outcome(both, other), 'verified')
  assert.equal(outcome(both, newSigner('ed25519')), 'other-key')
})

test('a signature that another one covers is verified with it', async () => {
  const first = newSignerOf('ed25519')
  const inner = await signed(
    first,
    {
      method: SENT.method,
      url: SENT.base + SENT.target,
      headers: { 'signature-agent': 'a="https://a.example"' },
    },
    { fields: ['@method', '@target-uri', 'signature-agent;key="a"'], createdS: NOW_S, label: 'a' },
  )
  const fields = ['@method', '@target-uri', 'signature;key="a"', 'signature-input;key="a"']
  const request = await madeBy(SIGNER, { fields }, { headers: inner })
  assert.equal(outcome(request, SIGNER), 'verified')
  const verification = verifyRequest(request, POLICY, first.key, NOW_MS)
  assert.ok(verification.kind === 'verified')
  assert.equal(isCovered(verification.signature, 'signature-agent', 'a'), true)
  assert.equal(isCovered(verification.signature, 'signature-agent', 'b'), false)
  assert.equal(isCovered(verification.signature, 'signature-agent'), false)
})

test('a replay is one, however it is spelt', async () => {
  const policy = { ...POLICY }
  const idOf = (request: SignedRequest, { key }: Signer) => {
    const verification = verifyRequest(request, policy, key, NOW_MS)
    assert.ok(verification.kind === 'verified')
    return replayIdOf(verification.signature, key)
  }
  const request = await madeBy(SIGNER)
  const id = idOf(request, SIGNER)
  // (r, -s) is a signature, too.
  const index = request.rawHeaders.indexOf('Signature') + 1
  const bytes = Buffer.from(request.rawHeaders[index]!.slice('sig1=:'.length, -1), 'base64')
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  const flipped = order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)
  bytes.write(flipped.toString(16).padStart(64, '0'), 32, 'hex')
  const twin = {
    ...request,
    rawHeaders: request.rawHeaders.with(index, `sig1=:${bytes.toString('base64')}:`),
  }
  assert.equal(idOf(twin, SIGNER), id)
  // Signed anew in the same second it is another.
  assert.notEqual(idOf(await madeBy(SIGNER), SIGNER), id)
  // A nonce is used once, whatever it is signed with; another key's nonces are its own.
  const one = await madeBy(SIGNER, { nonce: 'n' })
  assert.equal(idOf(one, SIGNER), idOf(await madeBy(SIGNER, { nonce: 'n', createdS: NOW_S - 9 }), SIGNER))
  const other = newSignerOf('ecdsa-p256-sha256')
  assert.notEqual(idOf(one, SIGNER), idOf(await madeBy(other, { nonce: 'n' }), other))
})

test('a second library agrees on what was signed', async () => {
  const signer = newSignerOf('ed25519')
  const request = await madeBy(signer, {
    fields: ['@method', '@target-uri', '@authority', '@path', '@query', 'x-two'],
  })
  const signedBases: string[] = []
  const verifier = {
    algorithm: 'ed25519',
    verify: (data: Uint8Array) => signedBases.push(Buffer.from(data).toString('latin1')) > 0,
  }
  const fields = request.rawHeaders.flatMap((name, i) =>
    i % 2 === 0 ? [{ name, value: request.rawHeaders[i + 1]! }] : [],
  )
  const { method, base, target } = request
  await verifyByLibrary(
    { kind: 'request', method, targetUri: base + target, fields },
    {
      policy: { algorithms: ['ed25519'], requiredComponents: [], requiredParameters: [], now: NOW_S },
      resolveVerifier: () => verifier,
    },
  )
  const read = readSignatures(request, POLICY, NOW_MS)
  assert.deepEqual(read.kind === 'signatures' && read.signatures.map(({ base }) => base), signedBases)
})

test('what a key is, and is not', async () => {
  const { jwk } = SIGNER
  const rsa = SIGNERS.get('rsa-pss-sha512')!.jwk
  const ed = SIGNERS.get('ed25519')!.jwk
  const small = { ...rsa, n: Buffer.from(rsa.n!, 'base64url').subarray(0, 128).toString('base64url') }
  const refused: readonly (readonly [member: string, jwk: unknown])[] = [
    ...['', null, [], 'x'].map((each) => ['', each] as const),
    ['kty', { kty: 'oct', x: 'AAAA' }],
    ['k', { kty: 'oct', k: 'AAAA' }],
    ['kty', { kty: 'EC', crv: 'P-521', x: 'A', y: 'A' }],
    ['kty', { ...ed, crv: 'X25519' }],
    ['kty', {}],
    ['d', { ...jwk, d: 'AAAA' }],
    ['use', { ...jwk, use: 'enc' }],
    ['key_ops', { ...jwk, key_ops: ['encrypt'] }],
    ['kid', { ...jwk, kid: 7 }],
    ['kid', { ...jwk, kid: 'x'.repeat(257) }],
    ['kid', { ...jwk, kid: 'é' }],
    ['alg', { ...jwk, alg: 'HS256' }],
    ['alg', { ...jwk, alg: 'ES384' }],
    ['alg', { ...jwk, alg: 'none' }],
    ['alg', { ...rsa, alg: 'RS256' }],
    ['alg', { ...ed, alg: 'ES256' }],
    ['x', { ...jwk, x: `${jwk.x!.slice(0, -1)}` }],
    ['x', { ...jwk, x: `${jwk.x}=` }],
    ['x', { ...jwk, x: jwk.y, y: jwk.x }],
    ['x', { ...jwk, x: ['x'] }],
    ['n', small],
    ['n', { ...rsa, n: `AA${rsa.n}` }],
    ['n', { ...rsa, n: 'x'.repeat(100_000) }],
    ['e', { ...rsa, e: 'Aw' }],
  ]
  for (const [member, each] of refused) {
    const read = readSignatureKey(each)
    assert.equal(read.kind, 'refused', JSON.stringify(each))
    assert.equal((read as { member: string }).member, member)
  }
  const named = readSignatureKey({
    ...jwk,
    kid: 'mine',
    alg: 'ES256',
    use: 'sig',
    key_ops: ['verify'],
    x5c: ['…'],
  })
  assert.ok(named.kind === 'key')
  assert.deepEqual([named.key.kid, named.key.thumbprint], ['mine', SIGNER.key.thumbprint])
})

test('a key has one thumbprint, however it is written', async () => {
  const { x, ...rest } = SIGNERS.get('ed25519')!.jwk
  const last = x!.at(-1)!
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const other = alphabet[alphabet.indexOf(last) ^ 1]!
  assert.equal(readSignatureKey({ ...rest, x: x!.slice(0, -1) + other }).kind, 'refused')
})

test('published keys are refused unless it is a test', async () => {
  for (const [name, jwk] of Object.entries(vectors.keys)) {
    const read = readSignatureKey(jwk)
    assert.equal(read.kind, 'refused', name)
    assert.match((read as { detail: string }).detail, /anyone can sign with it/)
    assert.equal(readSignatureKey(jwk, true).kind, 'key', name)
  }
})

test('what a digest is, and is not', async () => {
  const body = Buffer.from('{"a":1}')
  const of = (value: string) => readContentDigest(['Content-Digest', value])
  for (const right of [
    contentDigest(body),
    contentDigest(body, 'sha-512'),
    `${contentDigest(body)}, ${contentDigest(body, 'sha-512')}, md5=:AAAA:`,
  ])
    assert.equal(isDigestOf(of(right)!, body), true, right)
  assert.equal(isDigestOf(of(`${contentDigest(body)}, ${contentDigest('x', 'sha-512')}`)!, body), false)
  assert.equal(isDigestOf(of(contentDigest('{"a":2}'))!, body), false)
  for (const wrong of [
    '',
    'md5=:AAAA:',
    'sha-256',
    'sha-256="x"',
    'sha-256=:AAAA:',
    'sha-256=()',
    '(',
    'x'.repeat(2000),
  ])
    assert.equal(of(wrong), null, wrong)
  assert.equal(readContentDigest([]), null)
})

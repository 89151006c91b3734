import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { contentDigest, newSigner } from '../identity/signer.ts'
import { openAt, type Owner } from '../store/databases.ts'
import { type Changes, type Continue, GnapClient, type Token } from './gnap-client.ts'
import { type Answered, TestManagement } from './management.ts'

interface Scene {
  readonly manage: TestManagement
  /** Trusted with read and detect. */
  readonly client: GnapClient
  /** Trusted with read. */
  readonly other: GnapClient
  /** Trusted by nobody. */
  readonly stranger: GnapClient
  readonly token: Token
}

async function scene(t: Owner): Promise<Scene> {
  const manage = await TestManagement.start(t, { knows: true, authFailuresPerMinute: 1_000 })
  const store = await openAt(t, manage.storeUrl)
  const [client, other, stranger] = [newClient(manage), newClient(manage), newClient(manage)]
  for (const [index, [each, scopes]] of [
    [client, ['read', 'detect']] as const,
    [other, ['read']] as const,
  ].entries())
    await store.trust.add({
      ...{
        id: `trs_${index}`,
        kind: 'key',
        subject: each.thumbprint,
        name: null,
        apps: '*',
        scopes,
        plan: 'standard',
      },
      ...{ document: null, createdAtMs: 0 },
    })
  const { body } = await client.grant(['read', 'detect'])
  return { manage, client, other, stranger, token: body.access_token }
}

function newClient({ url }: TestManagement): GnapClient {
  return new GnapClient(url, newSigner())
}

const NOW_S = () => Math.floor(Date.now() / 1000)
const DETECT = { user_agent: 'curl/8.5.0' }
const APPROVAL = { interact: { start: ['redirect'] } }
const { keys: published } = JSON.parse(readFileSync('test/vectors/http-signatures.json', 'utf8')) as {
  readonly keys: Readonly<Record<string, unknown>>
}

/** At the grant endpoint: what is tried, and which error it is answered with. */
const GRANTS: readonly (readonly [
  title: string,
  status: number,
  code: string,
  attack: (scene: Scene) => Promise<Answered>,
])[] = [
  ...changed('the body altered', { body: JSON.stringify({ access_token: {}, client: {} }) }),
  ...changed('a blank behind the body', { body: `${JSON.stringify(bodyOf('x'))} ` }),
  ...changed('the digest altered', { headers: { 'content-digest': contentDigest('x') } }),
  ...changed('no digest', { fields: ['@method', '@target-uri'], headers: { 'content-digest': '' } }),
  ...changed('a digest of another kind', { headers: { 'content-digest': 'md5=:AAAA:' } }),
  ...changed('the digest not covered', { fields: ['@method', '@target-uri'] }),
  ...changed('the method not covered', { fields: ['@target-uri', 'content-digest'] }),
  ...changed('the target not covered', { fields: ['@method', 'content-digest'] }),
  ...changed('the path instead of the target', { fields: ['@method', '@path', 'content-digest'] }),
  ...changed('signed for another address', { url: 'https://elsewhere.example/gnap/grant' }),
  ...changed('signed for another path', { url: 'http://127.0.0.1/v1/detect' }),
  ...changed('another query', { path: '/gnap/grant?x' }),
  ...changed('another tag', { tag: 'web-bot-auth' }),
  ...changed('no tag', { tag: null }),
  ...changed('created an hour ago', { createdS: NOW_S() - 3600 }),
  ...changed('created ten minutes ago', { createdS: NOW_S() - 600 }),
  ...changed('created in an hour', { createdS: NOW_S() + 3600 }),
  ...changed('expired', { createdS: NOW_S() - 90, expiresS: NOW_S() - 70 }),
  ...changed('another algorithm named', { algorithm: 'hmac-sha256' }),
  ...changed('no key named', { keyId: null }),
  ...changed('another key named', { keyId: 'somebody' }),
  ...changed('no signature', { headers: { signature: '', 'signature-input': '' } }),
  ...changed('half a signature', { headers: { 'signature-input': '' } }),
  ...changed('a signature of nothing', { headers: { signature: 'sig1=::' } }),
  ...changed('an Authorization that is not covered', { headers: { authorization: 'Bearer x' } }),
  [
    'key substitution: the key of somebody who is trusted, signed by one who is not',
    401,
    'invalid_client',
    ({ client, stranger }) => stranger.grant(['read'], { client: { key: client.key } }),
  ],
  [
    'key substitution: and its name',
    401,
    'invalid_client',
    ({ client, stranger }) =>
      stranger.grant(['read'], { client: { key: client.key } }, { keyId: client.thumbprint }),
  ],
  [
    'key substitution: the kid of somebody who is trusted',
    403,
    'request_denied',
    ({ client, stranger }) =>
      stranger.grant(['read'], {
        client: { key: { ...stranger.key, jwk: { ...stranger.signer.jwk, kid: client.thumbprint } } },
      }),
  ],
  [
    'a private key',
    401,
    'invalid_client',
    ({ client }) =>
      client.grant(['read'], {
        client: { key: { ...client.key, jwk: client.signer.privateKey.export({ format: 'jwk' }) } },
      }),
  ],
  [
    'a shared secret for a key',
    401,
    'invalid_client',
    ({ client }) =>
      client.grant(['read'], { client: { key: { ...client.key, jwk: { kty: 'oct', k: 'AAAA' } } } }),
  ],
  [
    'a key that is for another algorithm',
    401,
    'invalid_client',
    ({ client }) =>
      client.grant(['read'], {
        client: { key: { ...client.key, jwk: { ...client.signer.jwk, alg: 'HS256' } } },
      }),
  ],
  [
    'another proof',
    401,
    'invalid_client',
    ({ client }) => client.grant(['read'], { client: { key: { ...client.key, proof: 'mtls' } } }),
  ],
  [
    'another algorithm in the proof',
    401,
    'invalid_client',
    ({ client }) =>
      client.grant(['read'], {
        client: { key: { ...client.key, proof: { method: 'httpsig', alg: 'hmac-sha256' } } },
      }),
  ],
  [
    'a key in two formats',
    401,
    'invalid_client',
    ({ client }) => client.grant(['read'], { client: { key: { ...client.key, cert: 'MII' } } }),
  ],
  [
    'a key by reference',
    401,
    'invalid_client',
    ({ client }) => client.grant(['read'], { client: { key: 'mine' } }),
  ],
  ...Object.entries(published).map(
    ([name, jwk]) =>
      [
        `a published key for tests, ${name}`,
        401,
        'invalid_client',
        ({ stranger }: Scene) => stranger.grant(['read'], { client: { key: { proof: 'httpsig', jwk } } }),
      ] as const,
  ),
  [
    'more than the key may have',
    403,
    'request_denied',
    ({ other }) => other.grant(['admin', 'write', 'mcp']),
  ],
  [
    'a flag twice',
    400,
    'invalid_flag',
    ({ client }) =>
      client.grant([], { access_token: { ...bodyOf('x').access_token, flags: ['bearer', 'bearer'] } }),
  ],
  [
    'a flag that nobody knows',
    400,
    'invalid_flag',
    ({ client }) => client.grant([], { access_token: { ...bodyOf('x').access_token, flags: ['root'] } }),
  ],
  [
    'a right made smaller in a way that is not known',
    400,
    'invalid_request',
    ({ client }) =>
      client.grant([], {
        access_token: { access: [{ type: 'service-api', actions: ['read'], datatypes: ['x'] }] },
      }),
  ],
  ['no tokens', 400, 'invalid_request', ({ client }) => client.grant([], { access_token: [] })],
  ['no rights', 400, 'invalid_request', ({ client }) => client.grant([], { access_token: { access: [] } })],
  ['no client', 400, 'invalid_request', ({ client }) => client.grant(['read'], { client: 7 })],
  ['a NUL', 400, 'invalid_request', ({ client }) => client.grant([], { access_token: { access: ['a\0b'] } })],
  [
    'a prototype',
    400,
    'invalid_request',
    ({ client }) => client.send('POST', '/gnap/grant', null, '{"__proto__": {"a": 1}}'),
  ],
  [
    'deep JSON',
    400,
    'invalid_request',
    ({ client }) => client.send('POST', '/gnap/grant', null, '['.repeat(30_000) + ']'.repeat(30_000)),
  ],
  ['no JSON', 400, 'invalid_request', ({ client }) => client.send('POST', '/gnap/grant', null, '{')],
  ['no object', 400, 'invalid_request', ({ client }) => client.send('POST', '/gnap/grant', null, '[]')],
  ['no body', 400, 'invalid_request', ({ client }) => client.send('POST', '/gnap/grant', null)],
  [
    'a huge body',
    413,
    'invalid_request',
    ({ client }) => client.send('POST', '/gnap/grant', null, `"${'x'.repeat(70_000)}"`),
  ],
  [
    'ten thousand rights',
    400,
    'invalid_request',
    ({ client }) => client.grant([], { access_token: { access: Array(10_000).fill('x') } }),
  ],
  [
    'another type of body',
    415,
    'invalid_request',
    ({ client }) =>
      client.grant(
        ['read'],
        {},
        { fields: ['@method', '@target-uri', 'content-digest'], headers: { 'content-type': 'text/plain' } },
      ),
  ],
  ['another method', 405, 'invalid_request', ({ client }) => client.send('PUT', '/gnap/grant', null, {})],
  ...(
    [
      ['http elsewhere', 'http://client.example/back'],
      ['http to a name that looks like this machine', 'http://localhost.client.example/'],
      ['http to this machine, as a user', 'http://127.0.0.1@client.example/'],
      ['a user', 'https://me@client.example/'],
      ['an empty user', 'https://@client.example/'],
      ['a password', 'https://me:secret@client.example/'],
      ['a fragment', 'https://client.example/#x'],
      ['an empty fragment', 'https://client.example/#'],
      ['a script', 'javascript:alert(1)//https://x'],
      ['data', 'data:text/html,x'],
      ['a scheme of its own', 'client:back'],
      ['no scheme', '//client.example/'],
      ['a path', '/back'],
      ['a backslash', 'https://client.example\\@evil.example/'],
      ['a blank in it', 'https://client.example/a b'],
      ['a tab in it', 'https://client.\texample/'],
      ['a reference of its own', 'https://client.example/?interact_ref=x'],
      ['a hash of its own', 'https://client.example/?a=1&hash=x'],
      ['no text', 7],
    ] as const
  ).map(
    ([title, uri]) =>
      [
        `the browser sent back to: ${title}`,
        400,
        'invalid_request',
        ({ stranger }: Scene) =>
          stranger.grant(['read'], {
            interact: { start: ['redirect'], finish: { method: 'redirect', uri, nonce: 'n' } },
          }),
      ] as const,
  ),
  [
    'a hash that nobody knows',
    400,
    'invalid_request',
    ({ stranger }) => stranger.grant(['read'], finishing({ hash_method: 'md5' })),
  ],
  [
    'a nonce of two lines',
    400,
    'invalid_request',
    ({ stranger }) => stranger.grant(['read'], finishing({ nonce: 'a\nb' })),
  ],
  [
    'a push',
    400,
    'invalid_interaction',
    ({ stranger }) => stranger.grant(['read'], finishing({ method: 'push' })),
  ],
  [
    'a start that there is not',
    400,
    'invalid_interaction',
    ({ stranger }) => stranger.grant(['read'], { interact: { start: ['user_code'] } }),
  ],
  [
    'nothing that there is to approve',
    403,
    'request_denied',
    ({ stranger }) => stranger.grant(['fly'], APPROVAL),
  ],
]

function bodyOf(x: string) {
  return { access_token: { access: [{ type: 'service-api', actions: ['read'] }] }, x }
}

function finishing(changes: Readonly<Record<string, unknown>>) {
  const finish = { method: 'redirect', uri: 'https://client.example/', nonce: 'n', ...changes }
  return { interact: { start: ['redirect'], finish } }
}

function changed(title: string, changes: Changes) {
  return [[title, 401, 'invalid_client', ({ client }: Scene) => client.grant(['read'], {}, changes)]] as const
}

test('at the grant endpoint', async (t) => {
  const given = await scene(t)
  for (const [title, status, code, attack] of GRANTS)
    t.test(title, async () => {
      const { status: got, body, headers } = await attack(given)
      assert.deepEqual([got, body?.error?.code], [status, code], JSON.stringify(body))
      assert.match(headers.get('content-type')!, /^application\/json/)
      assert.equal(typeof body.error.description, 'string')
    })
  t.test('and nothing was a fault of ours', async () => assert.deepEqual(given.manage.failures, []))
})

/** With a token of `client` at the API. */
const USES: readonly (readonly [title: string, attack: (scene: Scene) => Promise<Answered>])[] = [
  [
    'as a bearer token',
    ({ manage, token }) =>
      manage.ask('GET', '/v1/agents', undefined, { authorization: `Bearer ${token.value}` }),
  ],
  [
    'without a signature',
    ({ manage, token }) =>
      manage.ask('GET', '/v1/agents', undefined, { authorization: `GNAP ${token.value}` }),
  ],
  ['by another key that is trusted', ({ other, token }) => other.ask('GET', '/v1/agents', token)],
  [
    'by another key, under the name of the right one',
    ({ client, other, token }) =>
      other.ask('GET', '/v1/agents', token, undefined, { keyId: client.thumbprint }),
  ],
  ...uses('the token not covered', { fields: ['@method', '@target-uri'] }),
  ...uses('the method not covered', { fields: ['@target-uri', 'authorization'] }),
  ...uses('the target not covered', { fields: ['@method', 'authorization'] }),
  ...uses('another method', { method: 'DELETE' }),
  ...uses('another path', { path: '/v1/signatures' }),
  ...uses('another query', { path: '/v1/agents?limit=1' }),
  ...uses('another host', { url: 'https://elsewhere.example/v1/agents' }),
  ...uses('another tag', { tag: 'web-bot-auth' }),
  ...uses('too old', { createdS: NOW_S() - 600 }),
  ...uses('from the future', { createdS: NOW_S() + 600 }),
  ...uses('another algorithm', { algorithm: 'ed25519' }),
  [
    'the body altered',
    ({ client, token }) => client.ask('POST', '/v1/detect', token, DETECT, { body: '{"user_agent":"x"}' }),
  ],
  [
    'the body and its digest altered',
    ({ client, token }) => {
      const body = '{"user_agent":"x"}'
      return client.ask('POST', '/v1/detect', token, DETECT, {
        body,
        headers: { 'content-digest': contentDigest(body) },
      })
    },
  ],
  [
    'the body not covered',
    ({ client, token }) =>
      client.ask('POST', '/v1/detect', token, DETECT, {
        fields: ['@method', '@target-uri', 'authorization'],
      }),
  ],
  [
    'a body added',
    ({ client, token }) =>
      client.ask('POST', '/v1/detect', token, undefined, {
        body: JSON.stringify(DETECT),
        headers: { 'content-type': 'application/json' },
      }),
  ],
  [
    'a body and its digest added',
    ({ client, token }) => {
      const body = JSON.stringify(DETECT)
      const headers = { 'content-type': 'application/json', 'content-digest': contentDigest(body) }
      return client.ask('POST', '/v1/detect', token, undefined, { body, headers })
    },
  ],
  ['a body taken off', ({ client, token }) => client.ask('POST', '/v1/detect', token, DETECT, { body: '' })],
  [
    'a token to manage with',
    ({ client, token }) => client.ask('GET', '/v1/agents', token.manage.access_token),
  ],
  [
    'a token to continue with',
    async ({ stranger }) => {
      const { body } = await stranger.grant(['read'], APPROVAL)
      return stranger.ask('GET', '/v1/agents', body.continue.access_token)
    },
  ],
  [
    'one that was made up',
    ({ client }) => client.ask('GET', '/v1/agents', { value: `gna_${'x'.repeat(50)}` }),
  ],
  ['none', ({ client }) => client.send('GET', '/v1/agents', '')],
  [
    'an HMAC with the public key',
    async ({ client, token }) => {
      const secret = client.signer.key.key.export({ type: 'spki', format: 'der' })
      const signature = createHmac('sha256', secret).update('x').digest()
      const padded = Buffer.concat([signature, signature]).toString('base64')
      return client.ask('GET', '/v1/agents', token, undefined, { headers: { signature: `sig1=:${padded}:` } })
    },
  ],
]

function uses(title: string, changes: Changes) {
  return [
    [title, ({ client, token }: Scene) => client.ask('GET', '/v1/agents', token, undefined, changes)],
  ] as const
}

test('a token that is bound to a key', async (t) => {
  const given = await scene(t)
  for (const [title, attack] of USES)
    t.test(title, async () => {
      const { status, body, headers } = await attack(given)
      assert.deepEqual([status, body.code], [401, 'invalid_token'], JSON.stringify(body))
      assert.match(headers.get('www-authenticate') ?? '', /^(?:GNAP|Bearer) |^$/)
    })
  t.test('as it should be', async () => {
    assert.equal((await given.client.ask('GET', '/v1/agents', given.token)).status, 200)
    assert.equal((await given.client.ask('POST', '/v1/detect', given.token, DETECT)).status, 200)
    assert.deepEqual(given.manage.failures, [])
  })
})

test('signature replay', async (t) => {
  const { client, token } = await scene(t)
  for (const sent of [{ nonce: 'once', createdS: NOW_S() }]) {
    assert.equal((await client.ask('GET', '/v1/agents', token, undefined, sent)).status, 200)
    const again = await client.ask('GET', '/v1/agents', token, undefined, sent)
    assert.deepEqual([again.status, again.body.code], [401, 'invalid_token'])
    const elsewhere = await client.ask('GET', '/v1/signatures', token, undefined, sent)
    assert.equal(elsewhere.status, 401)
    const grant = await client.grant(['read'], {}, sent)
    assert.deepEqual([grant.status, grant.body.error.code], [401, 'invalid_client'])
  }
  // Another key's nonces are its own.
  const { other } = await scene(t)
  assert.equal((await other.grant(['read'], {}, { nonce: 'once' })).status, 200)
})

test('the token of another key', async (t) => {
  const { client, other, token } = await scene(t)
  const theirs: Token = (await other.grant(['read'])).body.access_token
  assert.equal((await other.rotate(token)).body.error.code, 'invalid_client')
  assert.equal((await other.revoke(token)).body.error.code, 'invalid_client')
  const mixed = { ...theirs, manage: { ...theirs.manage, access_token: token.manage.access_token } }
  for (const each of [client, other])
    assert.equal((await each.rotate(mixed)).body.error.code, 'invalid_client')
  assert.equal((await client.rotate(token, undefined, { fields: ['@method', '@target-uri'] })).status, 401)
  assert.equal((await client.rotate(token, undefined, { method: 'DELETE' })).status, 401)
  const own = { ...token, manage: { ...token.manage, access_token: { value: token.value } } }
  assert.equal((await client.rotate(own)).body.error.code, 'invalid_client')
  assert.equal((await client.ask('GET', '/v1/agents', token)).status, 200)
})

test('a token to continue with is used once, by its key, for its grant', async (t) => {
  const { client, stranger, manage } = await scene(t)
  const first: Continue = (await stranger.grant(['read'], APPROVAL)).body.continue
  const second: Continue = (await stranger.grant(['read'], APPROVAL)).body.continue
  const codeOf = ({ status, body }: Answered) => [status, body.error?.code]
  const refused = [401, 'invalid_continuation']
  assert.deepEqual(codeOf(await client.continue(first)), [401, 'invalid_client'])
  assert.deepEqual(codeOf(await stranger.continue({ ...first, access_token: second.access_token })), refused)
  assert.deepEqual(codeOf(await stranger.continue({ ...first, access_token: { value: 'x' } })), refused)
  assert.deepEqual(
    codeOf(await stranger.continue({ ...first, uri: `${manage.url}/gnap/continue/grt_x` })),
    refused,
  )
  assert.deepEqual(codeOf(await stranger.continue(first)), [429, 'too_fast'])
  assert.equal((await stranger.withdraw(first)).status, 204)
  assert.deepEqual(codeOf(await stranger.continue(first)), refused)
  assert.deepEqual(codeOf(await stranger.withdraw(first)), refused)
})

test('a request that nothing can come of leaves nothing behind', async (t) => {
  const { manage, stranger } = await scene(t)
  const store = await openAt(t, manage.storeUrl)
  const kept = async () =>
    (await store.replays.forget(9e15, 1_000)) + (await store.gnapGrants.forget(9e15, 1_000))
  await kept()
  assert.equal((await stranger.grant(['read'])).body.error.code, 'request_denied')
  assert.equal((await stranger.grant(['fly'], APPROVAL)).body.error.code, 'request_denied')
  assert.equal((await stranger.grant(['read'], {}, { tag: 'x' })).body.error.code, 'invalid_client')
  assert.equal(await kept(), 0)
  assert.equal((await stranger.grant(['read'], APPROVAL)).status, 200)
  assert.equal(await kept(), 2)
})

test('who guesses is told to wait, and who asks for approval again and again', async (t) => {
  const manage = await TestManagement.start(t, { authFailuresPerMinute: 3 })
  const client = new GnapClient(manage.url)
  const codes: string[] = []
  for (let i = 0; i < 5; i++) codes.push((await client.grant(['read'], {}, { tag: 'x' })).body.error.code)
  assert.deepEqual(codes, [...Array(3).fill('invalid_client'), ...Array(2).fill('too_many_attempts')])
  const asked: number[] = []
  for (let i = 0; i < 32; i++) asked.push((await client.grant(['read'], APPROVAL)).status)
  assert.deepEqual([asked.filter((status) => status === 200).length, asked.at(-1)], [30, 429])
})

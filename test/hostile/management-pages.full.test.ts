import assert from 'node:assert/strict'
import { test } from 'tap'
import { VERSIONS } from '../../src/manage/api/operations.ts'
import { TestManagement } from '../manage/management.ts'
import { CALLBACK, clientFor } from '../manage/oauth-client.ts'
import { Caller, type Heard } from './management-caller.ts'
import { ADMIN_KEY, bodyFor, Estate } from './management-estate.ts'

/** Public pages, found and not found. */
const PUBLIC = [
  ...[
    '/',
    '/dashboard',
    '/dashboard/',
    '/dashboard/nothing',
    '/docs',
    '/docs?q=<script>',
    '/docs/v2',
    '/docs/style.css',
  ],
  ...[
    '/account',
    '/account/password',
    '/account/nothing',
    '/oauth/authorize',
    '/oauth/authorize?client_id=<b>',
  ],
  ...[
    '/oauth/interaction/nothing',
    '/oauth/sign-out',
    '/oauth/nothing',
    '/gnap/interact/nothing',
    '/gnap/grant',
  ],
  ...['/v1/openapi.json', '/.well-known/oauth-authorization-server', '/.well-known/oauth-protected-resource'],
  ...[
    '/.well-known/gnap-as-rs',
    '/.well-known/agent-card.json',
    '/oauth/jwks',
    '/mcp',
    '/a2a',
    '/health/live',
  ],
  ...['/nothing', '/v1/nothing', '/v1/agents', '//evil.example/', '/\\evil.example'],
]
/** What a proxy in front may add, or a visitor. */
const SAID_OF_ELSEWHERE: readonly Readonly<Record<string, string>>[] = [
  { host: 'evil.example' },
  { host: 'evil.example:443' },
  { host: 'gate@evil.example' },
  { 'x-forwarded-host': 'evil.example' },
  { 'x-host': 'evil.example', 'x-forwarded-server': 'evil.example' },
  { forwarded: 'host=evil.example;proto=https' },
  { 'x-forwarded-proto': 'https', 'x-forwarded-port': '666', 'x-forwarded-prefix': '/evil.example' },
  { 'x-original-url': '/v1/keys', 'x-rewrite-url': '/v1/keys' },
  { 'x-http-method-override': 'DELETE', 'x-method-override': 'DELETE' },
  { referer: 'https://evil.example/', 'accept-language': '<script>', 'user-agent': '<script>evil.example' },
]

test('a page loads nothing foreign, is in no frame, and has its type', async (t) => {
  const { manage } = await Estate.start(t, 'sqlite')
  const caller = new Caller(t, manage.url, { accept: 'text/html' })
  let pages = 0
  for (const path of PUBLIC) {
    const { status, headers, text } = await caller.ask('GET', path)
    const about = `${path}: ${status}`
    assert.ok(status < 500, about)
    assert.equal(headers['x-content-type-options'], 'nosniff', about)
    assert.ok(headers['cache-control'] !== undefined, about)
    const type = String(headers['content-type'] ?? '')
    if (text !== '') assert.match(type, /^(?:text\/(?:html|css)|application\/[\w+.-]*json)/, about)
    if (!type.startsWith('text/html') || text === '') continue
    pages++
    const policy = String(headers['content-security-policy'])
    assert.match(policy, /default-src 'none'/, `${about} ${policy}`)
    for (const part of ["frame-ancestors 'none'", "base-uri 'none'", 'form-action'])
      assert.ok(policy.includes(part), `${about}: ${policy}`)
    assert.doesNotMatch(policy, /unsafe-|\*|data:|blob:/, about)
    assert.equal(headers['x-frame-options'], 'DENY', about)
    assert.match(String(headers['referrer-policy']), /no-referrer|same-origin/, about)
    assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)[^>]*>|\son\w+=["']|javascript:/i, about)
    for (const line of [headers['set-cookie'] ?? []].flat())
      assert.match(line, /HttpOnly.*SameSite|SameSite.*HttpOnly/i, about)
  }
  assert.ok(pages > 8, `${pages}`)
  assert.deepEqual(manage.failures, [])
})

test('whatever host a request names, or a proxy says it named, the answer is the same and leads to us', async (t) => {
  const manage = await TestManagement.start(t, { publicUrl: 'https://gate.example', adminKey: ADMIN_KEY })
  const caller = new Caller(t, manage.url, { accept: '*/*' })
  const asAdmin = new Caller(t, manage.url, {
    authorization: `Bearer ${ADMIN_KEY}`,
    accept: 'application/json',
  })
  const lists = VERSIONS.flatMap(({ prefix, operations }) =>
    operations
      .filter(({ method, path, query }) => method === 'GET' && !path.includes('{') && 'limit' in query.shape)
      .map(({ path }) => `${prefix}${path}?limit=1`),
  )
  for (const [who, paths] of [
    [caller, PUBLIC],
    [asAdmin, lists],
  ] as const)
    for (const path of paths) {
      const plain = shown(await who.ask('GET', path))
      for (const more of SAID_OF_ELSEWHERE) {
        const about = `${path} with ${JSON.stringify(more)}`
        const heard = await who.ask('GET', path, null, more)
        if (!path.includes('evil.example') && path !== '/mcp') {
          const told = JSON.stringify(heard.headers) + heard.text
          assert.doesNotMatch(told, /evil\.example/, about)
        }
        // MCP refuses to be asked by another name: that is what keeps pages elsewhere from it.
        if (path !== '/mcp') assert.deepEqual(shown(heard), plain, about)
      }
    }
  assert.deepEqual(manage.failures, [])
})

test('redirects only to registered places', async (t) => {
  const manage = await TestManagement.start(t)
  const app = { grant_types: ['authorization_code'], redirect_uris: [CALLBACK, 'http://127.0.0.1/cb'] }
  const { client_id } = await clientFor(manage, app)
  const caller = new Caller(t, manage.url, {})
  for (const redirect_uri of REDIRECTS) {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id,
      redirect_uri,
      scope: 'read',
      ...PKCE,
    })
    const { status, headers } = await caller.ask('GET', `/oauth/authorize?${query}`)
    assert.equal(headers.location, undefined, `${redirect_uri}: ${headers.location}`)
    assert.equal(status, 400, redirect_uri)
  }
  for (const path of [
    '//evil.example',
    '/\\evil.example',
    '/%2f%2fevil.example',
    '/dashboard//evil.example',
    '/dashboard?x=//evil.example',
  ])
    for (const query of [
      '',
      '?return=https://evil.example',
      '?next=//evil.example&redirect=//evil.example',
    ]) {
      const { headers } = await caller.ask('GET', path + query)
      assert.ok(!headers.location?.includes('evil'), `${path}${query}: ${headers.location}`)
    }
})

test('answers with a secret are never cached', async (t) => {
  const estate = await Estate.start(t, 'sqlite')
  const caller = new Caller(t, estate.manage.url, {
    authorization: `Bearer ${ADMIN_KEY}`,
    'accept-encoding': 'gzip',
  })
  for (const operation of VERSIONS[0]!.operations) {
    const body = bodyFor(operation)
    if (operation.method === 'GET' || operation.method === 'DELETE') continue
    const heard = await caller.ask(
      operation.method,
      estate.pathFor(operation),
      body === null ? null : JSON.stringify(body),
    )
    assert.equal(heard.headers['cache-control'], 'no-store', operation.id)
    assert.equal(heard.headers.etag === undefined || heard.status < 300, true, operation.id)
  }
})

/** Everything that is the same in each answer. */
function shown({ status, headers, text }: Heard): unknown {
  const { date: _, 'x-request-id': __, etag: ___, ...kept } = headers
  const changing = ['set-cookie', 'ratelimit', 'content-length', 'www-authenticate']
  const head = Object.entries(kept).filter(([name]) => !changing.includes(name))
  return [status, head, text.replaceAll(CHANGING, '…')]
}

const CHANGING =
  /\bv1\.[\w.-]{40,}|[0-9a-f]{8}-[0-9a-f-]{27}|[\w-]{43}|\d{4}-\d\d-\d\dT[\d:.]+Z|"(?:uptime|age|at|last)\w*":[^,}]+/g
const PKCE = { code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' }
/** Like a registered one. */
const REDIRECTS = [
  ...[
    'https://app.example',
    'https://app.example/',
    'https://app.example/callback/',
    'https://app.example/callback/../x',
  ],
  ...[
    'https://app.example/callback?x=1',
    'https://app.example/callback#x',
    'https://app.example/callback%2f',
  ],
  ...['https://app.example/callback%00', 'https://app.example/callback/..', 'https://APP.example/callback'],
  ...['https://app.example:443/callback', 'https://app.example:444/callback', 'http://app.example/callback'],
  ...['https://app.example.evil.example/callback', 'https://app.example@evil.example/callback'],
  ...[
    'https://evil.example/https://app.example/callback',
    'https://evil.example#https://app.example/callback',
  ],
  ...[
    'https://app.example\\@evil.example/callback',
    'https:\\\\app.example/callback',
    '//app.example/callback',
  ],
  ...[
    'https:/app.example/callback',
    'javascript:alert(1)',
    'data:text/html,x',
    ' https://app.example/callback',
  ],
  ...[
    'https://app.example/callback\n',
    'https://app.example/callback\t',
    'https://app.exampl\u0435/callback',
  ],
  ...[
    'http://127.0.0.1.evil.example/cb',
    'http://127.0.0.1@evil.example/cb',
    'http://127.0.0.2/cb',
    'http://127.1/cb',
  ],
  ...['http://127.0.0.1/cb2', 'http://127.0.0.1:99999/cb', 'http://0x7f000001/cb', 'https://127.0.0.1/cb'],
]

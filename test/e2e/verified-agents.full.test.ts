import assert from 'node:assert/strict'
import { type JsonWebKey, webcrypto } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import tls from 'node:tls'
import { createSignature, webcrypto as messageSig } from 'http-message-sig'
import { isInnerList, parseDictionary } from 'structured-headers'
import { type Test, test } from 'tap'
import { signatureHeaders } from 'web-bot-auth'
import { signerFromJWK } from 'web-bot-auth/crypto'
import { DIRECTORY } from '../../src/classify/known/signer-id.ts'
import { delegationToken } from '../identity/delegation-tokens.ts'
import { DocumentServer } from '../identity/document-server.ts'
import { FORGERIES, made, type Scene, type Sent, type TestAgent } from '../identity/forgeries.ts'
import { newSigner, type Signer, signed } from '../identity/signer.ts'
import { type App, startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'
import { until } from '../until.ts'

const PROTOCOLS = ['h1', 'h2'] as const

/** Programs that agents sign with, none of them ours: the headers that each makes for a GET. */
const SIGNERS: Readonly<Record<string, (agent: Agent, url: string) => Promise<Record<string, string>>>> = {
  'web-bot-auth 0.1.3': async ({ id, keys: { ed25519 } }, url) => {
    const agentHeader = { 'Signature-Agent': `"${id}"` }
    const signer = await signerFromJWK(ed25519.privateKey.export({ format: 'jwk' }) as never)
    const made = await signatureHeaders(new Request(url, { headers: agentHeader }), signer, times())
    return { ...agentHeader, Signature: made.Signature, 'Signature-Input': made['Signature-Input'] }
  },
  'web-bot-auth 0.1.3 with RSA': async ({ id, keys: { rsa } }, url) => {
    const agentHeader = { 'Signature-Agent': `"${id}"` }
    const jwk = { ...rsa.privateKey.export({ format: 'jwk' }), alg: 'PS512' } as never
    const made = await signatureHeaders(
      new Request(url, { headers: agentHeader }),
      await signerFromJWK(jwk),
      times(),
    )
    return { ...agentHeader, Signature: made.Signature, 'Signature-Input': made['Signature-Input'] }
  },
  'http-message-signatures 1.0.6': ({ id, keys: { p256 } }, url) => byMessageSignatures(p256, id, url),
  'http-message-signatures 1.0.6 with RSA': ({ id, keys: { rsa } }, url) => byMessageSignatures(rsa, id, url),
  'http-message-sig 0.3.0': async ({ id, keys: { ed25519 } }, url) => {
    const { created, expires } = times()
    const [createdS, expiresS] = [created, expires].map((time) => Math.floor(time.getTime() / 1_000))
    const agentHeader = { 'Signature-Agent': `bot="${id}"` }
    const jwk = ed25519.privateKey.export({ format: 'jwk' }) as JsonWebKey
    const key = await webcrypto.subtle.importKey('jwk', jwk as never, 'Ed25519', false, ['sign'])
    const fields = await createSignature(new Request(url, { headers: agentHeader }), {
      label: 'bot',
      components: ['@method', '@authority', '@path', { name: 'signature-agent', parameters: { key: 'bot' } }],
      parameters: {
        ...{ created: createdS!, expires: expiresS!, keyid: ed25519.key.thumbprint, tag: 'web-bot-auth' },
        nonce: crypto.randomUUID(),
      },
      signer: messageSig.signer(key as never),
    })
    return { ...agentHeader, 'Signature-Input': fields.signatureInput, Signature: fields.signature }
  },
}

for (const [name, sign] of Object.entries(SIGNERS))
  test(`${name} is verified on its second request, or, where the policy waits, on its first`, async (t) => {
    const app = await startApp(t)
    for (const [unknownSigner, firsts] of [
      ['pass', [undefined, 'web-bot-auth']],
      ['{wait: 2s}', ['web-bot-auth', 'web-bot-auth']],
    ] as const)
      for (const protocol of PROTOCOLS) {
        const agent = await newAgent(t)
        const gate = await gateFor(t, app, { unknownSigner })
        const told: (string | undefined)[] = []
        for (let i = 0; i < 2; i++) {
          await ask(gate, protocol, { headers: Object.entries(await sign(agent, `${gate.url}/`)).flat() })
          told.push(toldOf(app)['x-agent-verified'])
          await until(async () => (await counts(gate)).documents > 0)
        }
        assert.deepEqual(told, firsts, `${unknownSigner} ${protocol}`)
        const { 'x-agent-identity': identity, 'x-agent-verdict': verdict } = toldOf(app)
        assert.deepEqual([identity, verdict], [agent.id, 'agent'])
        await gate.stop()
      }
  })

test('every way to forge a signature has a name, and none is verified', async (t) => {
  const app = await startApp(t)
  const agent = await newAgent(t)
  const gate = await gateFor(t, app, { command: 'up', isBehindProxy: true, readsSignatureKey: true })
  const scene = sceneOf(gate, agent)
  await untilVerified(gate, app, scene)
  let client = 0
  let before = await counts(gate)
  const check = async (name: string, finding: string, sent: Sent, protocol: 'h1' | 'h2') => {
    const count = app.asked.length
    const status = await ask(gate, protocol, sent, [`X-Forwarded-For`, `203.0.113.${++client}`])
    const { verified, conflict } = {
      verified: toldOf(app)['x-agent-verified'],
      conflict: toldOf(app)['x-agent-conflict'],
    }
    assert.deepEqual([status, app.asked.length - count, verified], [200, 1, undefined], name)
    assert.equal(conflict, finding.startsWith('failed') ? 'signature-failed' : undefined, name)
    const after = await counts(gate)
    assert.deepEqual(risen(before.signatures, after.signatures), [finding], `${name} ${protocol}`)
    before = after
  }
  for (const { name, finding, why, make } of FORGERIES)
    for (const protocol of PROTOCOLS) {
      if (protocol === 'h2' && /10 KiB|5 KiB/.test(name)) continue
      await check(name, `${finding} ${why}`, make(sceneOf(gate, agent)), protocol)
    }
  const used = made(sceneOf(gate, agent))
  assert.equal(await ask(gate, 'h1', used), 200)
  assert.equal(toldOf(app)['x-agent-verified'], 'web-bot-auth')
  before = await counts(gate)
  // Each on a connection of its own, which either of two workers may take.
  for (let i = 0; i < 12; i++) await check(`replayed ${i}`, 'failed replayed', used, PROTOCOLS[i % 2]!)
  const shared = made(sceneOf(gate, agent), { nonce: null })
  for (const [address, verified] of [
    ['198.51.100.1', 'web-bot-auth'],
    ['198.51.100.1', 'web-bot-auth'],
    ['198.51.100.2', undefined],
    ['198.51.100.1', 'web-bot-auth'],
  ]) {
    await ask(gate, 'h1', shared, ['X-Forwarded-For', address!])
    assert.equal(toldOf(app)['x-agent-verified'], verified, `without a nonce, from ${address}`)
  }
})

test('a signature that is used again on its own connection is a replay', async (t) => {
  const app = await startApp(t)
  const agent = await newAgent(t)
  const gate = await gateFor(t, app, {})
  await untilVerified(gate, app, sceneOf(gate, agent))
  const { headers } = made(sceneOf(gate, agent))
  const socket = tls.connect({ port: gate.port, ca: gate.ca, servername: 'localhost' })
  const lines = pairsOf(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  for (let i = 0; i < 2; i++) {
    socket.write(`GET /cart?id=7 HTTP/1.1\r\nHost: localhost:${gate.port}\r\n${lines.join('')}\r\n`)
    await once(socket, 'data')
    assert.equal(toldOf(app)['x-agent-verified'], i === 0 ? 'web-bot-auth' : undefined)
  }
  assert.equal(toldOf(app)['x-agent-conflict'], 'signature-failed')
  const count = app.asked.length
  // What is folded onto a second line is one line to some and two to others.
  const folded = lines.join('').replace(';keyid', '\r\n ;keyid')
  socket.write(`GET /cart?id=7 HTTP/1.1\r\nHost: localhost:${gate.port}\r\n${folded}\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  assert.match(answer.toString('latin1'), /^HTTP\/1\.1 400 /)
  assert.equal(app.asked.length, count)
  socket.destroy()
})

test('a missing directory, or one without the key, verifies no agent and delays no request', async (t) => {
  const app = await startApp(t)
  const server = await DocumentServer.start(t, 'http')
  const keys = keysOfAll()
  const own = { keys: Object.values(keys).map(({ jwk }) => jwk) }
  const json = { 'content-type': 'application/json' }
  const at = (path: string) => server.url(path, '127.0.0.1')
  server.serveJson('/own', own)
  server.serve('/redirects', (_, response) => response.writeHead(302, { location: at('/own') }).end())
  server.serveJson('/huge', { ...own, x: 'x'.repeat(70_000) })
  server.serve('/endless', (_, response) => void response.writeHead(200, json).write('{"keys":'))
  server.serve('/missing', (_, response) => response.writeHead(404, json).end(JSON.stringify(own)))
  server.serve('/broken', (_, response) => response.writeHead(200, json).end('{"keys":'))
  server.serve('/page', (_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(JSON.stringify(own)),
  )
  server.serveJson('/many', { keys: Array.from({ length: 33 }, () => newSigner('ed25519').jwk) })
  server.serveJson('/secret', { keys: [{ kty: 'oct', k: keys.ed25519.jwk.x! }] })
  server.serveJson('/another', { keys: [newSigner('ed25519').jwk] })
  const gate = await gateFor(t, app, { isBehindProxy: true })
  for (const [path, finding] of [
    ...['/redirects', '/huge', '/missing', '/broken', '/page', '/many', '/secret'].map((path) => [
      path,
      NONE,
    ]),
    ['/another', 'failed unknown-key'],
  ] as const) {
    const agent = { id: at(path!), ...keys }
    const start = (await counts(gate)).signatures
    const names = new Set<string>()
    while (!names.has(finding!)) {
      await ask(gate, 'h1', made(sceneOf(gate, agent)))
      assert.equal(toldOf(app)['x-agent-verified'], undefined, path)
      for (const name of risen(start, (await counts(gate)).signatures)) names.add(name)
    }
    assert.deepEqual(
      [...names].filter((name) => name !== 'unchecked no-key-yet'),
      [finding],
      path,
    )
  }
  const good = { id: at('/own'), ...keys }
  await untilVerified(gate, app, sceneOf(gate, good))
  const slow = { id: at('/endless'), ...keys }
  const startedMs = performance.now()
  assert.equal(await ask(gate, 'h1', made(sceneOf(gate, slow))), 200)
  assert.ok(performance.now() - startedMs < 2_000, 'no request waits for it')
})

test('an agent at a private address is not asked for', async (t) => {
  const app = await startApp(t)
  const server = await DocumentServer.start(t, 'https')
  const keys = keysOfAll()
  const gate = await gateFor(t, app, { allowsPrivate: false })
  for (const [host, finding] of [
    ['127.0.0.1', 'unchecked no-directory'],
    ['localhost', 'unchecked no-directory'],
    ['[::1]', 'unchecked no-directory'],
  ] as const) {
    const agent = { id: server.url('', host), ...keys }
    await until(async () => {
      await ask(gate, 'h1', made(sceneOf(gate, agent)))
      assert.equal(toldOf(app)['x-agent-verified'], undefined)
      return ((await counts(gate)).signatures.get(finding) ?? 0) > 0
    })
  }
  const plain = { id: 'http://agent.example', ...keys }
  await ask(gate, 'h1', made(sceneOf(gate, plain)))
  assert.equal((await counts(gate)).signatures.get('failed other-agent'), 1)
  assert.equal(server.asked.length, 0)
})

test('the metadata of an issuer in Signature-Key verifies its agent, and a bare key verifies none', async (t) => {
  const app = await startApp(t)
  const server = await DocumentServer.start(t, 'http')
  const { ed25519, p256 } = keysOfAll()
  const id = server.url('', '127.0.0.1')
  server.serveJson('/.well-known/agent', { issuer: id, jwks_uri: `${id}/keys` })
  server.serveJson('/keys', { keys: [{ ...p256.jwk, kid: 'k1', alg: 'ES256' }] })
  const gate = await gateFor(t, app, { unknownSigner: '{wait: 5s}', readsSignatureKey: true })
  const bare = `sig1=hwk;kty="OKP";crv="Ed25519";x="${ed25519.jwk.x}";alg="Ed25519"`
  const named = `sig1=jwks_uri;id="${id}";dwk="agent";kid="k1"`
  for (const [field, by, verified, identity] of [
    [named, p256, 'web-bot-auth', id],
    [named, ed25519, undefined, undefined],
    [bare, ed25519, undefined, undefined],
    ['sig1=jwt;jwt="e30.e30.AA"', ed25519, undefined, undefined],
  ] as const)
    for (const protocol of PROTOCOLS) {
      const request = { method: 'GET', url: `${gate.url}/`, headers: { 'Signature-Key': field } }
      const fields = ['@method', '@authority', '@path', 'signature-key']
      const wanted = { fields, createdS: Math.floor(Date.now() / 1_000), keyId: null, tag: null }
      const headers = Object.entries(await signed(by, request, wanted)).flat(2)
      await ask(gate, protocol, { headers })
      const told = [toldOf(app)['x-agent-verified'], toldOf(app)['x-agent-identity']]
      assert.deepEqual(told, [verified, identity], `${field} ${protocol}`)
    }
  const { signatures } = await counts(gate)
  assert.deepEqual(Object.fromEntries(signatures), {
    ...{ proven: 2, 'failed wrong': 2, key: 2, 'unchecked ignored-key': 2 },
  })
})

test('tokens in Signature-Key prove a provider of agents, and that an agent acts for a person', async (t) => {
  const app = await startApp(t)
  const server = await DocumentServer.start(t, 'http')
  const { ed25519, p256 } = keysOfAll()
  const id = server.url('', '127.0.0.1')
  for (const name of ['aauth-agent.json', 'aauth-person.json'])
    server.serveJson(`/.well-known/${name}`, { issuer: id, jwks_uri: `${id}/keys` })
  server.serveJson('/keys', { keys: [{ ...p256.jwk, kid: 'k1', alg: 'ES256' }] })
  const rule = '{name: for-person, when: {evidence: acts-for-person}, action: {block: {status: 451}}}'
  const gate = await gateFor(t, app, { unknownSigner: '{wait: 5s}', readsSignatureKey: true, rule })
  const nowS = Math.floor(Date.now() / 1_000)
  const cnf = { jwk: { ...ed25519.jwk, alg: 'Ed25519' } }
  const claims = { iss: id, iat: nowS, exp: nowS + 600, cnf }
  const person = {
    ...claims,
    dwk: 'aauth-person.json',
    sub: 'someone-in-particular',
    aud: new URL(gate.url).origin,
  }
  for (const [typ, given, status, verified, kind] of [
    ['aa-agent+jwt', claims, 200, 'web-bot-auth', 'proven'],
    ['aa-person+jwt', person, 451, undefined, 'key'],
    [
      'aa-person+jwt',
      { ...person, aud: 'https://other.example' },
      200,
      undefined,
      'failed token-for-another',
    ],
  ] as const)
    for (const protocol of PROTOCOLS) {
      const field = `sig1=jwt;jwt="${delegationToken(p256, { typ, kid: 'k1' }, given)}"`
      const request = { method: 'GET', url: `${gate.url}/`, headers: { 'Signature-Key': field } }
      const fields = ['@method', '@authority', '@path', 'signature-key']
      const wanted = {
        fields,
        createdS: Math.floor(Date.now() / 1_000),
        keyId: null,
        tag: null,
        nonce: `${Math.random()}`,
      }
      const headers = Object.entries(await signed(ed25519, request, wanted)).flat(2)
      const before = app.asked.length
      const answer = await ask(gate, protocol, { headers })
      assert.equal(answer, status, `${typ} ${protocol}`)
      if (status === 200) assert.equal(toldOf(app)['x-agent-verified'], verified)
      else assert.equal(app.asked.length, before)
      // Signed and used once.
      if (kind === 'key') assert.equal(await ask(gate, protocol, { headers }), 200)
      assert.ok(((await counts(gate)).signatures.get(kind) ?? 0) > 0, kind)
    }
  assert.doesNotMatch(gate.said(), /someone-in-particular/)
})

test('an agent that signs only what asks for it gets in', async (t) => {
  const app = await startApp(t)
  const agent = await newAgent(t)
  const rule = '{name: unproven, when: {verified: false, verdict: [agent, automation]}, action: block}'
  const gate = await gateFor(t, app, { unknownSigner: '{wait: 5s}', rule })
  const asking = async (headers: Record<string, string>) => {
    const response = await fetchFrom(gate, { 'User-Agent': 'OnDemandBot/1.0', ...headers })
    return { status: response.statusCode, wanted: response.headers['accept-signature'] }
  }
  const { status, wanted } = await asking({})
  assert.equal(status, 403)
  const [, member] = [...parseDictionary(String(wanted))][0]!
  assert.ok(isInnerList(member))
  const asked = member[1]
  assert.deepEqual(
    [asked.get('created'), asked.get('expires'), asked.get('tag')],
    [true, true, 'web-bot-auth'],
  )
  const { headers } = made(sceneOf(gate, agent))
  // It signs what the answer names, under the same label.
  assert.deepEqual(
    member[0].map(([name]) => name),
    ['@authority', 'signature-agent'],
  )
  assert.equal((await asking(Object.fromEntries(pairsOf(headers)))).status, 200)
  const person = await fetchFrom(gate, { 'User-Agent': 'OnDemandBot/1.0', Accept: 'text/html' })
  assert.equal(person.statusCode, 403)
})

interface Agent {
  readonly id: string
  readonly keys: Keys
}

type Keys = Omit<TestAgent, 'id'>

interface GateOptions {
  readonly command?: 'up' | 'proxy'
  readonly unknownSigner?: string
  /** Of the policy. */
  readonly rule?: string
  readonly isBehindProxy?: boolean
  readonly allowsPrivate?: boolean
  readonly readsSignatureKey?: boolean
}

/** With a key directory of its own. */
async function newAgent(t: Test): Promise<Agent & TestAgent> {
  const server = await DocumentServer.start(t, 'http')
  const keys = keysOfAll()
  server.serveJson(DIRECTORY, { keys: Object.values(keys).map(({ jwk }) => jwk) })
  return { id: server.url('', '127.0.0.1'), keys, ...keys }
}

async function gateFor(t: Test, app: App, options: GateOptions): Promise<RunningGatehouse> {
  const { command = 'proxy', unknownSigner = 'pass', isBehindProxy = false, allowsPrivate = true } = options
  const rules = options.rule === undefined ? '' : `rules: [${options.rule}]\n`
  const folder = temporaryFolder(t)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, `unknown_signer: ${unknownSigner}\n${rules}`)
  const workers = command === 'up' ? ['--workers', '2', '--data', folder] : []
  const gate = await startGatehouse(t, {
    ...{ command, upstream: app.url, argv: ['--policy', policy, ...workers] },
    settings: isBehindProxy ? ['trusted_proxies: [127.0.0.1]'] : [],
    variables: {
      ...(options.readsSignatureKey && { GATEHOUSE_IDENTITY_KEY_HEADER: 'true' }),
      ...(allowsPrivate && { GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true' }),
      // Otherwise the hosts are unknown behind a proxy that could end TLS.
      ...(isBehindProxy && { GATEHOUSE_IDENTITY_HOSTS: 'localhost' }),
    },
  })
  // What was created in the second of the start may have been used before it.
  const readyS = Math.floor(Date.now() / 1_000)
  await until(async () => Math.floor(Date.now() / 1_000) > readyS)
  return gate
}

async function untilVerified(gate: RunningGatehouse, app: App, scene: Scene): Promise<void> {
  await until(async () => {
    await ask(gate, 'h1', made(scene))
    return toldOf(app)['x-agent-verified'] === 'web-bot-auth'
  })
}

function sceneOf(gate: RunningGatehouse, agent: TestAgent): Scene {
  return {
    ...{ agent, stranger: STRANGER, authority: `localhost:${gate.port}` },
    nowS: Math.floor(Date.now() / 1_000),
  }
}

async function ask(
  gate: RunningGatehouse,
  protocol: 'h1' | 'h2',
  sent: Partial<Sent>,
  more: readonly string[] = [],
): Promise<number> {
  const { method = 'GET', target = '/', authority = `localhost:${gate.port}` } = sent
  const headers = [...(sent.headers ?? []), ...more]
  if (protocol === 'h2') return askHttp2(gate, method, target, authority, headers)
  const options = {
    method,
    path: target,
    port: gate.port,
    ca: gate.ca,
    servername: 'localhost',
    agent: false,
  }
  const request = https.request({ ...options, headers: ['Host', authority, ...headers] as never }).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response.statusCode!
}

async function fetchFrom(gate: RunningGatehouse, headers: Record<string, string>): Promise<IncomingMessage> {
  const { port, ca } = gate
  const request = https.request({
    port,
    ca,
    path: '/cart?id=7',
    servername: 'localhost',
    agent: false,
    headers,
  })
  const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response
}

async function askHttp2(
  gate: RunningGatehouse,
  method: string,
  target: string,
  authority: string,
  headers: readonly string[],
): Promise<number> {
  const session = http2.connect(gate.url, { ca: gate.ca })
  // As a list, for one name may stand in it twice.
  const list = [':method', method, ':path', target, ':authority', authority, ':scheme', 'https']
  const stream = session.request([...list, ...lowered(headers)] as never)
  const [answer] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders & { ':status'?: number }]
  stream.resume()
  await once(stream, 'end')
  session.close()
  return answer[':status']!
}

function lowered(headers: readonly string[]): string[] {
  return headers.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))
}

async function byMessageSignatures(signer: Signer, id: string, url: string): Promise<Record<string, string>> {
  const { created, expires } = times()
  const headers = { 'Signature-Agent': `sig1="${id}"` }
  const made = await signed(
    signer,
    { method: 'GET', url, headers },
    {
      fields: ['@authority', 'signature-agent;key="sig1"'],
      ...{ tag: 'web-bot-auth', algorithm: signer.algorithm, nonce: crypto.randomUUID() },
      ...{ createdS: Math.floor(created.getTime() / 1_000), expiresS: Math.floor(expires.getTime() / 1_000) },
    },
  )
  return made as Record<string, string>
}

/** What the app was told last. */
function toldOf(app: App): Readonly<Record<string, string>> {
  const { rawHeaders } = app.asked.at(-1)!
  return Object.fromEntries(pairsOf(rawHeaders).map(([name, value]) => [name.toLowerCase(), value]))
}

interface Counts {
  /** By finding and why. */
  readonly signatures: ReadonlyMap<string, number>
  readonly documents: number
}

async function counts({ manage }: RunningGatehouse): Promise<Counts> {
  const text = await (await fetch(`${manage}/metrics`)).text()
  const signatures = text.matchAll(/^gatehouse_signatures_total\{finding="(\w*)",why="([\w-]*)"\} (\d+)$/gm)
  const documents = text.matchAll(/^gatehouse_document_fetches_total\{document="directory".*\} (\d+)$/gm)
  return {
    signatures: new Map(
      Array.from(signatures, ([, kind, why, count]) => [`${kind} ${why}`.trim(), Number(count)]),
    ),
    documents: Array.from(documents, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0),
  }
}

function risen(before: Counts['signatures'], after: Counts['signatures']): string[] {
  return [...after].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name]) => name)
}

function keysOfAll(): Keys {
  return { ed25519: newSigner('ed25519'), p256: newSigner(), rsa: newSigner('rsa-pss-sha512') }
}

function times(): { readonly created: Date; readonly expires: Date } {
  const nowMs = Date.now()
  return { created: new Date(nowMs), expires: new Date(nowMs + 300_000) }
}

function pairsOf(headers: readonly string[]): (readonly [string, string])[] {
  return headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!] as const] : []))
}

const NONE = 'unchecked no-directory'
const STRANGER = newSigner('ed25519')

import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import type { SignatureFinding } from '../../src/classify/verdict/proof.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import { knowledgeOf } from '../../src/runtime/signatures/knowledge-files.ts'
import type { InquiryResult, Inquiry, SignatureUse } from '../../src/identity/keys/inquiry.ts'
import type { Connection } from '../../src/proxy/connection/connection.ts'
import { AddressSet } from '../../src/wire/ip-address.ts'
import { Prover } from '../../src/proxy/request/prover.ts'
import { ServedHosts } from '../../src/proxy/connection/served-hosts.ts'
import { bareAgent, made, type Making, type Scene } from '../identity/forgeries.ts'
import { newSigner, rawHeadersOf, signed } from '../identity/signer.ts'
import { dialPlain, dialTls, LOOPBACK } from './front.ts'
import { headerRules } from './test-headers.ts'
import { type Gate, startGate } from './test-gate.ts'
import { until } from './test-worker.ts'
import { settingsFor } from './upstream-fixture.ts'
import { NOTHING_PUBLISHED } from '../identity/published.ts'

const HOST = 'a.example.test'
const ID = 'https://agent.example'
const signer = newSigner('ed25519')
const KNOWLEDGE = knowledgeOf(parseSoftwareList([]), parseWeights({ temperature: 1 }))
const SETTINGS = {
  isSignatureChecked: true,
  areNetworksKnown: false,
  areStrangersAsked: true,
  agents: [],
} as const
const WAITING = { rules: [], otherwise: 'tag', unknown_signer: { wait: '5s' } }

test('a signer whose key is not known is asked for once, and is known on the next request', async (t) => {
  const { gate, seen, findings, asked, tell } = await provingGate(t, { rules: [] })
  await Promise.all([ask(gate, 'h1'), ask(gate, 'h1'), ask(gate, 'h2')])
  assert.deepEqual(asked, [{ kind: 'keys', agentId: ID, thumbprint: signer.key.thumbprint, isListed: false }])
  assert.deepEqual(namesOf(findings), Array(3).fill('unchecked no-key-yet'))
  tell()
  for (const protocol of ['h1', 'h2'] as const) {
    assert.equal((await ask(gate, protocol)).status, 200)
    assert.deepEqual(
      ['x-agent-verdict', 'x-agent-verified', 'x-agent-identity', 'x-agent-key'].map(
        (name) => seen.at(-1)![name],
      ),
      ['agent', 'web-bot-auth', ID, signer.key.thumbprint],
    )
  }
  assert.deepEqual(namesOf(findings).slice(3), ['proven', 'proven'])
})

test('unsigned requests need no fetch and no wait', async (t) => {
  const { gate, prover, findings, asked } = await provingGate(t, WAITING)
  const proofs = prover.prove(CONNECTION, headOf(['User-Agent', 'x']), HOST, 5_000)
  assert.ok('signature' in proofs && proofs.signature === null)
  assert.equal(proofs, prover.prove(CONNECTION, headOf(['Signature', 'sig1=:AA==:']), HOST, 5_000))
  await ask(gate, 'h1', [])
  assert.deepEqual([findings, asked], [[], []])
})

for (const protocol of ['h1', 'h2'] as const) {
  test(`${protocol}: a request waits for the key of its signer, and its body with it`, async (t) => {
    const { gate, prover, seen, bodies, tell } = await provingGate(t, WAITING)
    const body = 'x'.repeat(300_000)
    const answer = ask(gate, protocol, signedHeaders(), body)
    await until(() => prover.waiting === 1)
    assert.equal(seen.length, 0)
    tell()
    assert.equal((await answer).status, 200)
    assert.deepEqual(
      [prover.waiting, seen[0]!['x-agent-verified'], bodies[0]],
      [0, 'web-bot-auth', body.length],
    )
  })

  test(`${protocol}: a client that leaves while it waits is released, and uses nothing up`, async (t) => {
    const { gate, prover, seen, claims, tell } = await provingGate(t, WAITING)
    const leave = await leaver(gate, protocol)
    await until(() => prover.waiting === 1)
    leave()
    await until(() => prover.waiting === 0)
    await until(() => gate.done.length === 1)
    tell()
    assert.equal(gate.done[0]!.status, 0)
    assert.deepEqual([seen.length, claims.length, gate.sightings.length], [0, 0, 1])
  })
}

test('a WebSocket waits, too, and its client may leave', async (t) => {
  const { gate, prover, seen, tell } = await provingGate(t, WAITING)
  const headers = [...signedHeaders(), 'Connection', 'Upgrade', 'Upgrade', 'websocket']
  const lines = linesOf([
    ...headers,
    'Sec-WebSocket-Version',
    '13',
    'Sec-WebSocket-Key',
    'AAAAAAAAAAAAAAAAAAAAAA==',
  ])
  const dial = async () => {
    const peer = await dialPlain(gate.plain.port)
    peer.write(`GET /cart?id=7 HTTP/1.1\r\nHost: ${HOST}\r\n${lines}\r\n`)
    await until(() => prover.waiting === 1)
    return peer
  }
  const gone = await dial()
  gone.socket.destroy()
  await until(() => prover.waiting === 0)
  const half = await dial()
  half.socket.end()
  await half.closed
  await until(() => prover.waiting === 0)
  assert.equal(seen.length, 0)
  const patient = await dial()
  tell()
  await patient.hears('101 Switching Protocols')
  assert.equal(seen[0]!['x-agent-verified'], 'web-bot-auth')
  patient.socket.destroy()
  assert.deepEqual(
    gate.done.slice(0, 2).map(({ status }) => status),
    [0, 0],
  )
})

test('a request waits no longer than the policy says, and not for an agent without keys', async (t) => {
  const { gate, findings, tell } = await provingGate(t, { rules: [], unknown_signer: { wait: '30ms' } })
  await ask(gate, 'h1')
  assert.deepEqual(namesOf(findings), ['unchecked no-key-yet'])
  gate.judgeBy(WAITING)
  const answer = ask(gate, 'h1')
  await until(() => findings.length === 1)
  tell({ keys: [], why: 'no-directory' })
  await answer
  assert.deepEqual(namesOf(findings).slice(1), ['unchecked no-directory'])
})

test('of one address only so many wait, and the rest pass unchecked', async (t) => {
  const { prover, findings, tell } = await provingGate(t, WAITING)
  const pending = Array.from({ length: 60 }, () =>
    prover.prove(CONNECTION, headOf(signedHeaders()), HOST, 5_000),
  )
  assert.deepEqual([prover.waiting, namesOf(findings)], [50, Array(10).fill('unchecked no-key-yet')])
  const other = prover.prove({ ...CONNECTION, address: '192.0.2.8' }, headOf(signedHeaders()), HOST, 5_000)
  assert.equal(prover.waiting, 51)
  tell()
  for (const each of [...pending, other]) if ('letGo' in each) await each.proofs
  assert.equal(prover.waiting, 0)
  assert.deepEqual(namesOf(findings).slice(10), Array(51).fill('proven'))
})

test('stops reading signatures of a client that names many unknown agents', async (t) => {
  const { prover, asked, findings } = await provingGate(t, { rules: [] })
  for (let i = 0; i < 40; i++) {
    const { headers } = made({ ...SCENE, agent: { ...SCENE.agent, id: `https://${i}.example` } })
    prover.prove(CONNECTION, headOf(headers), HOST, 0)
  }
  assert.equal(asked.length, 20)
  assert.equal(namesOf(findings).at(-1), 'unchecked too-many')
})

test('a drain serves those who wait', async (t) => {
  const { gate, prover, tell } = await provingGate(t, WAITING)
  const answer = ask(gate, 'h1')
  await until(() => prover.waiting === 1)
  const drained = gate.secure.listener.drain(10_000, 0)
  tell()
  assert.equal((await answer).status, 200)
  await drained
})

test('a used signature is a replay, and unchecked if the memory does not answer', async (t) => {
  const { gate, findings, seen, tell, answers } = await provingGate(t, { rules: [] })
  tell()
  for (const [answer, name, conflict] of [
    [true, 'proven', undefined],
    [false, 'failed replayed', 'signature-failed'],
    [null, 'unchecked no-answer', undefined],
  ] as const) {
    answers.claim = answer
    await ask(gate, 'h1')
    assert.deepEqual([namesOf(findings).at(-1), seen.at(-1)!['x-agent-conflict']], [name, conflict])
  }
})

test('the signature of a WebSocket over HTTP/2 covers the method that was sent, CONNECT', async (t) => {
  const { prover, findings, tell } = await provingGate(t, { rules: [] })
  tell()
  const fields = [
    ':method',
    'CONNECT',
    ':protocol',
    'websocket',
    ':scheme',
    'https',
    ':authority',
    HOST,
    ':path',
    '/cart?id=7',
  ]
  for (const [method, found] of [
    ['CONNECT', 'proven'],
    ['GET', 'failed wrong'],
  ] as const) {
    const covered = [
      ['"@authority"', HOST],
      ['"signature-agent";key="sig1"', `"${ID}"`],
      ['"@method"', method],
    ] as const
    const { headers } = made(SCENE, { components: covered })
    const rawHeaders = [...fields, ...headers.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))]
    const proofs = prover.prove(CONNECTION, { ...headOf(rawHeaders), version: '20' }, HOST, 0)
    if ('letGo' in proofs) await proofs.proofs
    assert.equal(namesOf(findings).at(-1), found, method)
  }
})

test('a replay counts as what does not hold, and soon costs no more than that', async (t) => {
  const { prover, findings, tell, answers, claims } = await provingGate(t, { rules: [] })
  tell()
  answers.claim = false
  const sent = headOf(signedHeaders())
  for (let i = 0; i < 30; i++) {
    const proofs = prover.prove(CONNECTION, sent, HOST, 0)
    if ('letGo' in proofs) await proofs.proofs
  }
  assert.deepEqual([...new Set(namesOf(findings))], ['failed replayed', 'unchecked too-many'])
  assert.equal(claims.length, 20)
})

test('behind a trusted hop, address and scheme are the client’s', async (t) => {
  const { gate, claims, findings, tell } = await provingGate(t, { rules: [] }, LOOPBACK)
  tell()
  const covering: Making['components'] = [
    ['"@target-uri"', `https://${HOST}/cart?id=7`],
    ...bareAgent(SCENE).slice(1),
  ]
  const headers = made(SCENE, { components: covering, agent: `"${ID}"`, nonce: null }).headers
  const hop = ['X-Forwarded-For', '192.0.2.77', 'X-Forwarded-Proto', 'https']
  await askPlain(gate, [...headers, ...hop])
  assert.deepEqual([namesOf(findings), claims.at(-1)?.holder], [['proven'], '192.0.2.77'])
  await askPlain(gate, headers)
  assert.equal(namesOf(findings).at(-1), 'failed wrong', 'by itself it is http')
})

test('a key that Signature-Key names is fetched, and a bare key names no agent', async (t) => {
  const { gate, asked, findings, seen, tell } = await provingGate(t, { rules: [] })
  const headers = async (field: string) => {
    const request = { method: 'GET', url: `https://${HOST}/cart?id=7`, headers: { 'Signature-Key': field } }
    const fields = ['@authority', 'signature-key']
    const wanted = { fields, keyId: null, tag: null, createdS: Math.floor(Date.now() / 1_000) }
    return rawHeadersOf(await signed(signer, request, wanted))
  }
  const { kty, crv, x } = signer.jwk
  const bare = await headers(`sig1=hwk;kty="${kty}";crv="${crv}";x="${x}";alg="Ed25519"`)
  await askPlain(gate, bare)
  assert.deepEqual([namesOf(findings), asked], [['key'], []])
  assert.equal(seen.at(-1)!['x-agent-verified'], undefined)
  const id = 'https://stranger.example'
  const named = await headers(`sig1=jwks_uri;id="${id}";dwk="agent";kid="k1"`)
  await askPlain(gate, named)
  const agentId = `${id}/.well-known/agent`
  assert.deepEqual(asked, [{ kind: 'keys', agentId, thumbprint: 'k1', isListed: false }])
  const jwk = { ...(signer.jwk as Record<string, string>), kid: 'k1', alg: 'Ed25519' }
  tell({ agentId, issuer: id, keys: [jwk], freshUntilMs: 0 })
  await askPlain(gate, named)
  assert.deepEqual(namesOf(findings), ['key', 'unchecked no-key-yet', 'proven'])
  const app = seen.at(-1)!
  assert.deepEqual([app['x-agent-verified'], app['x-agent-identity']], ['web-bot-auth', id])
})

test('an address is asked about once at a time, and where it is known not at all', async (t) => {
  const { prover, asked, tellPlace } = await provingGate(t, { rules: [] })
  assert.equal(prover.of('198.51.100.9', CRAWLER), null)
  assert.equal(prover.of('198.51.100.9', CRAWLER), null)
  assert.deepEqual(asked, [{ kind: 'place', address: '198.51.100.9' }])
  tellPlace('198.51.100.9', 'crawl.example')
  assert.equal(prover.of('198.51.100.9', CRAWLER)?.hosts[0], 'crawl.example')
  for (let i = 0; i < 1_000; i++) prover.of(`198.51.100.9${i}`, CRAWLER)
  assert.ok(asked.length <= 201, `${asked.length}`)
})

interface Answers {
  claim: boolean | null
}

/** A gateway of which the test is who finds out. */
async function provingGate(t: Test, policy: unknown, trusted = AddressSet.parse([])!) {
  const seen: Record<string, string>[] = []
  const bodies: number[] = []
  const app = http.createServer(async (request, response) => {
    seen.push(request.headers as Record<string, string>)
    bodies.push((await text(request)).length)
    response.end('fine')
  })
  app.on('upgrade', (request, socket) => {
    seen.push(request.headers as Record<string, string>)
    socket.on('error', () => {})
    socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => app.closeAllConnections())
  t.teardown(() => app.close())

  const asked: Inquiry[] = []
  const claims: SignatureUse[] = []
  const findings: SignatureFinding[] = []
  const answers: Answers = { claim: true }
  const clock = { nowMs: Date.now() }
  let listener: (finding: InquiryResult) => void = () => undefined
  const prover = new Prover(
    { allowPrivate: false, needsNonce: false, readsSignatureKey: true, isPlaceAsked: true, ...SETTINGS },
    {
      investigator: {
        ask: (inquiry) => void asked.push(inquiry),
        claim: async (use) => {
          claims.push(use)
          return answers.claim
        },
        onFinding: (each) => {
          listener = each
        },
      },
      hosts: new ServedHosts([HOST], { covers: () => false }),
      ...{
        trusted,
        rules: headerRules(),
        clock,
        metrics: { signatureFound: (finding) => void findings.push(finding) },
      },
    },
  )
  t.teardown(() => prover.close())
  prover.use(KNOWLEDGE)
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  const gate = await startGate(t, {
    ...{ policy, knowledge: KNOWLEDGE, context: { prover }, options: { trusted } },
    upstreams: [settingsFor([url])],
  })
  const tell = (changes: Partial<InquiryResult & { kind: 'keys' }> = {}) => {
    const [farMs, keys] = [clock.nowMs + 3_600_000, [signer.jwk as Record<string, string>]]
    const times = { askAgainMs: farMs, freshUntilMs: farMs, untilMs: farMs }
    listener({ kind: 'keys', agentId: ID, keys, why: null, ...NOTHING_PUBLISHED, ...times, ...changes })
  }
  const tellPlace = (address: string, host: string) => {
    const place = { hosts: [host], isHostKnown: true, network: null }
    listener({ kind: 'place', address, place, untilMs: clock.nowMs + 60_000 })
  }
  return { gate, prover, seen, bodies, asked, claims, findings, answers, tell, tellPlace }
}

async function ask(
  gate: Gate,
  protocol: 'h1' | 'h2',
  headers: readonly string[] = signedHeaders(),
  body = '',
): Promise<{ readonly status: number }> {
  if (protocol === 'h1') {
    const peer = await dialTls(gate.secure.port)
    const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
    peer.write(
      `${methodOf(body)} /cart?id=7 HTTP/1.1\r\nHost: ${HOST}\r\n${linesOf(headers)}${length}Connection: close\r\n\r\n`,
    )
    peer.write(body)
    await peer.closed
    return { status: Number(peer.text.split(' ')[1]) }
  }
  const session = dialHttp2(gate)
  const stream = session.request(http2Headers(headers, methodOf(body)), { endStream: body === '' })
  if (body !== '') stream.end(body)
  const [answer] = (await once(stream, 'response')) as [Record<string, string>]
  await text(stream)
  session.close()
  return { status: Number(answer[':status']) }
}

/** Has asked, and can go. */
async function leaver(gate: Gate, protocol: 'h1' | 'h2'): Promise<() => void> {
  if (protocol === 'h1') {
    const peer = await dialTls(gate.secure.port)
    peer.write(`GET /cart?id=7 HTTP/1.1\r\nHost: ${HOST}\r\n${linesOf(signedHeaders())}\r\n`)
    return () => void peer.socket.destroy()
  }
  const session = dialHttp2(gate)
  const stream = session.request(http2Headers(signedHeaders(), 'GET'))
  stream.on('error', () => {})
  return () => {
    stream.close(http2.constants.NGHTTP2_CANCEL)
    session.close()
  }
}

async function askPlain(gate: Gate, headers: readonly string[]): Promise<void> {
  const peer = await dialPlain(gate.plain.port)
  peer.write(`GET /cart?id=7 HTTP/1.1\r\nHost: ${HOST}\r\n${linesOf(headers)}Connection: close\r\n\r\n`)
  await peer.closed
}

function dialHttp2(gate: Gate): http2.ClientHttp2Session {
  return http2
    .connect(`https://127.0.0.1:${gate.secure.port}`, { rejectUnauthorized: false })
    .on('error', () => {})
}

function http2Headers(headers: readonly string[], method: string): http2.OutgoingHttpHeaders {
  const fields = Object.fromEntries(pairsOf(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return { ...fields, ':method': method, ':path': '/cart?id=7', ':authority': HOST }
}

function linesOf(headers: readonly string[]): string {
  return pairsOf(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
}

function pairsOf(headers: readonly string[]): (readonly [string, string])[] {
  return headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!] as const] : []))
}

function signedHeaders(): readonly string[] {
  return made(SCENE).headers
}

function headOf(rawHeaders: readonly string[]) {
  return { method: 'GET', target: '/cart?id=7', version: '11', rawHeaders, hasOddNames: false } as const
}

function methodOf(body: string): string {
  return body === '' ? 'GET' : 'POST'
}

function namesOf(findings: readonly SignatureFinding[]): string[] {
  return findings.map((finding) => ('why' in finding ? `${finding.kind} ${finding.why}` : finding.kind))
}

const SCENE: Scene = {
  agent: { id: ID, ed25519: signer, p256: newSigner(), rsa: newSigner('rsa-pss-sha512') },
  ...{ stranger: newSigner('ed25519'), authority: HOST, nowS: Math.floor(Date.now() / 1_000) },
}
const CRAWLER = { reverseDns: ['.crawl.example'] }
const CONNECTION = { address: '192.0.2.7', isTrusted: false, isTls: true } as Connection

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { detectionResult } from '../../src/manage/api/detect.ts'
import { DocumentServer, TEST_CA } from '../identity/document-server.ts'
import { newSigner, type Signer, signed } from '../identity/signer.ts'
import { type Route, startApp } from './app.ts'
import { type GatehouseOptions, type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'

const ADMIN_KEY = 'an administrator of tests and of nothing else'
const DIRECTORY = '/.well-known/http-message-signatures-directory'
const TYPE = { 'content-type': 'application/http-message-signatures-directory+json' }
/** Of no client that comes here. */
const OTHER_JA4 = 't13d1516h2_8daaf6152771_000000000001'
const SOURCE = { source: 'a test', date: '2026-11-21' }

interface Party {
  readonly signer: Signer
  /** Its URL. */
  readonly agent: string
}

test('each outcome of a signature is told to the app, in events and in what was seen', async (t) => {
  const [ours, theirs, stranger] = await Promise.all([party(t), party(t), party(t)])
  const gate = await gateFor(t, {
    signatures: [
      agentOf('our-bot', { signature_agent: ours.agent }, { user_agent: 'OurBot/' }),
      agentOf(
        'their-bot',
        { signature_agent: theirs.agent },
        { user_agent: 'TheirBot/' },
        { ja4: OTHER_JA4 },
      ),
    ],
  })
  for (const { signer, agent } of [ours, theirs, stranger]) await known(gate, { signer, agent })

  const proven = await visit(gate, ours, 'OurBot/1')
  assert.deepEqual(shown(proven), {
    ...{ verdict: 'agent', name: 'our-bot', confidence: '1.00', verified: 'web-bot-auth' },
    ...{ identity: ours.agent, key: ours.signer.key.thumbprint, conflict: null },
  })
  const signature = proven['x-agent-signature']
  for (const name of ['x-agent-identity', 'x-agent-key', 'x-agent-verified'])
    assert.ok(signature!.includes(`"${name}"`), name)

  assert.deepEqual(shown(await visit(gate, stranger, 'Unknown/1')), {
    ...{ verdict: 'agent', name: null, confidence: '1.00', verified: 'web-bot-auth' },
    ...{ identity: stranger.agent, key: stranger.signer.key.thumbprint, conflict: null },
  })
  const headers = await headersOf(gate, ours, 'OurBot/1')
  const failed = shown(await send(gate, { ...headers, 'signature-agent': `sig1="${theirs.agent}"` }))
  assert.deepEqual(failed, {
    ...{ verdict: 'agent', name: 'our-bot', confidence: failed.confidence, verified: null },
    ...{ identity: null, key: null, conflict: 'signature-failed' },
  })
  const table: readonly (readonly [
    party: Party,
    userAgent: string,
    name: string | null,
    conflict: string,
  ])[] = [
    [ours, 'TheirBot/1', 'our-bot', 'signed-as-another'],
    [stranger, 'OurBot/1', null, 'signed-as-another'],
    [theirs, 'TheirBot/1', 'their-bot', 'signed-with-foreign-fingerprint'],
    [theirs, 'OurBot/1', 'their-bot', 'signed-as-another, signed-with-foreign-fingerprint'],
  ]
  for (const [who, userAgent, name, conflict] of table) {
    const told = shown(await visit(gate, who, userAgent))
    assert.deepEqual([told.name, told.verified, told.conflict], [name, 'web-bot-auth', conflict], userAgent)
  }
  // A client cannot set the headers that only we set.
  const forged = await send(gate, {
    'x-agent-identity': ours.agent,
    'X-Agent_Key': 'k',
    'x-agent-conflict': 'x',
  })
  const { identity, key, conflict } = shown(forged)
  assert.deepEqual([identity, key, conflict], [null, null, null])

  // Of one client each reason is told once.
  const threats = await eventually(async () => {
    const { events } = await api(gate, '/events?types=threat_detected&limit=50')
    return events.length >= 3 ? events.map(({ data }) => data) : null
  })
  const details = new Map<string, string[]>()
  for (const { reason, detail, detection } of threats) {
    const { evidence, conflicts } = detectionResult.parse(detection)
    // In the words of what happened, not of what may.
    if (reason === 'proof_failed') {
      assert.equal(evidence.find(({ kind }) => kind === 'signature-failed')?.detail, detail)
      assert.deepEqual(conflicts, ['signature-failed'])
    }
    details.set(reason, [...(details.get(reason) ?? []), detail])
  }
  assert.deepEqual([...details.keys()].sort(), ['forged_headers', 'proof_contradicted', 'proof_failed'])
  assert.deepEqual(details.get('proof_failed'), [
    `it claims to be signed by ${theirs.agent}, but the signature is invalid: the agent has no key with this thumbprint`,
  ])
  const { detection } = await api(gate, '/stats?window=1h')
  assert.equal(detection.verified_by['web-bot-auth'], detection.verified)
  assert.ok(detection.verified >= 6)
})

test('a proof from a foreign address is reported, and ready-made policies allow known signers', async (t) => {
  const [ours, stranger] = await Promise.all([party(t), party(t)])
  const ranges = { ...SOURCE, date: new Date().toISOString().slice(0, 10), prefixes: ['203.0.113.0/24'] }
  const signatures = [
    agentOf('our-bot', { signature_agent: ours.agent, ranges }, { user_agent: 'OurBot/' }),
    agentOf('plain-bot', { ranges }, { user_agent: 'PlainBot/' }),
  ]
  for (const [policy, statuses] of Object.entries({
    'observe.yaml': [200, 200, 200, 200, 200, 200],
    'allow-verified-only.yaml': [200, 200, 403, 403, 403, 200],
    'block-unverified-crawlers.yaml': [200, 200, 200, 503, 503, 200],
    'block-impostors.yaml': [200, 200, 200, 403, 503, 200],
  })) {
    const argv = ['--policy', join(process.cwd(), 'config', policy)]
    const gate = await gateFor(t, { signatures, argv, settings: ['trusted_proxies: [127.0.0.1]'] })
    for (const each of [ours, stranger]) await known(gate, each, '/feed')
    const visits: readonly (readonly [Party | null, userAgent: string, address: string])[] = [
      [ours, 'OurBot/1', '203.0.113.7'],
      [ours, 'OurBot/1', '198.51.100.7'],
      [stranger, 'Unknown/1', '198.51.100.7'],
      [stranger, 'OurBot/1', '198.51.100.7'],
      [null, 'PlainBot/1', '198.51.100.7'],
      // Its vendor has begun to sign, with an unknown directory.
      [stranger, 'PlainBot/1', '203.0.113.7'],
    ]
    const told: Headers[] = []
    for (const [who, userAgent, address] of visits) told.push(await visit(gate, who, userAgent, '/', address))
    assert.deepEqual(
      told.map(({ status }) => Number(status)),
      statuses,
      policy,
    )
    if (policy === 'observe.yaml')
      assert.deepEqual(
        told.map(shown).map(({ name, verified, conflict }) => [name, verified, conflict]),
        [
          ['our-bot', 'web-bot-auth', null],
          ['our-bot', 'web-bot-auth', 'signed-from-foreign-address'],
          [null, 'web-bot-auth', null],
          [null, 'web-bot-auth', 'signed-as-another, address-foreign'],
          ['plain-bot', null, 'address-foreign'],
          ['plain-bot', 'ip-range', null],
        ],
      )
    await gate.stop()
  }
})

interface ApiAnswer {
  readonly events: readonly { readonly data: Threat }[]
  readonly detection: { readonly verified: number; readonly verified_by: Readonly<Record<string, number>> }
}

interface Threat {
  readonly reason: string
  readonly detail: string
  readonly detection: unknown
}

type Headers = Readonly<Record<string, string>>

/** A signer with a key and its directory. */
async function party(t: Test): Promise<Party> {
  const signer = newSigner('ed25519')
  const server = await DocumentServer.start(t)
  server.serveJson(DIRECTORY, { keys: [signer.jwk] }, TYPE)
  return { signer, agent: `https://localhost:${server.port}` }
}

function agentOf(id: string, verification: object, ...patterns: readonly object[]) {
  const signatures = patterns.map((each) => ({ ...each, ...SOURCE }))
  return { id, name: id, kind: 'agent', category: 'crawler', verification, signatures }
}

async function gateFor(
  t: Test,
  { signatures, ...options }: GatehouseOptions & { readonly signatures: readonly object[] },
): Promise<RunningGatehouse> {
  const who: Route = ({ headers }, response) => void response.end(JSON.stringify(headers))
  const app = await startApp(t, { '/': who, '/feed': who })
  const folder = temporaryFolder(t)
  const [ca, own] = ['ca.crt', 'own.json'].map((name) => join(folder, name))
  writeFileSync(ca!, TEST_CA)
  writeFileSync(own!, JSON.stringify(signatures))
  return startGatehouse(t, {
    ...{ command: 'up', upstream: app.url, ...options },
    argv: ['--workers', '1', ...(options.argv ?? [])],
    variables: {
      ...{ NODE_EXTRA_CA_CERTS: ca, GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true' },
      ...{ GATEHOUSE_ADMIN_KEY: ADMIN_KEY, GATEHOUSE_SIGNATURES: own },
      GATEHOUSE_PROXY_SIGNATURE_KEY: 'a key of tests and of nothing else at all',
    },
  })
}

async function headersOf(gate: RunningGatehouse, { signer, agent }: Party, userAgent: string, path = '/') {
  const createdS = Math.floor(Date.now() / 1_000)
  const headers = {
    host: `localhost:${gate.port}`,
    'user-agent': userAgent,
    'signature-agent': `sig1="${agent}"`,
  }
  const fields = ['@authority', 'signature-agent;key="sig1"']
  const times = { createdS, expiresS: createdS + 300, nonce: randomUUID() }
  const toSign = { method: 'GET', url: gate.url + path, headers }
  return signed(signer, toSign, { fields, tag: 'web-bot-auth', ...times })
}

/** What the app was told, and the status. */
async function send(
  gate: RunningGatehouse,
  headers: Record<string, string | string[]>,
  path = '/',
): Promise<Headers> {
  const { promise, resolve, reject } = Promise.withResolvers<Headers>()
  const agent = new Agent({ keepAlive: false, ca: gate.ca })
  request(gate.url + path, { headers, agent }, (response) => {
    const { statusCode } = response
    const tell = (body: string) =>
      resolve({ ...(statusCode === 200 ? JSON.parse(body) : {}), status: String(statusCode) })
    text(response).then(tell, reject)
  })
    .on('error', reject)
    .end()
  return promise
}

async function visit(
  gate: RunningGatehouse,
  who: Party | null,
  userAgent: string,
  path = '/',
  address: string | null = null,
): Promise<Headers> {
  const headers = who === null ? { 'user-agent': userAgent } : await headersOf(gate, who, userAgent, path)
  return send(gate, { ...headers, ...(address !== null && { 'x-forwarded-for': address }) }, path)
}

/** Until its key is there. */
async function known(gate: RunningGatehouse, who: Party, path = '/'): Promise<void> {
  while (shown(await visit(gate, who, 'Unknown/0', path)).verified !== 'web-bot-auth') await wait(50)
}

function shown(told: Headers) {
  const of = (name: string) => told[`x-agent-${name}`] ?? null
  return {
    ...{ verdict: of('verdict'), name: of('name'), confidence: of('confidence'), verified: of('verified') },
    ...{ identity: of('identity'), key: of('key'), conflict: of('conflict') },
  }
}

async function api({ manage }: RunningGatehouse, path: string) {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, accept: 'application/json' }
  return (await fetch(`${manage}/v1${path}`, { headers })).json() as Promise<ApiAnswer>
}

async function eventually<Value>(look: () => Promise<Value | null>): Promise<Value> {
  for (;;) {
    const found = await look()
    if (found !== null) return found
    await wait(50)
  }
}

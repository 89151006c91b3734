import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { type DirectorySettings, KeyDirectories } from '../../src/identity/verify/key-directories.ts'
import { directoryHeaders } from './directory-headers.ts'
import { type Answer, DocumentServer, HERE, TEST_CA } from './document-server.ts'
import { newSigner, type Signer } from './signer.ts'
import { contentDigestOf } from '../../src/identity/keys/request-signer.ts'
import { cardWith, NOTHING_PUBLISHED } from './published.ts'
import { until } from '../until.ts'
import { rangesIn } from '../../src/identity/address/ranges-document.ts'

const DIRECTORY = '/.well-known/http-message-signatures-directory'
const TYPE = { 'content-type': 'application/http-message-signatures-directory+json' }
const START_MS = 1_795_000_000_000
const [one, two, three] = [newSigner('ed25519'), newSigner(), newSigner('ed25519')]

test('the keys of an agent come from where they are, and those that are for tokens only stay there', async (t) => {
  const { server, agentId, find } = await started(t)
  const forTokens = { ...newSigner('rsa-pss-sha512').jwk, alg: 'RS256' }
  server.serveJson(DIRECTORY, { keys: [one.jwk, { ...two.jwk, kid: 'two', exp: 4e9 }, forTokens] }, TYPE)
  const found = await find({ thumbprint: one.key.thumbprint })
  assert.deepEqual(found, {
    ...{ kind: 'keys', agentId, why: null, ...NOTHING_PUBLISHED },
    keys: [one.jwk, { ...two.jwk, kid: 'two', exp: 4e9 }],
    askAgainMs: START_MS + 10_000,
    freshUntilMs: START_MS + 300_000,
    untilMs: START_MS + 300_000 + 3_600_000,
  })
  assert.match(server.asked[0]!.headers.accept!, /^application\/http-message-signatures-directory\+json/)
  server.serveJson('/me.json', { client_id: server.url('/me.json'), jwks: { keys: [two.jwk] } })
  assert.deepEqual((await find({ agentId: server.url('/me.json') }))?.keys, [two.jwk])
})

test('fetches the keys of every agent, of listed ones, or of none', async (t) => {
  const asked = async (mode: DirectorySettings['mode'], isListed: boolean, isSet: boolean) => {
    const server = await DocumentServer.start(t)
    server.serveJson(DIRECTORY, { keys: [one.jwk] })
    const agentId = new URL(server.url('/')).origin
    const agents = new Set(isSet ? [agentId] : [])
    const directories = new KeyDirectories({ ...SETTINGS, mode, agents, nowMs: () => START_MS })
    const found = await directories.find({ kind: 'keys', agentId, thumbprint: null, isListed })
    assert.equal(found?.why, server.asked.length === 0 ? 'not-listed' : null)
    return server.asked.length
  }
  const all = [
    ['discover', 1, 1, 1],
    ['listed', 0, 1, 1],
    ['off', 0, 0, 0],
  ] as const
  for (const [mode, ...expected] of all)
    assert.deepEqual(
      [await asked(mode, false, false), await asked(mode, true, false), await asked(mode, false, true)],
      expected,
      mode,
    )
})

const keySet = (count: number) => ({ keys: Array.from({ length: count }, () => newSigner('ed25519').jwk) })
const text = (body: string, headers: Record<string, string> = TYPE): Answer => {
  return (_, response) => response.writeHead(200, headers).end(body)
}
const good = JSON.stringify({ keys: [one.jwk] })
const { d: _, ...hidden } = one.privateKey.export({ format: 'jwk' })
const BAD: readonly (readonly [title: string, answer: Answer, isKept: boolean])[] = [
  ['that redirects', (_, r) => r.writeHead(302, { location: '/other' }).end(), true],
  ['of 70 KiB', text(JSON.stringify({ keys: [one.jwk], more: 'x'.repeat(70 * 1_024) })), true],
  ['of 33 keys', text(JSON.stringify(keySet(33))), false],
  ['of no keys', text('{"keys":[]}'), false],
  ['of keys for something else', text(JSON.stringify({ keys: [{ ...one.jwk, use: 'enc' }] })), false],
  ['with a private key in it', text(JSON.stringify({ keys: [{ ...hidden, d: 'AA' }] })), false],
  ['with a shared secret in it', text('{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}'), false],
  ['with a key twice', text(JSON.stringify({ keys: [one.jwk, one.jwk] })), false],
  ['that is malformed', text('{"keys":['), true],
  ['that is a list', text('[]'), false],
  ['of another type', text(good, { 'content-type': 'text/html' }), true],
  [
    'with keys in it and elsewhere',
    ({ headers: { host } }, r) => {
      const document = {
        client_id: `https://${host}`,
        jwks_uri: `https://${host}/other`,
        jwks: { keys: [one.jwk] },
      }
      return r.writeHead(200, TYPE).end(JSON.stringify(document))
    },
    false,
  ],
  ['that never ends', (_, r) => void r.writeHead(200, TYPE).write('{'), true],
  ['that is gone', (_, r) => r.writeHead(410).end(), false],
  ['that fails', (_, r) => r.writeHead(500).end(), true],
  ['that hangs up', (request) => request.socket.destroy(), true],
]

for (const [title, answer, isKept] of BAD)
  test(`a directory ${title} is invalid, and ${isKept ? 'the one before is kept for an hour' : 'ends the one before'}`, async (t) => {
    const { server, clock, find } = await started(t, { timeoutMs: 500 })
    server.serve(DIRECTORY, answer)
    server.serveJson('/other', { keys: [one.jwk] })
    const none = await find()
    assert.deepEqual([none?.keys, none?.why], [[], 'no-directory'])
    assert.deepEqual([none?.askAgainMs, none?.untilMs], [START_MS + 10_000, START_MS + 10_000])
    assert.deepEqual(
      server.asked.map(({ url }) => url),
      [DIRECTORY],
    )

    clock.nowMs += 10_000
    server.serveJson(DIRECTORY, { keys: [one.jwk] })
    assert.equal((await find())?.keys.length, 1)
    server.serve(DIRECTORY, answer)
    clock.nowMs += 300_000
    const kept = await find()
    assert.deepEqual([kept?.keys.length, kept?.why], [isKept ? 1 : 0, 'no-directory'])
    clock.nowMs += 3_600_000
    assert.equal((await find())?.keys.length, 0)
  })

test('the keys of a card are those of the key set that it names', async (t) => {
  const { server, clock, find } = await started(t)
  const [agentId, keys] = [server.url('/bot'), server.url('/keys', 'keys.example.test')]
  server.serveJson('/bot', {
    client_id: agentId,
    client_name: 'Bot',
    jwks_uri: keys,
    web_bot_auth: { purpose: 'search' },
  })
  server.serveJson('/keys', { keys: [one.jwk] })
  const found = await find({ agentId })
  assert.deepEqual(found?.keys, [one.jwk])
  assert.deepEqual([found.card?.name, found.card?.purposes, found.card?.url], ['Bot', ['search'], agentId])
  assert.deepEqual(
    server.asked.map(({ url }) => url),
    ['/bot', '/keys'],
  )
  // A key that is missing is looked for in the key set alone.
  server.serveJson('/keys', { keys: [one.jwk, two.jwk] })
  clock.nowMs += 10_000
  assert.equal((await find({ agentId, thumbprint: two.key.thumbprint }))?.keys.length, 2)
  assert.deepEqual(
    server.asked.map(({ url }) => url),
    ['/bot', '/keys', '/keys'],
  )
  server.serve('/keys', (_, response) => response.writeHead(500).end())
  clock.nowMs += 300_000
  const away = await find({ agentId })
  assert.deepEqual([away?.keys.length, away?.why, away?.card?.name], [2, 'no-directory', 'Bot'])
})

test('a key set of a card that is signed has only the keys that signed it', async (t) => {
  const { server, find } = await started(t)
  const agentId = server.url('/bot')
  server.serveJson('/bot', { client_id: agentId, jwks_uri: server.url('/keys') })
  const body = JSON.stringify({ keys: [one.jwk, three.jwk] })
  const headers = await directoryHeaders([one], { host: new URL(agentId).host, createdS: START_MS / 1000 })
  server.serve('/keys', (_, response) => response.writeHead(200, { ...TYPE, ...headers }).end(body))
  const found = await find({ agentId })
  assert.deepEqual(found?.keys, [one.jwk])
})

test('a card without keys in it need not have a signature and one with keys is signed as a whole', async (t) => {
  const { server, find } = await started(t)
  const agentId = server.url('/bot')
  const body = JSON.stringify({ client_id: agentId, client_name: 'Bot', jwks: { keys: [one.jwk] } })
  const wanted = { host: new URL(agentId).host, createdS: START_MS / 1000 }
  const digest = { 'content-digest': contentDigestOf(body) }
  const serve = async (fields: readonly string[]) => {
    const headers = await directoryHeaders([one], { ...wanted, headers: digest, fields })
    server.serve('/bot', (_, response) => response.writeHead(200, { ...TYPE, ...headers }).end(body))
  }
  await serve(['@authority;req'])
  assert.deepEqual((await find({ agentId }))?.why, 'no-directory')
  await serve(['@authority;req', 'content-digest'])
  const whole = await started(t, {}, server)
  assert.deepEqual((await whole.find({ agentId }))?.keys, [one.jwk])
})

test('the ranges of a card are fetched for known agents and do not delay the keys', async (t) => {
  const { server, clock, find } = await started(t)
  const ranges = ['192.0.2.0/24', '2001:db8::/32']
  const prefixes = { prefixes: [{ ipv4Prefix: ranges[0] }, { ipv6Prefix: ranges[1] }] }
  const card = { web_bot_auth: { ips_uri: server.url('/ips.json') } }
  server.serveJson(DIRECTORY, { keys: [one.jwk], ...card })
  let answer: () => void = () => undefined
  server.serve('/ips.json', (_, response) => {
    answer = () =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(prefixes))
  })
  assert.equal((await find())?.ranges, null)
  assert.equal(server.asked.length, 1, 'not for strangers')
  const early = await find({ isListed: true })
  assert.deepEqual([early?.keys, early?.ranges, early?.freshUntilMs], [[one.jwk], null, START_MS + 10_000])
  answer()
  await until(async () => (await find({ isListed: true }))?.ranges !== null)
  const found = await find({ isListed: true })
  assert.deepEqual([found?.ranges, found?.freshUntilMs], [ranges, START_MS + 300_000])
  for (const wrong of [
    { prefixes: [{ ipv4Prefix: 'everywhere' }] },
    {},
    { prefixes: Array(2_001).fill('192.0.2.1') },
  ]) {
    server.serveJson('/ips.json', wrong)
    clock.nowMs += 400_000
    assert.equal((await find({ isListed: true }))?.ranges, null)
  }
})

test('the card of a registry counts for an agent without one of its own and makes it a known agent', async (t) => {
  const listed = {
    registries: ['https://registry.example/a.txt'],
    card: cardWith({ name: 'Of the registry' }),
  }
  const registries = { of: () => listed, close: () => undefined }
  const { server, find } = await started(t, { registries, mode: 'listed' })
  server.serveJson(DIRECTORY, { keys: [one.jwk] })
  const found = await find()
  assert.deepEqual([found?.keys, found?.card, found?.registries], [[one.jwk], listed.card, listed.registries])
  server.serveJson('/me', {
    client_id: server.url('/me'),
    client_name: 'Of its own',
    jwks: { keys: [one.jwk] },
  })
  assert.equal((await find({ agentId: server.url('/me') }))?.card?.name, 'Of its own')
})

test('33 keys are too many, 32 are not', async (t) => {
  const { server, find } = await started(t)
  server.serveJson(DIRECTORY, keySet(32))
  assert.equal((await find())?.keys.length, 32)
})

test('a key that is missing makes it be fetched anew, every ten seconds at most; one that was taken out is gone', async (t) => {
  const { server, clock, find } = await started(t)
  server.serveJson(DIRECTORY, { keys: [one.jwk] })
  await find({ thumbprint: one.key.thumbprint })
  server.serveJson(DIRECTORY, { keys: [two.jwk] })
  clock.nowMs += 9_999
  const early = await find({ thumbprint: two.key.thumbprint })
  assert.deepEqual([early?.keys, early?.askAgainMs], [[one.jwk], START_MS + 10_000])
  clock.nowMs += 1
  const late = await find({ thumbprint: two.key.thumbprint })
  assert.deepEqual([late?.keys, late?.askAgainMs], [[two.jwk], START_MS + 20_000])
  for (let i = 0; i < 50; i++) await find({ thumbprint: `unknown ${i}` })
  assert.equal(server.asked.length, 2)
})

test('what was had a while ago may be asked for again at once by who misses something', async (t) => {
  const { server, clock, find } = await started(t)
  server.serveJson(DIRECTORY, { keys: [one.jwk] })
  await find()
  clock.nowMs += 60_000
  const remembered = await find()
  assert.ok(remembered!.askAgainMs < clock.nowMs)
  assert.equal(server.asked.length, 1)
})

test('only prefetches back off from a server that is down', async (t) => {
  const { server, clock, find } = await started(t)
  server.serve(DIRECTORY, (_, response) => response.writeHead(503).end())
  const beforehand = async () => (await find({ thumbprint: null, isListed: true }))?.why
  const asked: number[] = []
  for (; clock.nowMs < START_MS + 3_600_000; clock.nowMs += 15_000) {
    const before = server.asked.length
    await beforehand()
    if (server.asked.length > before) asked.push((clock.nowMs - START_MS) / 1_000)
  }
  const pauses = asked.slice(1).map((second, index) => second - asked[index]!)
  assert.ok(pauses.length >= 8 && pauses.length <= 13, pauses.join())
  assert.deepEqual(
    pauses.map((pauseS, index) => pauseS >= Math.min(600, 30 * 2 ** index) * 0.75 && pauseS <= 615),
    pauses.map(() => true),
  )
  const { length } = server.asked
  assert.equal((await find({ isListed: true }))?.why, 'no-directory')
  assert.equal(server.asked.length, length + 1, 'a request was signed')
  server.serveJson(DIRECTORY, { keys: [one.jwk] })
  clock.nowMs += 10_000
  assert.equal((await find({ isListed: true }))?.why, null)
  clock.nowMs += 300_000
  assert.equal(await beforehand(), null, 'it is up again')
})

test('a directory that is signed counts for as long as that, with the keys that have signed it', async (t) => {
  const { server, clock, host, find } = await started(t)
  const serve = async (signers: readonly Signer[], more: { expiresS?: number; host?: string } = {}) => {
    const headers = await directoryHeaders(signers, { host, createdS: clock.nowMs / 1_000, ...more })
    server.serveJson(DIRECTORY, { keys: [one.jwk, two.jwk] }, { ...TYPE, ...headers })
  }
  await serve([one], { expiresS: START_MS / 1_000 + 240 })
  const found = await find()
  assert.deepEqual(found?.keys, [one.jwk])
  assert.equal(found?.untilMs, START_MS + 300_000, 'with the minute by which clocks may differ')
  assert.equal(found?.freshUntilMs, START_MS + 180_000, 'two minutes before, to have it anew')

  server.serve(DIRECTORY, (request) => request.socket.destroy())
  clock.nowMs = START_MS + 299_999
  assert.deepEqual((await find())?.keys, [one.jwk])
  clock.nowMs = START_MS + 310_000
  assert.deepEqual((await find())?.keys, [], 'nothing keeps it longer than that')

  clock.nowMs += 10_000
  await serve([one, two])
  assert.deepEqual((await find())?.keys, [one.jwk, two.jwk])
  for (const bad of [
    () => serve([three]),
    () => serve([one], { host: 'other.example' }),
    () => serve([one], { expiresS: clock.nowMs / 1_000 - 61 }),
  ]) {
    clock.nowMs += 400_000
    await bad()
    const none = await find()
    assert.deepEqual([none?.keys, none?.why], [[], 'no-directory'])
  }
})

test('no private address is asked, however its name is written', async (t) => {
  const server = await DocumentServer.start(t)
  server.serveJson(DIRECTORY, { keys: [one.jwk] })
  const directories = new KeyDirectories({ ...SETTINGS, allowPrivate: false, nowMs: () => START_MS })
  for (const host of [
    'agent.example.test',
    'localhost',
    '127.0.0.1',
    '[::1]',
    '169.254.169.254',
    '10.0.0.1',
  ]) {
    const agentId = `https://${host}:${server.port}`
    const found = await directories.find({ kind: 'keys', agentId, thumbprint: null, isListed: false })
    assert.deepEqual([found?.keys, found?.why], [[], 'no-directory'], host)
  }
  assert.equal(server.asked.length, 0)
})

test('a flood of invented agents is fetched for within a limit, and those that are listed are had all the same', async (t) => {
  const { server, clock, find, directories } = await started(t)
  server.serve('*', (_, response) => response.writeHead(404).end())
  server.serveJson('/known.json', { client_id: server.url('/known.json'), jwks: { keys: [two.jwk] } })
  const stranger = (number: number) => find({ agentId: `https://agent${number}.example.test:${server.port}` })
  let none = 0
  for (let number = 0; number < 400; number++) if ((await stranger(number)) === null) none++
  assert.deepEqual([none, server.asked.length], [100, 300])
  for (let number = 0; number < 300; number++) assert.equal((await stranger(number))?.why, 'no-directory')
  assert.equal(server.asked.length, 300, 'the results are remembered')
  const agentId = server.url('/known.json')
  const found = await directories.find({ kind: 'keys', agentId, thumbprint: null, isListed: true })
  assert.deepEqual(found?.keys, [two.jwk])
  clock.nowMs += 60_000
  assert.equal((await stranger(400))?.why, 'no-directory', 'the next minute')
})

test('an unavailable directory is reported in one debug line', async (t) => {
  const lines: string[] = []
  const write = (line: string) => void lines.push(line)
  const { find: quietly } = await started(t, { log: createLogTo('info', { write }) })
  await quietly()
  assert.deepEqual(lines, [])
  const { agentId, find } = await started(t, { log: createLogTo('debug', { write }) })
  await find()
  const [{ level, message, agent, why }, another] = lines.map((line) => JSON.parse(line))
  assert.deepEqual([level, message, agent], ['debug', 'the keys of an agent are unavailable', agentId])
  assert.equal(why, `${agentId}${DIRECTORY}: it answers 404`)
  assert.equal(another, undefined)
})

test('what is under way is given up at the end', async (t) => {
  const { server, find, directories } = await started(t)
  const asked = Promise.withResolvers<void>()
  server.serve(DIRECTORY, () => asked.resolve())
  const finding = find()
  await asked.promise
  directories.close()
  assert.deepEqual((await finding)?.keys, [])
})

async function started(t: Test, more: Partial<DirectorySettings> = {}, given: DocumentServer | null = null) {
  const server = given ?? (await DocumentServer.start(t))
  const clock = { nowMs: START_MS }
  const directories = new KeyDirectories({ ...SETTINGS, nowMs: () => clock.nowMs, ...more })
  const { origin: agentId, host } = new URL(server.url('/'))
  const usual = { kind: 'keys', agentId, thumbprint: one.key.thumbprint, isListed: false } as const
  const find = (changes: Partial<Parameters<KeyDirectories['find']>[0]> = {}) =>
    directories.find({ ...usual, ...changes })
  return { server, clock, directories, agentId, host, find }
}

const SETTINGS = {
  registries: { of: () => ({ registries: [] as readonly string[], card: null }), close: () => undefined },
  rangesIn,
  ...({ mode: 'discover', agents: new Set<string>(), allowPrivate: true } as const),
  ...{ ca: TEST_CA, lookup: HERE, log: createLogTo('silent', { write: () => undefined }) },
}

import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { Registries, type RegistrySettings } from '../../src/identity/cards/registries.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { until } from '../until.ts'
import { type Answer, DocumentServer, HERE, TEST_CA } from './document-server.ts'

const DIRECTORY = '/.well-known/http-message-signatures-directory'
const START_MS = 1_795_000_000_000

test('an agent of a registry is listed, with its card', async (t) => {
  const { server, registries, url, listing } = await started(t)
  const [one, two] = [server.url('', 'one.example.test'), server.url('', 'two.example.test')]
  server.serve('/agents.txt', text(`${one}${DIRECTORY}\n${two}/bot\n`))
  server.serveJson(DIRECTORY, { client_name: 'One', purpose: 'search', keys: [] })
  const card = { client_id: `${two}/bot`, client_name: 'Two', jwks_uri: `${two}${DIRECTORY}` }
  server.serveJson('/bot', { ...card, web_bot_auth: { trigger: 'crawler' } })
  assert.deepEqual(listing(one), [[], null])
  await registries.refresh()
  assert.deepEqual(listing(one), [[url], 'One'])
  assert.deepEqual(listing(`${two}/bot`), [[url], 'Two'])
  // The card and its keys have one origin, so it also describes the signer that is this origin.
  assert.deepEqual(listing(two), [[url], 'Two'])
  assert.deepEqual(listing('https://three.example.test'), [[], null])
})

test('a card speaks for no origin but its own and not from another place', async (t) => {
  const { server, registries, listing } = await started(t)
  const [evil, good] = [server.url('', 'evil.example.test'), server.url('', 'good.example.test')]
  server.serve('/agents.txt', text(`${evil}/bot\n${evil}/copy\n`))
  server.serveJson('/bot', { client_name: 'Evil', jwks_uri: `${good}${DIRECTORY}` })
  server.serveJson('/copy', { client_id: `${good}/bot`, client_name: 'Copy' })
  await registries.refresh()
  assert.deepEqual(listing(good), [[], null])
  assert.deepEqual(listing(`${good}/bot`), [[], null])
  assert.equal(listing(`${evil}/bot`)[1], 'Evil')
  assert.equal(listing(`${evil}/copy`)[1], null)
})

test('invalid cards are named in the log once and their agents stay listed', async (t) => {
  const { server, registries, url, listing, lines, clock } = await started(t)
  const one = server.url('', 'one.example.test')
  server.serve('/agents.txt', text(`${one}/list\n${one}/gone\nnonsense\n${one}/both\n`))
  server.serveJson('/list', [])
  server.serveJson('/both', { client_name: 'x', jwks: {}, jwks_uri: `${one}/keys` })
  await registries.refresh()
  const warning = lines.find((line) => line.includes('invalid cards'))
  for (const part of [
    'line 3: it must be a URL',
    '/list: it is not an object',
    '/gone: it answers 404',
    '/both: ',
  ])
    assert.ok(warning?.includes(part), part)
  assert.deepEqual(listing(`${one}/list`), [[url], null])
  clock.nowMs += 3_600_000
  await registries.refresh()
  assert.equal(lines.filter((line) => line.includes('invalid cards')).length, 1)
})

test('the last good list counts for a day if the registry is away and not if it is invalid', async (t) => {
  const { server, registries, url, listing, lines, clock } = await started(t)
  const agent = 'https://agent.test'
  const inline = `data:application/json,{"client_id":"${agent}/bot","client_name":"In"}`
  server.serve('/agents.txt', text(inline))
  await registries.refresh()
  assert.deepEqual(listing(`${agent}/bot`), [[url], 'In'])
  server.serve('/agents.txt', (_, response) => response.writeHead(503).end())
  clock.nowMs += 8 * 3_600_000
  await registries.refresh()
  await registries.refresh()
  assert.deepEqual(listing(`${agent}/bot`), [[url], 'In'])
  assert.equal(lines.filter((line) => line.includes('is unavailable')).length, 1)
  clock.nowMs += 17 * 3_600_000
  await registries.refresh()
  assert.deepEqual(listing(`${agent}/bot`), [[], null])
  server.serve('/agents.txt', text(inline))
  clock.nowMs += 20_000
  await registries.refresh()
  assert.deepEqual(listing(`${agent}/bot`), [[url], 'In'])
  server.serve('/agents.txt', text('# closed'))
  clock.nowMs += 3_600_000
  await registries.refresh()
  assert.deepEqual(listing(`${agent}/bot`), [[], null])
})

const BAD: readonly (readonly [title: string, answer: Answer])[] = [
  ['redirects', (_, response) => response.writeHead(302, { location: '/other.txt' }).end()],
  [
    'is HTML',
    (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('https://a.test'),
  ],
  ['is of 70 KiB', (_, response) => response.writeHead(200, TEXT).end('https://a.test\n'.repeat(4_700))],
  ['is not UTF-8', (_, response) => response.writeHead(200, TEXT).end(Buffer.from([0xff, 0xfe, 0x80]))],
  ['never ends', (_, response) => void response.writeHead(200, TEXT).write('https://a.test\n')],
  ['hangs up', (request) => request.socket.destroy()],
]
for (const [title, answer] of BAD)
  test(`a registry that ${title} lists nothing and is named`, async (t) => {
    const { server, registries, url, listing, lines } = await started(t, { timeoutMs: 250 })
    server.serve('/agents.txt', answer)
    server.serve('/other.txt', text('https://a.test'))
    await registries.refresh()
    assert.deepEqual(listing('https://a.test'), [[], null])
    assert.ok(lines.some((line) => line.includes('is unavailable') && line.includes(url)))
    assert.equal(server.asked.length, 1)
  })

test('private addresses are not fetched', async (t) => {
  const { server, registries, lines } = await started(t, { allowPrivate: false })
  server.serve('/agents.txt', text('https://a.test'))
  await registries.refresh()
  assert.equal(server.asked.length, 0)
  assert.ok(lines.some((line) => line.includes('is not on the public internet')))
})

test('fetching starts by itself and ends with the process', async (t) => {
  const { server, registries, listing } = await started(t)
  server.serve(
    '/agents.txt',
    text('data:application/json,{"client_id":"https://a.test/b","name":"x","client_name":"A"}'),
  )
  registries.start()
  await until(() => listing('https://a.test/b')[1] === 'A')
  registries.close()
})

const TEXT = { 'content-type': 'text/plain; charset=utf-8' }

function text(body: string): Answer {
  return (_, response) => response.writeHead(200, TEXT).end(body)
}

async function started(t: Test, more: Partial<RegistrySettings> = {}) {
  const server = await DocumentServer.start(t)
  const url = server.url('/agents.txt', 'registry.example.test')
  const clock = { nowMs: START_MS }
  const lines: string[] = []
  const log = createLogTo('info', { write: (line: string) => void lines.push(line) })
  const registries = new Registries({
    ...{ urls: [url], log, allowPrivate: true, ca: TEST_CA, lookup: HERE, nowMs: () => clock.nowMs },
    ...more,
  })
  t.teardown(() => registries.close())
  const listing = (agentId: string) => {
    const { registries: urls, card } = registries.of(agentId)
    return [urls, card?.name ?? null] as const
  }
  return { server, registries, url, listing, lines, clock }
}

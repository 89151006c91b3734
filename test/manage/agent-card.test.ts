import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { SignatureAgentCards } from '../../src/manage/judging/signature-agent-cards.ts'
import { DocumentServer, HERE, TEST_CA } from '../identity/document-server.ts'
import { TestManagement } from './management.ts'

const DIRECTORY = '/.well-known/http-message-signatures-directory'

test('the card of an agent is fetched from its key directory and kept for some minutes', async (t) => {
  const { server, cards, origin } = await agent(t)
  server.serveJson(DIRECTORY, { client_name: 'Bot', keys: [], purpose: 'search', trigger: 'crawler' })
  const found = await cards.find(origin)
  assert.deepEqual(
    [found.url, found.why, found.card?.name, found.card?.purposes, found.card?.trigger],
    [`${origin}${DIRECTORY}`, null, 'Bot', ['search'], 'crawler'],
  )
  await cards.find(origin)
  assert.equal(server.asked.length, 1)
})

test('an agent without a card: the answer says why', async (t) => {
  const { server, cards, origin } = await agent(t)
  assert.match((await cards.find(origin)).why!, /it answers 404$/)
  assert.deepEqual(await cards.find(null), {
    ...{ url: null, card: null, why: 'no key directory of this agent is known' },
  })
  server.serveJson('/keys', { keys: [] })
  assert.match((await cards.find(`${origin}/keys`)).why!, /has only keys$/)
  const guarded = new SignatureAgentCards({ ...SETTINGS, allowPrivate: false }, true)
  assert.match((await guarded.find(origin)).why!, /is not on the public internet$/)
  const off = new SignatureAgentCards(SETTINGS, false)
  assert.match((await off.find(origin)).why!, /^identity\.signatures is off$/)
  assert.equal(server.asked.length, 2)
})

test('the API shows the card of an agent, and callers choose no URL', async (t) => {
  const manage = await TestManagement.start(t, { fetchesCards: false })
  await manage.fillCatalogue()
  const { body } = await manage.ask('GET', '/v1/agents/chatgpt-agent/card')
  assert.deepEqual(body, {
    ...{ agent_id: 'chatgpt-agent', url: `https://chatgpt.com${DIRECTORY}`, card: null },
    why: 'identity.signatures is off',
  })
  assert.equal((await manage.ask('GET', '/v1/agents/gptbot/card')).body.url, null)
  for (const id of ['none', encodeURIComponent('https://127.0.0.1/')])
    assert.equal((await manage.ask('GET', `/v1/agents/${id}/card`)).status, 404)
})

const SETTINGS = { allowPrivate: true, ca: TEST_CA, lookup: HERE, nowMs: Date.now }

async function agent(t: Test) {
  const server = await DocumentServer.start(t)
  const cards = new SignatureAgentCards(SETTINGS, true)
  t.teardown(() => cards.close())
  return { server, cards, origin: server.url('') }
}

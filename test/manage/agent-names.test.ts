import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { SoftwareNames } from '../../src/classify/known/software-names.ts'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { wants } from '../../src/manage/events/webhooks/event-filter.ts'
import { Store } from '../../src/store/store.ts'
import { seen } from '../contract/seen.ts'
import { addEvents, EventReader, newEvent } from './event-reader.ts'
import { TestManagement } from './management.ts'
import { modern, sent } from './mcp-client.ts'

const SDK = 'openai-sdk-python'
const NAMES = [SDK, 'openai-python', 'OpenAI-Python', 'synthetic-openai-python']
const ANY = { 'if-match': '*' }

test('a policy names agents by alias, and unknown ones are warned of wherever it is answered', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const policy = {
    rules: [
      { name: 'sdk', when: { agent: 'openai-python' }, action: 'block' },
      { name: 'typo', when: { not: { software: ['chrome', 'crul'] } }, action: 'tag' },
    ],
  }
  const warnings = [
    {
      pointer: '/rules/1/when/not/software/1',
      detail: 'rule "typo": unknown software "crul" (did you mean "curl"?)',
    },
  ]
  const put = await manage.ask('PUT', '/v1/policy', policy, ANY)
  assert.deepEqual([put.status, put.body.warnings], [200, warnings])
  const read = await manage.ask('GET', '/v1/policy')
  assert.deepEqual([read.body, read.headers.get('etag')], [put.body, put.headers.get('etag')])
  const preview = await manage.ask('POST', '/v1/policy/preview', { policy })
  assert.deepEqual([preview.status, preview.body.warnings], [200, warnings])
  for (const agent of NAMES) {
    const request = { verdict: { kind: 'agent', agent } }
    const explained = await manage.ask('POST', '/v1/policy/explain', { request })
    assert.equal(explained.body.decision.rule, 'sdk', agent)
  }
  const request = { headers: { 'User-Agent': 'OpenAI/Python 1.99.1', 'X-Stainless-Lang': 'python' } }
  const explained = await manage.ask('POST', '/v1/policy/explain', { request })
  assert.deepEqual([explained.body.verdict.agent.id, explained.body.decision.rule], [SDK, 'sdk'])
  assert.deepEqual(manage.failures, [])
})

test('warnings go with the signatures, and a policy that was read before can be replaced all the same', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const policy = { rules: [{ name: 'acme', when: { agent: 'acme-bot' }, action: 'block' }] }
  const put = await manage.ask('PUT', '/v1/policy', policy, ANY)
  const detail = 'rule "acme": unknown agent "acme-bot"'
  assert.deepEqual(put.body.warnings, [{ pointer: '/rules/0/when/agent', detail }])
  const tag = put.headers.get('etag')!
  assert.equal((await fresh(manage, tag)).status, 304)
  const acme = { id: 'acme', name: 'Acme', kind: 'agent', category: 'crawler', aliases: ['acme-bot'] }
  await manage.publish(policy, [fileWith(t, [acme])])
  const after = await fresh(manage, tag)
  assert.deepEqual([after.status, after.body.warnings], [200, []], 'a feed has brought it')
  const later = await manage.ask('PUT', '/v1/policy', { rules: [] }, { 'if-match': tag })
  assert.equal(later.status, 200, 'it was still the same policy')
  assert.equal((await manage.ask('PUT', '/v1/policy', policy, { 'if-match': tag })).status, 412)
})

test('before there are signatures nothing is said of names', async (t) => {
  const manage = await TestManagement.start(t)
  const policy = { rules: [{ name: 'a', when: { agent: 'no-such-agent' }, action: 'block' }] }
  const put = await manage.ask('PUT', '/v1/policy', policy, ANY)
  assert.deepEqual([put.status, put.body.warnings], [200, []])
  const wrong = { rules: [{ ...policy.rules[0], when: { category: 'crawlr' } }] }
  const refused = await manage.ask('PUT', '/v1/policy', wrong, ANY)
  const detail = 'rule "a": unknown category "crawlr" (did you mean "crawler"?)'
  assert.deepEqual(refused.body.errors, [{ pointer: '/rules/0/when/category', detail }])
})

test('events and requests are found by any name of an agent', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const of = { agent: SDK, category: 'llm-sdk' } as const
  await addEvents(store, newEvent('evt_sdk', { ...of, type: 'new_agent' }), newEvent('evt_other'))
  const verdict = { verdict: 'agent', confidence: 0.9 } as const
  const key = manage.adminKey
  for (const name of NAMES) {
    const query = encodeURIComponent(name)
    const events = await manage.ask('GET', `/v1/events?types=new_agent&agent=no-such-agent,${query}`)
    assert.deepEqual(idsIn(events.body.events), ['evt_sdk'], name)
    const url = `${manage.url}/v2/events?agent=${query}&since=1970-01-01T00:00:00Z`
    const reader = await EventReader.open(url, { key })
    while (reader.told.length < 1) await wait(10)
    assert.deepEqual(reader.ids(), ['evt_sdk'], name)
    reader.leave()
  }
  await manage.take([seen(1, { ...of, ...verdict, seenAtMs: Date.now() }), seen(2, { ...verdict })])
  for (const name of NAMES) {
    const query = encodeURIComponent(name)
    const requests = await manage.ask('GET', `/v1/requests?agent_id=${query}`)
    assert.deepEqual(
      requests.body.requests.map(({ agent_id }: { agent_id: string }) => agent_id),
      [SDK],
      name,
    )
  }
  for (const path of ['/v1/events?agent=no-such-agent', '/v1/requests?agent_id=no-such-agent']) {
    const { status, body } = await manage.ask('GET', path)
    assert.deepEqual([status, (body.events ?? body.requests).length], [200, 0], path)
  }
  assert.deepEqual(manage.failures, [])
})

test('a webhook is told of an agent by any of its names, also of one that comes to be known later', async (t) => {
  const before = SoftwareNames.of([])
  const after = SoftwareNames.of(
    parseSoftwareList([
      { id: SDK, name: 'OpenAI Python SDK', kind: 'agent', category: 'llm-sdk', aliases: ['openai-python'] },
    ]),
  )
  const event = newEvent('evt', { type: 'new_agent', agent: SDK })
  for (const name of ['openai-python', 'OpenAI Python SDK']) {
    const webhook = { events: ['new_agent'], apps: '*', filters: { agents: ['gptbot', name] } } as const
    assert.equal(wants(webhook, event, after), true, name)
    assert.equal(wants(webhook, event, before), false, name)
    assert.equal(wants(webhook, event, null), false, name)
    assert.equal(wants(webhook, newEvent('evt', { type: 'new_agent', agent: 'gpt' }), after), false)
  }
  assert.equal(wants({ events: ['new_agent'], apps: '*', filters: { agents: [SDK] } }, event, null), true)

  const manage = await TestManagement.start(t, { knows: true, allowPrivateWebhooks: true })
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const given = { url: 'http://127.0.0.1:9/', events: ['new_agent'], filters: { agents: ['openai-python'] } }
  const { body } = await manage.ask('POST', '/v1/webhooks', given)
  assert.deepEqual(body.filters, given.filters, 'as it was written')
  const log = new EventLog(store, Date.now, () => after)
  await store.transaction((queries) => log.add([event], queries))
  assert.equal((await store.deliveries.pending([body.id])).get(body.id), 1)
  const replay = { since: '1970-01-01T00:00:00Z', types: ['new_agent'] }
  const replayed = await manage.ask('POST', `/v1/webhooks/${body.id}/replay`, replay)
  assert.equal(replayed.status, 200)
})

test('tools, traffic, signatures and feedback take any name of an agent', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const [agent] = parseSoftwareList([
    {
      ...{ id: SDK, name: 'OpenAI Python SDK', kind: 'agent', category: 'llm-sdk' },
      aliases: ['openai-python', 'synthetic-openai-python'],
    },
  ])
  await store.transaction((queries) => store.catalogue.addSoftware(agent!, 1, queries))
  const { body: detected, headers } = await manage.ask('POST', '/v1/detect', { user_agent: 'x' })
  assert.ok(headers.get('x-request-id') === detected.request_id)
  for (const agent_id of NAMES) {
    const path = encodeURIComponent(agent_id)
    assert.equal((await manage.ask('GET', `/v1/agents/${path}`)).body.id, SDK)
    assert.equal((await manage.ask('GET', `/v1/agents/${path}/traffic`)).body.agent_id, SDK)
    assert.equal((await manage.ask('GET', `/v1/signatures?agent_id=${path}`)).status, 200)
    const told = { request_id: detected.request_id, verdict: 'agent', agent: agent_id }
    assert.equal((await manage.ask('POST', '/v1/feedback', told)).body.agent_id, SDK)
    const call = { tool: 'get_agent', arguments: { agent_id } }
    assert.equal((await manage.ask('POST', '/v1/execute', call)).body.result.id, SDK)
    const mcp = modern('tools/call', { name: 'get_agent', arguments: { agent_id } })
    const said = await sent(manage.url, manage.adminKey, mcp)
    assert.equal(said.body.result.structuredContent.id, SDK)
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ data: call }] }
    const a2a = await manage.ask('POST', '/a2a/v1/message:send', { message }, { 'a2a-version': '1.0' })
    assert.equal(a2a.body.message.parts[0].data.id, SDK)
  }
  assert.deepEqual(manage.failures, [])
})

function fresh(manage: TestManagement, tag: string) {
  return manage.ask('GET', '/v1/policy', undefined, { 'if-none-match': tag })
}

function idsIn(items: readonly { readonly id: string }[]): readonly string[] {
  return items.map(({ id }) => id)
}

function fileWith(t: Test, list: readonly object[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-names-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'own.yaml')
  writeFileSync(file, JSON.stringify(list))
  return file
}

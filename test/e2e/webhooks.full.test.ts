import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { type Test, test } from 'tap'
import { startApp } from './app.ts'
import { type GatehouseOptions, type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'

test('what happens at the gate reaches receivers that others have written, also over a rotation and a kill', async (t) => {
  const app = await startApp(t)
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'policy.yaml'), POLICY)
  const options: GatehouseOptions = {
    ...{ command: 'up', upstream: app.url },
    argv: ['--workers', '2', '--data', folder, '--policy', join(folder, 'policy.yaml')],
    variables: { GATEHOUSE_ADMIN_KEY: ADMIN_KEY, GATEHOUSE_WEBHOOKS_ALLOW_PRIVATE_ADDRESSES: 'true' },
  }
  const gate = await startGatehouse(t, options)
  const [standard, svix] = await Promise.all([Receiver.start(t), Receiver.start(t)])
  const hooks = await Promise.all([standard, svix].map((each) => register(gate, each)))

  await visit(gate, { 'user-agent': GPTBOT })
  await visit(gate, { 'x-agent-name': 'forged' })
  await visit(gate, { 'user-agent': 'curl/8.0' }, '/no-entry?token=secret')
  for (const each of [standard, svix]) {
    const agent = await each.has(({ type, data }) => type === 'new_agent' && data.agent.id === 'gptbot')
    assert.deepEqual(agent.data.agent, {
      id: 'gptbot',
      name: 'GPTBot',
      category: 'crawler',
      purpose: ['training'],
    })
    assert.match(agent.data.fingerprints.ja4, /^t13/)
    const forged = await each.has(({ data }) => data.reason === 'forged_headers')
    assert.deepEqual([forged.type, forged.data.count], ['threat_detected', 1])
    const { data: blocked } = await each.has(({ data }) => data.reason === 'blocked')
    const { address, ...request } = blocked.request
    assert.deepEqual(request, { method: 'GET', host: `localhost:${gate.port}`, path: '/no-entry' })
    assert.equal(address, '127.0.0.1')
    assert.equal(blocked.action, 'block')
  }

  const rotated = await api(gate, 'POST', `/v1/webhooks/${hooks[0]!.id}/rotate`)
  assert.notEqual(rotated.secret, hooks[0]!.secret)
  await api(gate, 'POST', `/v1/webhooks/${hooks[0]!.id}/test`)
  const sample = await standard.has(({ type }) => type === 'test')
  assert.equal(svix.received.filter(({ body }) => body.type === 'test').length, 0)
  for (const secret of [hooks[0]!.secret, rotated.secret])
    new StandardWebhook(secret).verify(sample.raw, flat(sample.headers))

  // No event is sent twice in five minutes, also after a kill.
  await visit(gate, { 'x-agent-name': 'forged' })
  await visit(gate, { 'x-agent-action': 'pass' }, '/again')
  const before = standard.received.length
  await gate.stop()
  const again = await startGatehouse(t, options)
  await visit(again, { 'user-agent': CLAUDEBOT })
  await svix.has(({ type, data }) => type === 'new_agent' && data.agent.id === 'claudebot')
  await standard.has(({ type, data }) => type === 'new_agent' && data.agent.id === 'claudebot')
  assert.equal(standard.received.slice(before).filter(({ body }) => body.type === 'new_agent').length, 1)

  for (const { raw, headers } of svix.received) new SvixWebhook(hooks[1]!.secret).verify(raw, flat(headers))
  for (const { raw, headers } of standard.received)
    new StandardWebhook(hooks[0]!.secret).verify(raw, flat(headers))
  for (const { received } of [standard, svix]) {
    const ids = received.map(({ headers }) => headers['webhook-id'])
    assert.equal(new Set(ids).size, ids.length)
    assert.ok(received.every(({ raw }) => !raw.includes('secret')))
  }
  // What was taken is written down a moment later.
  for (;;) {
    const { deliveries } = await api(again, 'GET', `/v1/webhooks/${hooks[0]!.id}/deliveries`)
    assert.equal(deliveries.length, standard.received.length)
    if (deliveries.every(({ status }: { status: string }) => status === 'delivered')) break
    await wait(20)
  }
})

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly raw: string
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  readonly body: any
}

class Receiver {
  readonly received: Received[] = []
  readonly url: string

  static async start(t: Test): Promise<Receiver> {
    const server = createServer(async (request, response) => {
      const raw = await text(request)
      receiver.received.push({ headers: request.headers, raw, body: JSON.parse(raw) })
      response.end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    const receiver = new Receiver(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`)
    return receiver
  }

  private constructor(url: string) {
    this.url = url
  }

  /** Waits for as long as the test may take. */
  async has(isThis: (body: Received['body']) => boolean): Promise<Received['body'] & Received> {
    for (;;) {
      const found = this.received.find(({ body }) => isThis(body))
      if (found !== undefined) return { ...found.body, ...found }
      await wait(20)
    }
  }
}

function register(gate: RunningGatehouse, { url }: Receiver) {
  const events = ['new_agent', 'new_signature', 'threat_detected']
  return api(gate, 'POST', '/v1/webhooks', { url, events })
}

async function api({ manage }: RunningGatehouse, method: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' }
  const content = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await fetch(manage + path, { method, headers, ...content })
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  const answer = (await response.json()) as any
  assert.ok(response.ok, JSON.stringify(answer))
  return answer
}

async function visit({ url, ca }: RunningGatehouse, headers: Record<string, string>, path = '/') {
  const asking = request(url + path, { ca, agent: false, headers: { cookie: 'a=secret', ...headers } }).end()
  const [response] = await once(asking, 'response')
  response.resume()
  await once(response, 'end')
}

function flat(headers: IncomingHttpHeaders): Record<string, string> {
  return headers as Record<string, string>
}

const ADMIN_KEY = 'the first key of an administrator'
const POLICY = `
rules:
  - name: no-entry
    when: { path: /no-entry }
    action: block
`
const GPTBOT =
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const CLAUDEBOT =
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)'

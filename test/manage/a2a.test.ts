import assert from 'node:assert/strict'
import {
  type AgentCardSignature,
  canonicalizeAgentCard,
  TaskState,
  verifyAgentCardSignature,
} from '@a2a-js/sdk'
import { TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors'
import * as jose from 'jose'
import { test } from 'tap'
import { SKILLS } from '../../src/manage/a2a/skills.ts'
import { TOOLS } from '../../src/manage/api/operations.ts'
import {
  asMessage,
  asTask,
  BINDINGS,
  calling,
  cardOf,
  clientOf,
  dataIn,
  resultsIn,
  sending,
} from './a2a-client.ts'
import { TestManagement } from './management.ts'

const GPTBOT = 'Mozilla/5.0 (compatible; GPTBot/1.2)'
const JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
const OWN = ['read', 'detect', 'mcp'] as const

test('the card is public, kept for a while, and signed by us', async (t) => {
  const manage = await TestManagement.start(t)
  const response = await fetch(`${manage.url}/.well-known/agent-card.json`)
  assert.equal(response.status, 200)
  const { headers } = response
  assert.equal(headers.get('access-control-allow-origin'), '*')
  assert.equal(headers.get('cache-control'), 'public, max-age=300')
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  const etag = headers.get('etag')!
  const again = await fetch(response.url, { headers: { 'if-none-match': etag } })
  assert.equal(again.status, 304)
  const posted = await manage.ask('POST', '/.well-known/agent-card.json', {})
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])

  const card = await cardOf(manage)
  const asked: string[] = []
  const verify = verifyAgentCardSignature(async (kid, jku) => {
    asked.push(jku!)
    const keys = (await (await fetch(jku!)).json()) as jose.JSONWebKeySet
    return keys.keys.find((key) => key.kid === kid)!
  })
  await verify(card)
  assert.deepEqual(asked, [`${manage.url}/oauth/jwks`])
  const [{ protected: protectedHeader, signature }] = card.signatures as [AgentCardSignature]
  const header = jose.decodeProtectedHeader({ protected: protectedHeader, signature, payload: '' })
  const other = canonicalizeAgentCard({ ...card, name: 'Gatehouse of somebody else' })
  const keys = jose.createRemoteJWKSet(new URL(header.jku!))
  const verifyText = (text: string) =>
    jose.flattenedVerify(
      { protected: protectedHeader, signature, payload: jose.base64url.encode(text) },
      keys as jose.FlattenedVerifyGetKey,
    )
  await verifyText(canonicalizeAgentCard(card))
  await assert.rejects(verifyText(other), { code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' })
  assert.deepEqual([header.alg, header.typ], ['ES256', 'JOSE'])
  assert.deepEqual(
    card.supportedInterfaces.map(({ url, protocolBinding, protocolVersion }) => [
      url,
      protocolBinding,
      protocolVersion,
    ]),
    [
      [`${manage.url}/a2a`, 'JSONRPC', '1.0'],
      [`${manage.url}/a2a/v1`, 'HTTP+JSON', '1.0'],
    ],
  )
  const { streaming, pushNotifications, extendedAgentCard } = card.capabilities!
  assert.deepEqual([streaming, pushNotifications, extendedAgentCard], [true, true, true])
  assert.deepEqual(Object.keys(card.securitySchemes), ['oauth2', 'oauth2_code', 'api_key', 'dpop'])
  const nobody = await cardOf(await TestManagement.start(t, { people: null }))
  assert.deepEqual(Object.keys(nobody.securitySchemes), ['oauth2', 'api_key', 'dpop'])
  assert.deepEqual(manage.failures, [])
})

test('when another key signs, the card is signed by it', async (t) => {
  const manage = await TestManagement.start(t)
  const kidOf = async () => {
    const card = await cardOf(manage)
    await verifyAgentCardSignature(async (kid, jku) => {
      const keys = (await (await fetch(jku!)).json()) as jose.JSONWebKeySet
      return keys.keys.find((key) => key.kid === kid)!
    })(card)
    return jose.decodeProtectedHeader({ ...card.signatures[0]!, payload: '' }).kid
  }
  const first = await kidOf()
  assert.equal(await kidOf(), first)
  const rotated = await manage.ask('POST', '/v1/signing-keys', { drop_old: true })
  assert.equal(rotated.status, 201)
  assert.notEqual(await kidOf(), first)
})

test('each tool is in one skill, and each example of a tool is a call that it takes', async () => {
  assert.deepEqual(
    SKILLS.flatMap(({ tools }) => tools).toSorted(),
    TOOLS.list.map(({ name }) => name).toSorted(),
  )
  for (const { examples } of SKILLS)
    for (const example of examples.filter((each) => each.startsWith('{'))) {
      const { tool, arguments: given } = JSON.parse(example) as { tool: string; arguments: unknown }
      assert.ok(TOOLS.find(tool)!.input.safeParse(given).success, example)
    }
})

for (const binding of BINDINGS) {
  test(`${binding}: a text, a tool, a task, with an API key`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true })
    const client = await clientOf(manage, await manage.key({ scopes: [...OWN] }), binding)
    const named = asMessage(await client.sendMessage(sending({ text: ` ${GPTBOT}\n` })))
    assert.match(named.contextId, /^ctx_/)
    assert.equal((dataIn(named)[0] as { agent_name: string }).agent_name, 'GPTBot')
    assert.deepEqual([named.metadata?.['tool'], named.metadata?.['is_error']], ['detect_agent', false])
    const printed = asMessage(await client.sendMessage(sending({ text: JA4 }, { contextId: 'mine' })))
    assert.equal(printed.contextId, 'mine')
    assert.equal((dataIn(printed)[0] as { fingerprints: { ja4: string } }).fingerprints.ja4, JA4)
    const stats = asMessage(await client.sendMessage(calling('get_stats', { window: '1h' })))
    assert.equal((dataIn(stats)[0] as { window: string }).window, '1h')
    // What the tool refuses is said as the tool says it.
    const none = asMessage(await client.sendMessage(calling('get_agent', { agent_id: 'nobody' })))
    assert.equal(none.metadata?.['is_error'], true)
    assert.equal((dataIn(none)[0] as { code: string }).code, 'not_found')
    const plain = { configuration: { acceptedOutputModes: ['text/plain'] } }
    const [part] = asMessage(await client.sendMessage(calling('get_stats', { window: '1h' }, plain))).parts
    assert.equal(part?.content?.$case, 'text')
    assert.equal(JSON.parse(String(part!.content!.value)).window, '1h')

    const items = [{ user_agent: GPTBOT }, { ja4: 'broken' }]
    const task = asTask(
      await client.sendMessage(calling('create_task', { type: 'detect', items }, { contextId: 'mine' })),
    )
    assert.deepEqual([task.contextId, task.status?.state], ['mine', TaskState.TASK_STATE_COMPLETED])
    const statuses = (resultsIn(task) as { status: string }[]).map(({ status }) => status)
    assert.deepEqual(statuses, ['ok', 'error'])
    const read = await client.getTask({ id: task.id, tenant: '' })
    assert.deepEqual(read.artifacts, task.artifacts)
    // It is the API's own.
    const ours = await manage.ask('GET', `/v1/tasks/${task.id}`)
    assert.deepEqual(ours.body.results, resultsIn(task))
    await assert.rejects(
      client.cancelTask({ id: task.id, tenant: '', metadata: undefined }),
      TaskNotCancelableError,
    )
    await assert.rejects(client.getTask({ id: 'tsk_none', tenant: '' }), TaskNotFoundError)
    await assert.rejects(
      client.sendMessage(sending({ text: 'x' }, { taskId: task.id })),
      UnsupportedOperationError,
    )
    assert.deepEqual(manage.failures, [])
  })

  test(`${binding}: the extended card has what its reader may do, and what it may not do is refused`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true })
    const client = await clientOf(manage, await manage.key({ scopes: ['detect', 'mcp'] }), binding)
    const card = await client.getAgentCard(
      undefined,
      verifyAgentCardSignature(async (kid, jku) => {
        const keys = (await (await fetch(jku!)).json()) as jose.JSONWebKeySet
        return keys.keys.find((key) => key.kid === kid)!
      }),
    )
    assert.deepEqual(
      card.skills.map(({ id }) => id),
      ['detect_agent', 'explain_detection', 'compare_fingerprints', 'create_task'],
    )
    await assert.rejects(
      client.sendMessage(calling('get_agent', { agent_id: 'gptbot' })),
      /needs the scopes mcp and read/,
    )
    const without = await clientOf(manage, await manage.key({ scopes: ['read', 'detect'] }), binding)
    await assert.rejects(without.sendMessage(sending({ text: GPTBOT })), /needs the scopes mcp and detect/)
    assert.deepEqual(manage.failures, [])
  })
}

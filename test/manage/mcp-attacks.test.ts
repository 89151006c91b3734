import assert from 'node:assert/strict'
import { test } from 'tap'
import { InFlight } from '../../src/manage/mcp/in-flight.ts'
import { TestManagement } from './management.ts'
import { headersFor, headOf, legacy, modern, sent } from './mcp-client.ts'
import { said } from './talk.ts'

test('what is no message gets an error of the protocol, and no more', async (t) => {
  const manage = await TestManagement.start(t)
  const key = manage.adminKey
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  const args = (value: string) =>
    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_agents","arguments":${value}}}`
  for (const [body, status, code] of [
    ['', 400, -32700],
    ['{', 400, -32700],
    ['nonsense', 400, -32700],
    ['"text"', 400, -32600],
    ['17', 400, -32600],
    ['null', 400, -32600],
    ['[]', 400, -32600],
    [JSON.stringify([legacy('tools/list'), legacy('tools/list')]), 400, -32600],
    [nested(70), 400, -32700],
    [nested(100_000), 400, -32700],
    [args(nested(65)), 400, -32700],
    [args('{"__proto__":{"admin":true}}'), 400, -32600],
    ['{}', 400, -32600],
    ['{"jsonrpc":"2.0"}', 400, -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"tools/list"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":[1],"method":"tools/list"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":true,"method":"tools/list"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":17}', 400, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}', 200, -32602],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}', 200, -32602],
  ] as const) {
    const answer = await sent(manage.url, key, body)
    const shown = body.slice(0, 80)
    assert.equal(answer.status, status, `${shown} ${JSON.stringify(answer.body)}`)
    // What the SDK cannot read at all it calls a parse error.
    assert.ok([code, -32700].includes(answer.body.error.code), `${shown} ${answer.body.error.code}`)
    assert.equal(answer.body.jsonrpc, '2.0')
  }
  const tooLarge = await sent(manage.url, key, args(JSON.stringify({ q: 'x'.repeat(8 * 1_048_576) })))
  assert.deepEqual([tooLarge.status, tooLarge.body.error.data.code], [413, 'too_large'])
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/jsonx',
  ])
    assert.equal(
      (await sent(manage.url, key, modern('tools/list'), { 'content-type': type })).status,
      415,
      type,
    )
  // Who takes no stream cannot speak the older protocol.
  assert.equal((await sent(manage.url, key, legacy('tools/list'), { accept: 'text/html' })).status, 406)
  const notText = await fetch(`${manage.url}/mcp`, {
    method: 'POST',
    headers: headersFor(key, null),
    body: Buffer.from([0x22, 0xff, 0xfe, 0x22]),
  })
  assert.equal(notText.status, 400)
  assert.deepEqual(manage.failures, [])
  assert.deepEqual(
    manage.said.filter((line) => line.includes('"level":"error"')),
    [],
  )
})

test('what is wrong within a message is said, by either protocol', async (t) => {
  const manage = await TestManagement.start(t)
  const ask = (message: unknown) => sent(manage.url, manage.adminKey, message)
  for (const method of [
    'tools/nothing',
    'nothing',
    '',
    'constructor',
    '__proto__',
    'sampling/createMessage',
  ]) {
    const today = await ask(modern(method))
    assert.equal(today.body.error.code, method === '' ? today.body.error.code : -32601, method)
    assert.ok([400, 404].includes(today.status), `${method} ${today.status}`)
    assert.equal((await ask(legacy(method))).body.error.code, -32601, method)
  }
  for (const form of [modern, legacy])
    for (const [method, params] of [
      ['tools/call', {}],
      ['tools/call', { name: 17 }],
      ['tools/call', { name: 'list_agents', arguments: [] }],
      ['tools/call', { name: 'list_agents', arguments: 'x' }],
      ['tools/call', { name: 'constructor', arguments: {} }],
      ['tools/call', { name: '__proto__', arguments: {} }],
      ['tools/list', { cursor: 17 }],
      ['resources/read', {}],
      ['resources/read', { uri: {} }],
      ['resources/read', { uri: 'x'.repeat(6_000) }],
      ['resources/list', { cursor: 'x'.repeat(6_000) }],
      ['prompts/get', { name: 'constructor' }],
      ['prompts/get', { name: 'write_policy_rule', arguments: { goal: 17 } }],
      ['prompts/get', { name: 'write_policy_rule', arguments: { goal: 'x'.repeat(5_000) } }],
      ['completion/complete', {}],
      [
        'completion/complete',
        { ref: { type: 'ref/prompt', name: 'x' }, argument: { name: 'a', value: 'b' } },
      ],
    ] as const) {
      const { status, body } = await ask(form(method, params))
      const shown = `${method} ${JSON.stringify(params).slice(0, 60)} ${JSON.stringify(body)}`
      assert.ok(status < 500, shown)
      assert.equal(body.error.code, -32602, shown)
    }
  assert.deepEqual(manage.failures, [])
  assert.deepEqual(
    manage.said.filter((line) => line.includes('"level":"error"')),
    [],
  )
})

test('requests with one id are not mistaken for each other', async (t) => {
  const manage = await TestManagement.start(t)
  const keys = [manage.adminKey, await manage.key({ name: 'b', scopes: ['mcp'] })]
  const asked = Array.from({ length: 40 }, async (_, index) => {
    const name = ['investigate_fingerprint', 'review_unknown_signatures'][index % 2]!
    const limit = String((index % 40) + 1)
    const given = index % 2 === 0 ? { fingerprint: FINGERPRINT, user_agent: `ua-${index}` } : { limit }
    const form = index % 4 < 2 ? modern : legacy
    const { body } = await sent(
      manage.url,
      keys[index % 3 === 0 ? 1 : 0]!,
      form('prompts/get', { name, arguments: given }, 1),
    )
    assert.equal(body.id, 1)
    const { text } = body.result.messages[0].content
    assert.match(text, index % 2 === 0 ? new RegExp(`ua-${index}"`) : new RegExp(`limit=${limit}[^\\d]`))
  })
  await Promise.all(asked)
  const inFlight = new InFlight()
  const [one, two] = [inFlight.enter('a', 1), inFlight.enter('a', 1)]
  inFlight.cancel('a', 1)
  assert.deepEqual(
    [one.cancelled.aborted, two.cancelled.aborted],
    [false, false],
    'whose it is cannot be said',
  )
  two.leave()
  inFlight.cancel('b', 1)
  inFlight.cancel('a', '1')
  assert.equal(one.cancelled.aborted, false)
  inFlight.cancel('a', 1)
  assert.equal(one.cancelled.aborted, true)
  one.leave()
  assert.equal(inFlight.size, 0)
})

test('a body that comes too slowly is waited for no longer than the port waits', async (t) => {
  const manage = await TestManagement.start(t, { front: { requestTimeoutMs: 1_000 } })
  const head = headOf(manage.url, manage.adminKey, modern('tools/list'), 1_000)
  const answers = await said(manage.url, `${head}{"jsonrpc"`)
  assert.equal(answers[0]?.status, 408)
})

const FINGERPRINT = 't13d3112h2_e8f1e7e78f70_375ca2c5e164'

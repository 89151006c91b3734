import assert from 'node:assert/strict'
import { test } from 'tap'
import { TOOLS, V1 } from '../../src/manage/api/operations.ts'
import { TestManagement } from './management.ts'

const CURL = 't13d3112h2_e8f1e7e78f70_375ca2c5e164'
const CHROME = 't13d1517h2_8daaf6152771_cb7bf5808d99'
const CHROME_RESUMED = 't13d1518h2_8daaf6152771_e2d80978ab2e'

test('the list says all that a program needs to call a tool', async (t) => {
  const manage = await TestManagement.start(t)
  const { status, body } = await manage.ask('GET', '/v1/tools')
  assert.equal(status, 200)
  const names = body.tools.map(({ name }: { name: string }) => name)
  for (const name of ['detect_agent', 'compare_fingerprints', 'explain_detection', 'create_task', 'get_task'])
    assert.ok(names.includes(name), name)
  assert.equal(new Set(names).size, names.length)
  for (const tool of body.tools) {
    assert.ok(tool.title && tool.description, tool.name)
    assert.deepEqual(tool.protocols, ['rest', 'mcp', 'a2a'])
    assert.ok(tool.scopes.length > 0, tool.name)
    assert.equal(typeof tool.annotations.readOnlyHint, 'boolean')
    for (const schema of [tool.input_schema, tool.output_schema]) {
      assert.equal(schema.type, 'object', tool.name)
      const said = JSON.stringify(schema)
      for (const [, name] of said.matchAll(/"\$ref":"#\/\$defs\/([^"]+)"/g))
        assert.ok(schema.$defs?.[name!] !== undefined, `${tool.name}: ${name}`)
    }
  }
  assert.deepEqual(Object.keys(body.tools[0].input_schema.properties).slice(0, 4), [
    'user_agent',
    'ja4',
    'ja4h',
    'headers',
  ])
})

test('a tool that an operation stands for is there with it, and needs what it needs', async () => {
  for (const [name, address] of [
    ['lookup_fingerprint', 'GET /fingerprint/lookup'],
    ['list_agents', 'GET /agents'],
    ['get_agent', 'GET /agents/{agent_id}'],
    ['submit_signature', 'POST /signatures/submit'],
    ['get_stats', 'GET /stats'],
    ['detect_agent', 'POST /detect'],
    ['create_task', 'POST /tasks/create'],
  ] as const) {
    const operation = V1.operations.find(({ method, path }) => `${method} ${path}` === address)
    assert.equal(TOOLS.find(name) === null, operation === undefined, name)
    if (operation !== undefined) assert.deepEqual(TOOLS.find(name)?.scopes, operation.scopes)
  }
})

test('a tool answers what the API answers', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const asked = { user_agent: 'Mozilla/5.0 (compatible; GPTBot/1.2)', ja4: CURL }
  const direct = await manage.ask('POST', '/v1/detect', asked)
  const { status, body } = await manage.ask('POST', '/v1/execute', { tool: 'detect_agent', arguments: asked })
  assert.equal(status, 200)
  assert.deepEqual([body.tool, body.is_error], ['detect_agent', false])
  assert.ok(body.duration_ms >= 0)
  assert.deepEqual({ ...body.result, request_id: '' }, { ...direct.body, request_id: '' })
})

test('what is wrong with a call, and where', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const ask = (body: unknown) => manage.ask('POST', '/v1/execute', body)
  const unknown = await ask({ tool: 'detect_agnet', arguments: {} })
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'not_found'])
  assert.equal((await ask({ tool: 'x'.repeat(1_000_000) })).status, 404)
  assert.match(unknown.body.detail, /did you mean "detect_agent"/)
  for (const [body, pointer] of [
    [{ tool: 'detect_agent', arguments: { ja4: 'x' } }, '/arguments/ja4'],
    [{ tool: 'detect_agent', arguments: {} }, '/arguments'],
    [{ tool: 'detect_agent' }, '/arguments'],
    [{ tool: 'detect_agent', arguments: 'x' }, '/arguments'],
    [{ tool: 'detect_agent', arguments: { user_agent: 'x', colour: 1 } }, '/arguments/colour'],
    [{ tool: 'compare_fingerprints', arguments: { fingerprints: [CURL] } }, '/arguments/fingerprints'],
    [{ tool: 'compare_fingerprints', arguments: { fingerprints: [CURL, 'x'] } }, '/arguments/fingerprints/1'],
    [{ tool: 'get_task', arguments: { task_id: 'x', limit: 500 } }, '/arguments/limit'],
    [{ tool: 7 }, '/tool'],
    [{ tool: 'detect_agent', args: {} }, '/args'],
  ] as const) {
    const answer = await ask(body)
    assert.deepEqual(
      [answer.status, answer.body.errors?.[0].pointer],
      [400, pointer],
      JSON.stringify(body).slice(0, 200),
    )
  }
})

test('what a tool refuses is an answer', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const { status, body } = await manage.ask('POST', '/v1/execute', {
    tool: 'get_task',
    arguments: { task_id: 'tsk_none' },
  })
  assert.deepEqual([status, body.is_error, body.result.code], [200, true, 'not_found'])
})

test('a tool needs the scope that its path needs', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const bearer = async (...scopes: ('read' | 'detect' | 'mcp')[]) => ({
    authorization: `Bearer ${await manage.key({ scopes })}`,
  })
  const call = { tool: 'detect_agent', arguments: { user_agent: 'x' } }
  assert.equal((await manage.ask('POST', '/v1/execute', call, await bearer('mcp', 'detect'))).status, 200)
  for (const scopes of [['detect'], ['mcp'], ['mcp', 'read']] as const) {
    const { status, body } = await manage.ask('POST', '/v1/execute', call, await bearer(...scopes))
    assert.deepEqual([status, body.code], [403, 'insufficient_scope'], String(scopes))
  }
  assert.equal((await manage.ask('GET', '/v1/tools', undefined, await bearer('mcp'))).status, 200)
  assert.equal((await manage.ask('GET', '/v1/tools', undefined, await bearer('detect'))).status, 403)
})

test('fingerprints are compared, with those who have them', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const compare = async (...fingerprints: unknown[]) => {
    const asked = { tool: 'compare_fingerprints', arguments: { fingerprints } }
    const { status, body } = await manage.ask('POST', '/v1/execute', asked)
    assert.deepEqual([status, body.is_error], [200, false])
    return body.result
  }
  const same = await compare(CHROME, { fingerprint: CHROME, type: 'ja4' })
  assert.equal(same.verdict, 'identical')
  assert.ok(same.fingerprints[0].owners.some(({ id }: { id: string }) => id.includes('chrom')))
  const resumed = await compare(CHROME, CHROME_RESUMED)
  assert.ok(['same_client', 'same_library'].includes(resumed.verdict), resumed.verdict)
  assert.deepEqual([resumed.comparisons[0].agreeing, resumed.comparisons[0].differing], [['b'], ['a', 'c']])
  const other = await compare(CHROME, 't13d5212h1_b262b3658495_8e6e362c5eac')
  assert.equal(other.verdict, 'different')
  const cookies = await compare(
    'ge11cn05enus_0123456789ab_000000000000_000000000000',
    'po11nn05enus_0123456789ab_111111111111_000000000000',
  )
  assert.equal(cookies.verdict, 'same_client')
  const three = await compare(CHROME, CHROME_RESUMED, 'ge11nn05enus_0123456789ab_000000000000_000000000000')
  assert.equal(three.comparisons.length, 3)
  assert.equal(three.verdict, 'unknown')
})

test('a detection is explained by what would be without each piece of it', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const asked = { user_agent: 'Mozilla/5.0 (compatible; GPTBot/1.2)', ja4: CURL }
  const { body } = await manage.ask('POST', '/v1/execute', { tool: 'explain_detection', arguments: asked })
  const { detection, evidence, alternatives, untold } = body.result
  const direct = await manage.ask('POST', '/v1/detect', asked)
  assert.deepEqual({ ...detection, request_id: direct.body.request_id }, direct.body)
  assert.equal(alternatives[0].verdict, 'agent')
  const named = evidence.find(({ kind }: { kind: string }) => kind === 'names-agent')
  assert.ok(named.without.confidence < detection.confidence)
  assert.equal(named.decides, true)
  assert.deepEqual(
    untold.map(({ field }: { field: string }) => field),
    ['headers', 'http_version', 'ip'],
  )
})

import assert from 'node:assert/strict'
import { test } from 'tap'
import { decide } from '../../src/policy/decide.ts'
import { explain } from '../../src/policy/explain.ts'
import type { Facts, McpFacts } from '../../src/policy/facts.ts'
import { mayAskForCall } from '../../src/policy/mcp-asking.ts'
import { parsePolicy, policyOfApp } from '../../src/policy/policy.ts'
import { PolicyRequest } from '../../src/policy/request.ts'
import { readWrittenRequest } from '../../src/policy/written-request.ts'
import { FACTS } from './request-facts.ts'

test('conditions and expressions compare the method, the tool and the resource', async () => {
  for (const [when, mcp, isHolding] of [
    [{ mcp_method: 'tools/*' }, call('echo'), true],
    [{ mcp_method: 'Tools/*' }, call('echo'), false],
    [{ mcp_method: '*' }, null, false],
    [{ not: { mcp_method: '*' } }, null, true],
    [{ mcp_tool: ['a', 'delete_*'] }, call('delete_all'), true],
    [{ mcp_tool: '*' }, { method: 'tools/list', tool: null, resource: null }, false],
    [{ mcp_tool: 'caf\u00e9' }, call('caf\xc3\xa9'), true],
    [{ mcp_resource: 'file:///a/*' }, read('file:///a/b'), true],
    [{ mcp_resource: 'file:///a/*' }, read('file:///b'), false],
    [{ expression: 'request.mcp_tool == "caf\u00e9"' }, call('caf\xc3\xa9'), true],
    [{ expression: 'request.mcp_method == "" && request.mcp_resource == ""' }, null, true],
    [{ expression: 'request.mcp_resource.startsWith("file:")' }, read('file:///b'), true],
  ] as const) {
    const policy = parsePolicy({ rules: [{ name: 'rule', when, action: 'block' }] })
    const facts: Facts = { ...FACTS, mcp }
    assert.equal(decide(policy, facts, 0).rule === 'rule', isHolding, JSON.stringify([when, mcp]))
    assert.equal(explain(policy, facts, 0).rules[0]!.holds, isHolding)
    assert.ok(policy.asked.mcp && policy.asked.method)
  }
  assert.ok(!parsePolicy({ rules: [{ name: 'rule', when: { path: '/mcp' }, action: 'block' }] }).asked.mcp)
  const [{ conditions }] = explain(
    parsePolicy({ rules: [{ name: 'rule', when: { mcp_tool: 'b' }, action: 'block' }] }),
    { ...FACTS, mcp: call('caf\xc3\xa9') },
    0,
  ).rules as unknown as [{ conditions: readonly { seen: unknown }[] }]
  assert.deepEqual(
    conditions.map(({ seen }) => seen),
    ['caf\u00e9'],
  )
})

test('a body is read only for requests that a rule about calls can be for', async () => {
  const organisation = parsePolicy({
    first: [
      { name: 'a', when: { path: '/mcp*', host: 'a.test', mcp_tool: 'x' }, action: 'block' },
      {
        name: 'b',
        when: { path: '/old', not: { mcp_tool: 'x' } },
        action: 'block',
        expires: '2020-01-01T00:00:00Z',
      },
    ],
  })
  const app = parsePolicy(
    {
      rules: [{ name: 'c', when: { method: 'PUT', expression: 'request.mcp_tool == "x"' }, action: 'block' }],
    },
    { of: 'app' },
  )
  const both = policyOfApp(organisation, app)
  const asks = (policy: typeof both, method: string, host: string, path: string) =>
    mayAskForCall(policy, { method, host, path }, Date.parse('2026-01-01'), new PolicyRequest())
  for (const [method, host, path, isOrganisation, isBoth] of [
    ['POST', 'a.test', '/mcp', true, true],
    ['POST', 'A.test:8443', '/mcp/b?c', true, true],
    ['POST', 'a.test', '/x/..//mcp', true, true],
    ['POST', 'b.test', '/mcp', false, false],
    ['POST', 'a.test', '/other', false, false],
    ['POST', 'a.test', '/old', false, false],
    ['PUT', 'a.test', '/other', false, true],
  ] as const) {
    assert.equal(asks(organisation, method, host, path), isOrganisation, `${method} ${host} ${path}`)
    assert.equal(asks(both, method, host, path), isBoth, `${method} ${host} ${path}`)
  }
})

test('a described request can have a call', async () => {
  assert.deepEqual(readWrittenRequest({ mcp: { tool: 'caf\u00e9' } }).facts.mcp, call('caf\xc3\xa9'))
  assert.deepEqual(readWrittenRequest({ mcp: { resource: 'file:///b' } }).facts.mcp, read('file:///b'))
  assert.deepEqual(readWrittenRequest({ mcp: { method: 'ping' } }).facts.mcp, {
    ...call(''),
    method: 'ping',
    tool: null,
  })
  assert.throws(() => readWrittenRequest({ mcp: {} }), /needs `method`, `tool` or `resource`/)
  assert.throws(() => readWrittenRequest({ mcp: { tol: 'a' } }), /tol.*did you mean/)
})

function call(tool: string): McpFacts {
  return { method: 'tools/call', tool, resource: null }
}

function read(resource: string): McpFacts {
  return { method: 'resources/read', tool: null, resource }
}

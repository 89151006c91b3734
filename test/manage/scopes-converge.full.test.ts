import assert from 'node:assert/strict'
import { test } from 'tap'
import { TOOLS } from '../../src/manage/api/operations.ts'
import { type Scope, SCOPES } from '../../src/manage/http/access/principal.ts'
import { cardOf } from './a2a-client.ts'
import { gnapToken } from './credentials.ts'
import { type Answered, TestManagement } from './management.ts'
import { modern, sent } from './mcp-client.ts'
import { clientFor, tokenFor } from './oauth-client.ts'

const JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
const UA = { user_agent: 'GPTBot/1.2' }
/** Each tool with arguments that it takes, and the sets of scopes of which each is exactly enough. */
const CALLS: readonly (readonly [tool: string, given: object, enough: readonly string[]])[] = [
  ['detect_agent', UA, ['detect mcp']],
  ['explain_detection', UA, ['detect mcp']],
  ['compare_fingerprints', { fingerprints: [JA4, JA4] }, ['detect mcp', 'mcp read']],
  ['lookup_fingerprint', { fingerprint: JA4, type: 'ja4' }, ['mcp read']],
  ['list_agents', {}, ['mcp read']],
  ['get_agent', { agent_id: 'gptbot' }, ['mcp read']],
  ['get_stats', {}, ['mcp read']],
  ['get_task', { task_id: 'tsk_none' }, ['mcp read']],
  ['submit_signature', { fingerprint: JA4, type: 'ja4' }, ['mcp write']],
  ['create_task', { type: 'detect', items: [UA] }, ['detect mcp']],
  ['create_task', { type: 'lookup', items: [{ fingerprint: JA4 }] }, ['detect mcp read']],
  ['create_task', { type: 'compare', items: [{ fingerprints: [JA4, JA4] }] }, ['detect mcp']],
]

type Door = (manage: TestManagement, token: string, tool: string, given: object) => Promise<Answered>

const A2A = { 'a2a-version': '1.0' }
const DOORS: Readonly<Record<string, Door>> = {
  execute: (manage, token, tool, given) =>
    manage.ask('POST', '/v1/execute', { tool, arguments: given }, bearer(token)),
  mcp: (manage, token, tool, given) =>
    sent(manage.url, token, modern('tools/call', { name: tool, arguments: given })),
  'a2a json-rpc': (manage, token, tool, given) => {
    const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: message(tool, given) }
    return manage.ask('POST', '/a2a', call, { ...A2A, ...bearer(token) })
  },
  'a2a rest': (manage, token, tool, given) =>
    manage.ask('POST', '/a2a/v1/message:send', message(tool, given), { ...A2A, ...bearer(token) }),
}

/** Makes a token with just these scopes. */
const TOKENS: Readonly<
  Record<string, (manage: TestManagement, scopes: readonly Scope[]) => Promise<string>>
> = {
  'API key': (manage, scopes) => manage.key({ scopes, plan: 'unlimited' }),
  'OAuth token': async (manage, scopes) =>
    tokenFor(manage, await clientFor(manage, { scopes, plan: 'unlimited' }), { scope: scopes.join(' ') }),
  'GNAP token': async (manage, scopes) => (await gnapToken(manage, scopes, ['bearer'])).token.value,
}

test('the table has every tool', async () => {
  const names = TOOLS.list.map(({ name }) => name)
  assert.deepEqual([...new Set(CALLS.map(([name]) => name))].toSorted(), names.toSorted())
})

for (const [kind, make] of Object.entries(TOKENS)) {
  test(`${kind}: a challenge names all scopes of a call, and a token with exactly those works`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true })
    const kept = new Map<string, Promise<string>>()
    const tokenWith = (scopes: string): Promise<string> => {
      const made = kept.get(scopes) ?? make(manage, scopes.split(' ') as Scope[])
      kept.set(scopes, made)
      return made
    }
    for (const [tool, given, enough] of CALLS)
      for (const [door, ask] of Object.entries(DOORS)) {
        const where = `${tool} ${JSON.stringify(given)} at ${door}`
        for (const held of ['mcp', 'read', 'detect', 'write']) {
          const refused = await ask(manage, await tokenWith(held), tool, given)
          assert.equal(refused.status, 403, `${where} with ${held}`)
          const named = scopesIn(refused)
          // What the caller has already is named as well, so that nothing is lost with the new token.
          assert.ok(named.includes(held), `${where} with ${held}: ${named}`)
          const needed = enough.find((each) => each.split(' ').every((scope) => named.includes(scope)))
          assert.ok(needed !== undefined, `${where} with ${held}: ${named}`)
          assert.deepEqual(
            named.filter((scope) => scope !== held && !needed.includes(scope)),
            [],
            where,
          )
          const again = await ask(manage, await tokenWith(sorted(named)), tool, given)
          assert.equal(again.status, 200, `${where} with ${named}: ${JSON.stringify(again.body)}`)
          assert.equal(again.body.error, undefined, `${where} with ${named}`)
        }
        for (const scopes of enough) {
          const { status, body } = await ask(manage, await tokenWith(scopes), tool, given)
          assert.deepEqual([status, body.error], [200, undefined], `${where} with ${scopes}`)
        }
      }
    assert.deepEqual(manage.failures, [])
  })
}

test('a token with the scopes that the agent card names calls every tool, and one of a skill each of its own', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const card = await cardOf(manage)
  const scopesOf = (requirements: typeof card.securityRequirements) => {
    assert.deepEqual(
      requirements.flatMap(({ schemes }) => Object.keys(schemes)),
      Object.keys(card.securitySchemes),
    )
    const all = new Set(
      requirements.flatMap(({ schemes }) => Object.values(schemes).map(({ list }) => sorted(list))),
    )
    assert.equal(all.size, 1, 'each scheme needs the same')
    return [...all][0]!
  }
  assert.equal(scopesOf(card.securityRequirements), 'detect mcp read write')
  const whole = await manage.key({ scopes: ['detect', 'mcp', 'read', 'write'] })
  for (const [tool, given] of CALLS)
    assert.equal((await DOORS['a2a rest']!(manage, whole, tool, given)).status, 200, tool)
  const bySkill = new Map(card.skills.map((skill) => [skill.id, scopesOf(skill.securityRequirements)]))
  assert.deepEqual(Object.fromEntries(bySkill), {
    detect: 'detect mcp',
    catalogue: 'mcp read',
    submissions: 'mcp write',
    tasks: 'detect mcp read',
    statistics: 'mcp read',
  })
})

test('the extended card names what the tools of the caller need, and no more', async (t) => {
  const manage = await TestManagement.start(t)
  const key = await manage.key({ scopes: ['mcp', 'read'] })
  const { body } = await manage.ask('GET', '/a2a/v1/extendedAgentCard', undefined, { ...A2A, ...bearer(key) })
  const lists = body.securityRequirements.map(({ schemes }: { schemes: object }) =>
    Object.values(schemes).flatMap(({ list }) => sorted(list)),
  )
  assert.deepEqual([...new Set(lists.flat())], ['mcp read'])
})

test('the metadata of both resources list the scopes of every tool', async (t) => {
  const manage = await TestManagement.start(t)
  const needed = new Set(['mcp', ...TOOLS.list.flatMap(({ scopes }) => scopes)])
  for (const resource of ['v1', 'mcp']) {
    const { body } = await manage.ask('GET', `/.well-known/oauth-protected-resource/${resource}`)
    for (const scope of needed) assert.ok(body.scopes_supported.includes(scope), `${resource}: ${scope}`)
  }
})

test('a challenge is the same with a body that is none, and then names what opens the door', async (t) => {
  const manage = await TestManagement.start(t)
  const key = await manage.key({ scopes: ['read'] })
  for (const [path, headers] of [
    ['/v1/execute', {}],
    ['/a2a', A2A],
    ['/a2a/v1/message:send', A2A],
    ['/mcp', { accept: 'application/json, text/event-stream' }],
  ] as const)
    for (const body of [
      '',
      '{',
      '[]',
      'null',
      '{"tool":7,"method":{},"params":7,"message":[]}',
      '{"tool":"none"}',
    ]) {
      const response = await fetch(manage.url + path, {
        method: 'POST',
        headers: { ...bearer(key), ...headers, 'content-type': 'application/json' },
        body,
      })
      const challenge = response.headers.get('www-authenticate') ?? ''
      assert.deepEqual([response.status, scopeText(challenge)], [403, 'mcp read'], `${path} ${body}`)
    }
  assert.deepEqual(manage.failures, [])
})

function message(tool: string, given: object) {
  const parts = [{ data: { tool, arguments: given } }]
  return { message: { messageId: 'm', role: 'ROLE_USER', parts } }
}

function scopesIn({ headers }: Answered): readonly string[] {
  const challenge = headers.get('www-authenticate') ?? ''
  assert.match(challenge, /^Bearer realm="gatehouse", error="insufficient_scope", .*resource_metadata="/)
  const scopes = scopeText(challenge).split(' ')
  for (const scope of scopes) assert.ok((SCOPES as readonly string[]).includes(scope), challenge)
  return scopes
}

function scopeText(challenge: string): string {
  return /\bscope="([^"]*)"/.exec(challenge)?.[1] ?? ''
}

function sorted(scopes: readonly string[]): string {
  return scopes.toSorted().join(' ')
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { memoryIo } from '../commands/memory-io.ts'
import { TestManagement } from './management.ts'

const POLICY = {
  rules: [
    { name: 'training', when: { purpose: 'training' }, action: 'block' },
    { name: 'blog', when: { host: 'blog.test', category: 'crawler' }, action: 'block' },
    { name: 'odd', when: 'request.path.startsWith("/odd")', action: 'block' },
  ],
}
const ROBOTS = 'User-agent: *\nDisallow: /cart\n'

test('the forms are those of gatehouse publish', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const file = join(t.testdir({}), 'policy.json')
  writeFileSync(file, JSON.stringify(POLICY))
  const published = async (...given: readonly string[]) => {
    const io = memoryIo()
    assert.equal(await runCli(COMMANDS, ['publish', ...given, '--policy', file], io), 0, io.err)
    return io.out
  }
  for (const host of [undefined, 'blog.test']) {
    const { status, body } = await manage.ask('POST', '/v1/policy/terms', { policy: POLICY, host })
    assert.equal(status, 200, JSON.stringify(body))
    const more = host === undefined ? [] : ['--host', host]
    assert.equal(body.robots, await published('robots', '--usage', '--signals', ...more))
    assert.equal(body.rsl, await published('rsl', ...more))
    const usage = body.content_usage.map(
      ({ path, value }: Record<string, string>) => `${path} Content-Usage: ${value}\n`,
    )
    assert.equal(usage.join(''), await published('content-usage', ...more))
    assert.deepEqual(body.unpublished, [{ rule: 'odd', layer: 'last' }])
    assert.deepEqual([body.contradictions, body.complete], [null, true])
  }
})

test('a robots.txt is kept and compared, and by default the policies in force are shown', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  await manage.ask('PUT', '/v1/policy', POLICY, { 'if-match': '*' })
  await manage.ask('POST', '/v1/apps', { id: 'shop' })
  const { body } = await manage.ask('POST', '/v1/policy/terms', { robots: ROBOTS })
  assert.match(body.robots, /^Disallow: \/cart$/m)
  const [refused, letIn] = body.contradictions
  assert.deepEqual([refused.kind, refused.path, refused.line], ['refused', '/', null])
  assert.ok(refused.user_agents.includes('GPTBot'))
  assert.deepEqual(
    [letIn.kind, letIn.path, letIn.line, letIn.rule],
    ['let_in', '/cart', 2, 'Disallow: /cart'],
  )
  const own = { rules: [{ name: 'cart', when: { category: 'crawler', path: '/cart*' }, action: 'block' }] }
  const app = await manage.ask('POST', '/v1/apps/shop/policy/terms', { policy: own, robots: ROBOTS })
  assert.match(app.body.robots, /^User-agent: Googlebot$/m)
  assert.deepEqual(
    app.body.contradictions.flatMap(({ kind, user_agents }: { kind: string; user_agents: string[] }) =>
      kind === 'let_in' && user_agents.includes('Googlebot') ? [kind] : [],
    ),
    [],
  )
  const team = await manage.ask('POST', '/v1/keys', { name: 'team', scopes: ['admin'], apps: ['shop'] })
  const asTeam = { authorization: `Bearer ${team.body.key}` }
  const seen = await manage.ask('POST', '/v1/apps/shop/policy/terms', {}, asTeam)
  assert.deepEqual([seen.status, seen.body.unpublished], [200, []], 'rules of others have no names here')
  assert.equal((await manage.ask('POST', '/v1/policy/terms', { app: 'other' }, asTeam)).status, 404)
})

test('a robots.txt keeps characters beyond ASCII', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const robots =
    'User-agent: *\nDisallow: /t\u00e9\nDisallow: /\u65e5\u672c\nSitemap: https://a.test/\u{1f600}\n'
  const { status, body } = await manage.ask('POST', '/v1/policy/terms', { robots })
  assert.equal(status, 200)
  for (const part of ['/t%C3%A9\n', '/%E6%97%A5%E6%9C%AC\n', '/\u{1f600}\n'])
    assert.ok(body.robots.includes(part), JSON.stringify(body.robots))
  assert.deepEqual(
    body.contradictions.map(({ rule }: { rule: string }) => rule),
    ['Disallow: /t\u00e9', 'Disallow: /\u65e5\u672c'],
  )
})

test('what cannot be read is refused', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  for (const [body, status] of [
    [{ policy: { rules: [{ name: 'a' }] } }, 422],
    [{ robots: 'x'.repeat(65_537) }, 422],
    [{ host: 5 }, 422],
    [{ app: 'unknown' }, 404],
  ] as const)
    assert.ok(
      [status, 400].includes((await manage.ask('POST', '/v1/policy/terms', body)).status),
      JSON.stringify(body).slice(0, 80),
    )
})

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { DEFAULT_POLICY, hashOf, PolicyKeeper } from '../../src/manage/publish/policy-keeper.ts'
import { PolicyCopy } from '../../src/manage/publish/policy-copy.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { TestManagement } from './management.ts'

const BLOCK = { rules: [{ name: 'no-crawlers', when: { category: 'crawler' }, action: 'block' }] }
const PASS = { rules: [{ name: 'all', when: {}, action: 'pass' }], otherwise: 'block' }
const ANY = { 'if-match': '*' }

test('a policy is put, is in force, and is found again as it was written', async (t) => {
  const manage = await TestManagement.start(t)
  const before = await manage.ask('GET', '/v1/policy')
  assert.equal(before.status, 200)
  const { in_force_since, hash, ...rest } = before.body
  assert.deepEqual(rest, {
    policy: { rules: [] },
    ...{ source: 'default', file: null, version: null, author: null, created_at: null },
    ...{ restored_version: null, comment: null, warnings: [], problems: [] },
  })
  const put = await manage.ask('PUT', '/v1/policy', BLOCK, { 'if-match': before.headers.get('etag')! })
  assert.equal(put.status, 200)
  assert.deepEqual([put.body.policy, put.body.source, put.body.version], [BLOCK, 'api', 1])
  assert.match(put.body.author, /^key_/)
  assert.deepEqual(put.body.warnings, [])
  assert.deepEqual(manage.policies, [BLOCK])
  const after = await manage.ask('GET', '/v1/policy')
  assert.deepEqual(after.body, put.body)
  assert.equal(after.headers.get('etag'), put.headers.get('etag'))
  assert.notEqual(after.headers.get('etag'), before.headers.get('etag'))
  assert.deepEqual(manage.failures, [])
})

test('of a policy that may cost more than a request has, that is said', async (t) => {
  const manage = await TestManagement.start(t)
  const list = JSON.stringify(Array.from({ length: 160 }, (_, each) => `${each}`))
  const when = `${list}.exists(x, request.path == x)`
  const rules = Array.from({ length: 10 }, (_, each) => ({ name: `r${each}`, when, action: 'block' }))
  const put = await manage.ask('PUT', '/v1/policy', { rules }, ANY)
  assert.match(put.body.warnings[0].detail, /can take 8010 steps/)
  assert.equal(put.body.warnings[0].pointer, '')
  assert.deepEqual((await manage.ask('GET', '/v1/policy')).body.warnings, put.body.warnings)
})

test('who changes it says what they have seen', async (t) => {
  const manage = await TestManagement.start(t)
  const bare = await manage.ask('PUT', '/v1/policy', BLOCK)
  assert.deepEqual([bare.status, bare.body.code], [428, 'precondition_required'])
  const first = await manage.ask('GET', '/v1/policy')
  const tag = first.headers.get('etag')!
  assert.equal((await manage.ask('PUT', '/v1/policy', BLOCK, { 'if-match': `"x", ${tag}` })).status, 200)
  for (const stale of [tag, '"x"', `W/${tag}`, 'x', '**', '']) {
    const { status, body, headers } = await manage.ask('PUT', '/v1/policy', PASS, { 'if-match': stale })
    assert.deepEqual(
      [status, body.code],
      stale === '' ? [428, 'precondition_required'] : [412, 'precondition_failed'],
    )
    if (stale !== '') assert.notEqual(headers.get('etag'), tag)
  }
  assert.deepEqual(manage.policies, [BLOCK])
  assert.equal((await manage.ask('PUT', '/v1/policy', PASS, ANY)).body.version, 2)
})

for (const prefix of ['/v1', '/v2'])
  test(`${prefix}: what GET /policy answers PUT /policy takes, with all its members`, async (t) => {
    const manage = await TestManagement.start(t)
    const path = `${prefix}/policy`
    await manage.ask('PUT', path, BLOCK, ANY)
    const read = await manage.ask('GET', path)
    const tag = () => manage.ask('GET', path).then(({ headers }) => ({ 'if-match': headers.get('etag')! }))
    const whole = await manage.ask('PUT', path, read.body, await tag())
    assert.deepEqual([whole.status, whole.body.policy, whole.body.version], [200, BLOCK, 2])
    assert.equal(whole.body.hash, read.body.hash)
    // Changed in it, and all else is as it was, or nonsense.
    const nonsense = { version: -7, hash: null, author: [], warnings: 'none', in_force_since: 0, in_force: 1 }
    const changed = await manage.ask('PUT', path, { ...read.body, ...nonsense, policy: PASS }, await tag())
    assert.deepEqual([changed.status, changed.body.policy, changed.body.version], [200, PASS, 3])
    assert.equal(changed.body.author, read.body.author)
    const version = await manage.ask('GET', `${path}/versions/1`)
    const restored = await manage.ask('PUT', path, version.body, await tag())
    assert.deepEqual([restored.status, restored.body.policy, restored.body.version], [200, BLOCK, 4])
    assert.equal(restored.body.restored_version, null)
    assert.equal((await manage.ask('PUT', path, read.body)).status, 428)
    const stale = { 'if-match': read.headers.get('etag')! }
    assert.equal((await manage.ask('PUT', path, read.body, stale)).status, 412)
    const bad = { name: 'bad', when: { path: 'x' }, action: 'block' }
    for (const [body, errors] of [
      [{ ...read.body, policy: null }, ['/policy']],
      [{ ...read.body, policy: { rules: [bad] } }, ['/policy/rules/0/when/path']],
      [{ ...read.body, rules: [], polcy: {} }, ['/rules', '/polcy']],
      [{ policy: { policy: BLOCK } }, ['/policy/policy']],
    ] as const) {
      const refused = await manage.ask('PUT', path, body, ANY)
      const pointers = refused.body.errors.map(({ pointer }: { pointer: string }) => pointer)
      assert.deepEqual([refused.status, pointers.toSorted()], [400, [...errors].toSorted()])
    }
    assert.deepEqual(manage.policies, [BLOCK, BLOCK, PASS, BLOCK])
    assert.deepEqual(manage.failures, [])
  })

test('of many at once with the same tag, one wins', async (t) => {
  const manage = await TestManagement.start(t)
  const tag = (await manage.ask('GET', '/v1/policy')).headers.get('etag')!
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) => {
      const policy = { rules: [{ name: `rule-${index}`, when: {}, action: 'tag' }] }
      return manage.ask('PUT', '/v1/policy', policy, { 'if-match': tag })
    }),
  )
  const won = answers.filter(({ status }) => status === 200)
  assert.equal(won.length, 1)
  assert.equal(answers.filter(({ status }) => status === 412).length, 11)
  assert.deepEqual(manage.policies, [won[0]!.body.policy])
  assert.equal((await manage.ask('GET', '/v1/policy/versions')).body.total, 1)
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const { items } = await store.audit.list({ page: 1, limit: 50 })
  assert.equal(items.filter(({ action }) => action === 'putPolicy').length, 1)
})

for (const kind of KINDS)
  test(`${kind}: of many at once that take the place of whatever is there, each does`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => {
        const policy = { rules: [{ name: `rule-${index}`, when: {}, action: 'tag' }] }
        return manage.ask('PUT', '/v1/policy', policy, ANY)
      }),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal((await manage.ask('GET', '/v1/policy/versions')).body.total, 12)
  })

test('a refused policy says which rule and why, and changes nothing', async (t) => {
  const manage = await TestManagement.start(t)
  const rule = (more: object) => ({ rules: [{ name: 'api', when: {}, action: 'block', ...more }] })
  const cases: [unknown, string, RegExp][] = [
    [{ rules: [{ when: {}, action: 'pass' }] }, '/rules/0', /needs a name/],
    [rule({ action: 'blok' }), '/rules/0/action', /^rule "api": is "blok"; .*did you mean "block"/],
    [rule({ when: { path: '/a', cat: 1 } }), '/rules/0/when/cat', /^rule "api": unknown field/],
    [
      rule({ action: { route: { upstream: 'othr' } } }),
      '/rules/0/action/route/upstream',
      /did you mean "other"/,
    ],
    [rule({ when: { expression: 'request.method == ' } }), '/rules/0/when/expression', /^rule "api": /],
    [
      rule({ when: { expression: 'request.path.matches("a")' } }),
      '/rules/0/when/expression',
      /not supported/,
    ],
    [rule({ when: { expression: '['.repeat(2000) } }), '/rules/0/when/expression', /./],
    [
      rule({ when: { expression: `(${'true||'.repeat(400)}true)`.slice(0, 2047) } }),
      '/rules/0/when/expression',
      /./,
    ],
    [
      rule({ when: { expression: `${'verdict.evidence.exists(e, e == "crawls") || '.repeat(40)}true` } }),
      '/rules/0/when/expression',
      /steps/,
    ],
    [rule({ expires: 'soon' }), '/rules/0/expires', /expected a time/],
    [{ rules: [BLOCK.rules[0], BLOCK.rules[0]] }, '/rules/1/name', /is already used/],
    [
      {
        rules: Array.from({ length: 20_000 }, (_, index) => ({
          name: `r${index}`,
          when: {},
          action: 'pass',
        })),
      },
      '/rules',
      /has 20000 rules; at most 1000/,
    ],
    [{ rule: [] }, '/rule', /did you mean "rules"/],
    [{ policies: BLOCK }, '/policies', /unknown field/],
    [{ policy: [] }, '/policy', /is a list; expected a mapping/],
    [{ rules: {} }, '/rules', /expected a list of rules/],
    [{ otherwise: 'maybe' }, '/otherwise', /expected pass, tag/],
    [{ constructor: {}, prototype: {} }, '/constructor', /unknown field/],
    [{ rules: [{ name: 'a', when: {}, action: { toString: {} } }] }, '/rules/0/action/toString', /./],
    [[], '', /is a list; expected a mapping/],
    ['rules', '', /expected a mapping/],
    [null, '', /is null/],
    [5, '', /expected a mapping/],
  ]
  for (const [policy, pointer, said] of cases) {
    const { status, body } = await manage.ask('PUT', '/v1/policy', policy, ANY)
    assert.deepEqual(
      [status, body.code, body.errors?.[0]?.pointer],
      [400, 'invalid_request', pointer],
      JSON.stringify(policy).slice(0, 200),
    )
    assert.match(body.errors[0].detail, said)
  }
  const polluted = await raw(manage, '{"rules": [], "__proto__": {"otherwise": "block"}}')
  assert.equal(polluted.status, 400)
  assert.equal((await raw(manage, '{"rules": [')).status, 400)
  assert.equal((await raw(manage, `{"rules": [], "x": "${'y'.repeat(1_100_000)}"}`)).status, 413)
  const nots = `${'{"not": '.repeat(100_000)}{}${'}'.repeat(100_000)}`
  const endless = await raw(manage, `{"rules": [{"name": "a", "action": "block", "when": ${nots}}]}`)
  assert.equal(endless.status, 400, manage.failures.map(String).join())
  const nested = await raw(manage, `{"rules": ${'['.repeat(400_000)}${']'.repeat(400_000)}}`)
  assert.equal(nested.status, 400)
  const many = await manage.ask('PUT', '/v1/policy', { rules: Array.from({ length: 999 }, () => ({})) }, ANY)
  assert.deepEqual([many.status, many.body.errors.length], [400, 100])
  assert.deepEqual([manage.policies, manage.failures], [[], []])
  assert.equal((await manage.ask('GET', '/v1/policy')).body.source, 'default')
})

test('earlier ones are kept, can be looked at and put in force again', async (t) => {
  const manage = await TestManagement.start(t)
  for (const policy of [BLOCK, PASS]) await manage.ask('PUT', '/v1/policy', policy, ANY)
  const { body } = await manage.ask('GET', '/v1/policy/versions')
  assert.deepEqual(
    body.versions.map((each: Record<string, unknown>) => [each['version'], each['in_force'], each['policy']]),
    [
      [2, true, undefined],
      [1, false, undefined],
    ],
  )
  const first = await manage.ask('GET', '/v1/policy/versions/1')
  assert.deepEqual([first.body.policy, first.body.in_force], [BLOCK, false])
  assert.equal((await manage.ask('POST', '/v1/policy/versions/1/restore')).status, 428)
  const restored = await manage.ask('POST', '/v1/policy/versions/1/restore', undefined, ANY)
  assert.deepEqual(
    [restored.status, restored.body.policy, restored.body.version, restored.body.restored_version],
    [200, BLOCK, 3, 1],
  )
  assert.deepEqual(manage.policies, [BLOCK, PASS, BLOCK])
  for (const version of ['4', '0', '-1', '1.0', 'x', '%00', '99999999999999999999', '__proto__'])
    assert.equal((await manage.ask('GET', `/v1/policy/versions/${version}`)).status, 404, version)
  for (let count = 0; count < 50; count++) await manage.ask('PUT', '/v1/policy', PASS, ANY)
  const { body: bounded } = await manage.ask('GET', '/v1/policy/versions?limit=200')
  assert.deepEqual([bounded.total, bounded.versions[0].version, bounded.versions.at(-1).version], [50, 53, 4])
  assert.equal((await manage.ask('POST', '/v1/policy/versions/1/restore', undefined, ANY)).status, 404)
})

test('a version keeps the comment of its author, and so does the audit log', async (t) => {
  const manage = await TestManagement.start(t)
  const hostile = `<img src=x onerror=alert(1)> "'; drop table policies; --`
  const change = (method: 'PUT' | 'POST', path: string, comment: string, body?: unknown) =>
    manage.ask(method, `/v1/policy${path}?comment=${encodeURIComponent(comment)}`, body, ANY)
  const put = await change('PUT', '', hostile, BLOCK)
  assert.deepEqual([put.status, put.body.comment], [200, hostile])
  // An answer that is sent back has the comment of the version before: it does not count.
  const back = await manage.ask('PUT', '/v1/policy', { ...put.body, policy: PASS }, ANY)
  assert.deepEqual([back.status, back.body.comment], [200, null])
  const restored = await change('POST', '/versions/1/restore', 'a shop lost its crawler', undefined)
  assert.deepEqual([restored.body.restored_version, restored.body.comment], [1, 'a shop lost its crawler'])
  assert.equal((await manage.ask('GET', '/v1/policy/versions/1')).body.comment, hostile)
  const comments = ['a shop lost its crawler', null, hostile]
  const { versions } = (await manage.ask('GET', '/v1/policy/versions')).body
  assert.deepEqual(
    versions.map(({ comment }: { comment: unknown }) => comment),
    comments,
  )
  const { audit } = (await manage.ask('GET', '/v1/audit')).body
  assert.deepEqual(
    audit.flatMap(({ action, detail }: { action: string; detail: { comment: unknown } }) =>
      /Policy$/.test(action) ? [detail.comment] : [],
    ),
    comments,
  )
  for (const bad of ['', 'two\nlines', '\0', 'a\u202eb', 'x'.repeat(501), '\u2028']) {
    const { status, body } = await change('PUT', '', bad, PASS)
    assert.deepEqual([status, body.errors[0].pointer], [400, '/comment'], JSON.stringify(bad.slice(0, 20)))
  }
  assert.equal((await manage.ask('GET', '/v1/policy')).body.version, 3)
  assert.equal((await change('PUT', '', 'x'.repeat(500), PASS)).status, 200)
})

test('while a file says the policy, the API only shows it', async (t) => {
  const inForce = { ...DEFAULT_POLICY, source: 'file', file: '/etc/policy.yaml', document: PASS } as const
  const manage = await TestManagement.start(t, { policy: { kind: 'file', inForce: () => inForce } })
  const { body, headers } = await manage.ask('GET', '/v1/policy')
  assert.deepEqual([body.policy, body.source, body.file], [PASS, 'file', '/etc/policy.yaml'])
  const put = await manage.ask('PUT', '/v1/policy', BLOCK, { 'if-match': headers.get('etag')! })
  assert.deepEqual([put.status, put.body.code], [409, 'conflict'])
  assert.match(put.body.detail, /the policy comes from a file \(policy\.file: \/etc\/policy\.yaml\)/)
})

for (const kind of KINDS) {
  test(`${kind}: what one process puts, others have within a second, and after a restart`, async (t) => {
    const url = await freshUrl(kind, t)
    const one = await keeperOn(t, url)
    const other = await keeperOn(t, url)
    await one.keeper.put(BLOCK, { ifMatch: '*', restoredVersion: null }, ACTOR, 1)
    assert.deepEqual([one.used, other.used], [[BLOCK], []])
    await other.keeper.follow()
    assert.deepEqual(other.used, [BLOCK])
    assert.equal(other.keeper.etag, one.keeper.etag)
    await other.keeper.follow()
    assert.equal(other.used.length, 1)
    const tag = one.keeper.etag
    const put = ({ keeper }: typeof one) =>
      keeper.put(PASS, { ifMatch: tag, restoredVersion: null }, ACTOR, 2)
    // Two connections to SQLite in one process would wait for each other.
    const first = kind === 'sqlite' ? await Promise.allSettled([put(one)]) : []
    const both = [...first, ...(await Promise.allSettled([one, other].slice(first.length).map(put)))]
    assert.equal(both.filter(({ status }) => status === 'fulfilled').length, 1)
    const lost = both.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
    assert.deepEqual(
      lost.map(({ reason }) => reason.code),
      ['precondition_failed'],
    )
    // Without a database: from the copy on disk.
    const late = await keeperOn(t, null, one.file)
    await one.keeper.follow()
    assert.equal(await late.keeper.start(), true)
    assert.deepEqual(late.used, [PASS])
    assert.equal(late.keeper.inForce().version?.version, 2)
  })
}

test('one in the database that cannot be used leaves the last good one in force, and says so', async (t) => {
  const url = await freshUrl('sqlite', t)
  const { keeper, used, store, said, file } = await keeperOn(t, url)
  await keeper.put(BLOCK, { ifMatch: '*', restoredVersion: null }, ACTOR, 1)
  const tag = keeper.etag
  const bad = {
    version: 2,
    hash: 'x',
    author: 'somebody',
    restoredVersion: null,
    comment: null,
    createdAtMs: 2,
  }
  for (const [index, document] of [
    '{"rules": [{"name": "gone", "when": {}, "action": {"route": {"upstream": "gone"}}}]}',
    'no JSON',
    'null',
  ].entries()) {
    await store.transaction((queries) => {
      return store.policies.add({ ...bad, version: index + 2, document }, 50, queries)
    })
    await keeper.follow()
    await keeper.follow()
  }
  // `null` is what a policy file says in which everything is commented out.
  assert.deepEqual(used, [BLOCK, null])
  await store.transaction((queries) =>
    store.policies.add({ ...bad, version: 5, document: '[]' }, 50, queries),
  )
  await keeper.follow()
  const { version, problems } = keeper.inForce()
  assert.deepEqual([version?.version, problems], [4, ['is a list; expected a mapping']])
  assert.deepEqual([keeper.status.isCurrent, keeper.status.failed], [false, 3])
  assert.notEqual(keeper.etag, tag)
  const errors = said.filter((line) => line.includes('"level":"error"'))
  assert.equal(errors.length, 3)
  assert.match(errors[0]!, /rule \\"gone\\".*upstream: unknown upstream \\"gone\\"/)

  // A start with neither a copy nor a good newest one finds the last good one.
  writeFileSync(file, '{}')
  const late = await keeperOn(t, url, file)
  assert.equal(await late.keeper.start(), false)
  await late.keeper.open(late.store)
  assert.equal(late.keeper.inForce().version?.version, 4)
  assert.deepEqual(late.keeper.inForce().problems, ['is a list; expected a mapping'])
  await late.keeper.put(PASS, { ifMatch: late.keeper.etag, restoredVersion: null }, ACTOR, 9)
  assert.deepEqual([late.keeper.inForce().version?.version, late.keeper.inForce().problems], [6, []])
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).version, 6)
})

for (const kind of KINDS)
  test(`${kind}: a stored policy with words that are unknown now stays in force and warns`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const stored = {
      rules: [
        { name: 'old', when: { category: ['crawlr', 'crawler'] }, action: 'block' },
        { name: 'odd', when: 'verdict.evidence.exists(kind, kind == "gone")', action: 'pass' },
      ],
    }
    const document = JSON.stringify(stored)
    const record = {
      version: 1,
      hash: hashOf(document),
      author: 'a',
      restoredVersion: null,
      comment: null,
      createdAtMs: 1,
    }
    const before = await keeperOn(t, storeUrl)
    await before.store.transaction((queries) =>
      before.store.policies.add({ ...record, document }, 50, queries),
    )
    await before.keeper.follow()
    const { version, problems } = before.keeper.inForce()
    assert.deepEqual([before.used, version?.version, problems], [[stored], 1, []])
    const warned = before.said.filter((line) => line.includes('"level":"warn"'))
    assert.equal(warned.length, 1)
    assert.match(warned[0]!, /rule \\"old\\".*unknown category \\"crawlr\\" \(did you mean \\"crawler\\"\?\)/)

    // The next start has only the copy.
    const late = await keeperOn(t, null, before.file)
    assert.deepEqual([await late.keeper.start(), late.used], [true, [stored]])

    const manage = await TestManagement.start(t, { storeUrl })
    const { body } = await manage.ask('GET', '/v1/policy')
    assert.deepEqual([body.policy, body.version, body.problems], [stored, 1, []])
    assert.deepEqual(
      body.warnings.map(({ pointer }: { pointer: string }) => pointer),
      ['/rules/0/when/category/0', '/rules/1/when'],
    )
    const put = await manage.ask('PUT', '/v1/policy', stored, ANY)
    assert.equal(put.status, 400)
    assert.deepEqual(
      put.body.errors.map(({ pointer }: { pointer: string }) => pointer),
      ['/rules/0/when/category/0', '/rules/1/when'],
    )
    assert.equal((await manage.ask('POST', '/v1/policy/versions/1/restore', undefined, ANY)).status, 400)
  })

test('a database that has lost the policy takes it from nobody', async (t) => {
  const { keeper, file } = await keeperOn(t, await freshUrl('sqlite', t))
  await keeper.put(BLOCK, { ifMatch: '*', restoredVersion: null }, ACTOR, 1)
  const late = await keeperOn(t, await freshUrl('sqlite', t), file)
  assert.equal(await late.keeper.start(), true)
  await late.keeper.open(late.store)
  await late.keeper.follow()
  assert.deepEqual(
    [late.used, late.keeper.inForce().problems],
    [[BLOCK], ['the database has no policy any more']],
  )
  assert.equal(late.said.filter((line) => line.includes('"level":"error"')).length, 1)
  await late.keeper.put(PASS, { ifMatch: late.keeper.etag, restoredVersion: null }, ACTOR, 2)
  assert.deepEqual([late.keeper.inForce().version?.version, late.keeper.inForce().problems], [2, []])
})

test('without a database the policy stays, and that is said once', async (t) => {
  const { keeper, store, said, used } = await keeperOn(t, await freshUrl('sqlite', t))
  await keeper.put(BLOCK, { ifMatch: '*', restoredVersion: null }, ACTOR, 1)
  await store.close()
  for (let count = 0; count < 3; count++) await keeper.follow()
  assert.deepEqual(used, [BLOCK])
  assert.equal(said.filter((line) => line.includes('cannot be asked')).length, 1)
})

/** As in a process of its own. Without a `url` its database is not open. */
async function keeperOn(t: Test, url: string | null, file = join(t.testdir(), `policy-${++files}.json`)) {
  const used: unknown[] = []
  const said: string[] = []
  const keeper = new PolicyKeeper({
    upstreams: ['default'],
    copy: new PolicyCopy(file),
    log: createLogTo('info', { write: (line) => said.push(line) }),
    use: (document) => used.push(document),
  })
  const store = await Store.open(url ?? 'sqlite::memory:')
  t.teardown(() => store.close())
  if (url !== null && files > 0 && file.includes(`policy-${files}`)) await keeper.open(store)
  return { keeper, used, said, store, file }
}

async function raw(manage: TestManagement, body: string): Promise<Response> {
  const key = await manage.key({})
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...ANY }
  return fetch(`${manage.url}/v1/policy`, { method: 'PUT', headers, body })
}

const ACTOR = { id: 'key_test', address: null, requestId: null }
let files = 0

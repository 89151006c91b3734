import assert from 'node:assert/strict'
import { test } from 'tap'
import { makeSnapshot, parseSnapshot, snapshotOfApp } from '../../src/plane/snapshot.ts'
import { applyDelta, makeDelta } from '../../src/plane/snapshot-delta.ts'
import { documentIn, packSnapshot, unpackSnapshot } from '../../src/plane/snapshot-package.ts'
import {
  AppPolicyReader,
  type AppPolicyText,
  changedPolicies,
  checkPolicies,
  PolicyCompiler,
  wholePolicies,
} from '../../src/plane/snapshot-policies.ts'
import { allRules } from '../../src/policy/policy.ts'

const ORGANISATION = { first: [rule('attackers')], last: [rule('rest')] }

test('a Snapshot carries the policies of apps', async () => {
  const appPolicies = [ofApp('blog', 'b'), ofApp('shop', 's')]
  const document = makeSnapshot(1, ORGANISATION, 1, null, { appPolicies })
  assert.deepEqual(await documentIn(await packSnapshot(document)), document)
  const names = [...parseSnapshot(document).appPolicies].map(([app, policy]) => {
    return [app, allRules(policy).map(({ decision }) => decision.rule)]
  })
  assert.deepEqual(names, [
    ['blog', ['attackers', 'b', 'rest']],
    ['shop', ['attackers', 's', 'rest']],
  ])
  assert.notEqual(
    document.hash,
    makeSnapshot(1, ORGANISATION, 1, null, { appPolicies: [ofApp('blog', 'b')] }).hash,
  )
  for (const bad of [{}, [{ app: '../x', document: '{}' }], [{ app: 'shop' }], [null]])
    assert.throws(() => parseSnapshot({ ...document, appPolicies: bad }), { code: 'SNAPSHOT_INVALID' })
  const parsed = (text: string) => () =>
    parseSnapshot({ ...document, appPolicies: [{ app: 'shop', document: text }] })
  assert.throws(parsed('{'), { code: 'SNAPSHOT_INVALID', message: /app "shop"/ })
  assert.throws(parsed('{"first": []}'), {
    code: 'POLICY_INVALID',
    message: /app "shop": first: unknown field/,
  })
})

test('a proxy of one app gets what is about this app', async () => {
  const document = makeSnapshot(1, ORGANISATION, 1, null, {
    appPolicies: [ofApp('blog', 'b'), ofApp('shop', 's')],
  })
  assert.deepEqual(snapshotOfApp(document, 'shop').appPolicies, [ofApp('shop', 's')])
  assert.deepEqual(snapshotOfApp(document, 'wiki').appPolicies, [])
  assert.equal(snapshotOfApp(document, null), document)
})

test('the text of a policy that did not change is in memory once', async () => {
  const reader = new AppPolicyReader(null)
  const read = (policies: readonly AppPolicyText[]) => {
    const bytes = Buffer.from(JSON.stringify(policies))
    return reader.read(bytes, { start: 0, end: bytes.length })
  }
  const before = await read([ofApp('blog', 'b'), ofApp('shop', 's'), ofApp('gone', 'g')])
  const after = await read([ofApp('shop', 't'), ofApp('blog', 'b'), ofApp('new', 'n')])
  assert.deepEqual(after, [ofApp('shop', 't'), ofApp('blog', 'b'), ofApp('new', 'n')])
  assert.equal(after[1], before[0])
  assert.notEqual(after[0], before[1])
})

test('a proxy of one app reads the policy of this app only', async () => {
  const appPolicies = [ofApp('blog', 'b'), ofApp('shop', 's'), { app: 'shop-2', document: 'not JSON' }]
  const document = makeSnapshot(1, ORGANISATION, 1, null, { appPolicies })
  const read = (package_: Buffer, app: string) =>
    unpackSnapshot(package_, 'nowhere', true, { appPolicies: new AppPolicyReader(app) })
  const whole = await packSnapshot(document)
  assert.deepEqual(await read(whole, 'shop'), { ...document, appPolicies: [ofApp('shop', 's')] })
  assert.deepEqual(await read(whole, 'wiki'), { ...document, appPolicies: [] })
  const damaged = (from: string, to: string) => Buffer.from(whole.toString().replace(from, to))
  const reasons = [
    ['"app":"blog"', '"app":"Blog"', /an invalid policy of an app/],
    ['{"app":"blog"', '{"ap":"blog"', /an invalid policy of an app/],
    ['},{"app":"shop"', '}{"app":"shop"', /not valid JSON/],
    ['"appPolicies":[', '"appPolicies":{', /not valid JSON/],
  ] as const
  for (const [from, to, why] of reasons) await assert.rejects(read(damaged(from, to), 'shop'), why)
})

test('only what has changed is compiled again', async () => {
  const compiler = new PolicyCompiler()
  const of = (app: string, name: string) => ({
    policy: ORGANISATION,
    appPolicies: [ofApp('blog', 'b'), ofApp(app, name)],
  })
  const before = await compiler.compile(of('shop', 's'), null)
  const after = await compiler.compile(structuredClone(of('shop', 't')), null)
  assert.equal(after.policy, before.policy)
  assert.equal(after.appPolicies.get('blog'), before.appPolicies.get('blog'))
  assert.equal(after.appPolicies.get('shop')!.app.rules[0]!.decision.rule, 't')
  assert.equal(after.appPolicies.get('shop')!.first, before.appPolicies.get('shop')!.first)
  await assert.rejects(compiler.compile({ policy: {}, appPolicies: [{ app: 'x', document: '[]' }] }, null))
  assert.equal((await compiler.compile(of('shop', 't'), null)).policy, after.policy)
  const other = await compiler.compile({ ...of('shop', 't'), policy: {} }, null)
  assert.equal(other.appPolicies.get('blog')!.app, before.appPolicies.get('blog')!.app)
  assert.deepEqual(other.appPolicies.get('blog')!.first.rules, [])
  assert.deepEqual((await compiler.compile({ policy: {} }, null)).appPolicies.size, 0)
})

test('an invalid policy of an app is refused, unless it was checked before', async () => {
  const bad = [{ app: 'shop', document: '{"rules": 1}' }]
  await assert.rejects(checkPolicies({ policy: {}, appPolicies: bad }, null), { code: 'POLICY_INVALID' })
  await checkPolicies({ policy: {}, appPolicies: bad }, { policy: {}, appPolicies: bad })
})

test('policies are sent as a difference', async () => {
  const before = [ofApp('blog', 'b'), ofApp('shop', 's')]
  const after = [ofApp('blog', 'b'), ofApp('shop', 't'), ofApp('wiki', 'w')]
  const changed = changedPolicies(after, before)
  assert.deepEqual(
    changed.map(({ document }) => document === ''),
    [true, false, false],
  )
  assert.deepEqual(wholePolicies(changed, before), after)
})

test('with 200 apps of 200 rules, the change of one app is a small difference', async () => {
  const policies = (changed: number) =>
    Array.from({ length: 200 }, (_, number) => {
      const rules = Array.from({ length: 200 }, (_, at) =>
        rule(`rule ${number} ${at}${number === changed ? 'x' : ''}`),
      )
      return { app: `app-${number}`, document: JSON.stringify({ rules }) }
    })
  const pack = (number: number, changed: number) =>
    packSnapshot(makeSnapshot(number, ORGANISATION, number, null, { appPolicies: policies(changed) }))
  const [before, after, none] = [await pack(1, -1), await pack(2, 100), await pack(3, -1)]
  assert.ok(before.length > 2_000_000 && before.length < 4_000_000, `${before.length}`)
  const delta = await makeDelta(before, after)
  const least = await makeDelta(before, none)
  assert.ok(delta.length < 20_000, `${delta.length} bytes for one app, ${least.length} for none`)
  assert.ok((await applyDelta(before, delta, after.length)).equals(after))
})

function ofApp(app: string, name: string): AppPolicyText {
  return { app, document: JSON.stringify({ rules: [rule(name)] }) }
}

function rule(name: string): object {
  return { name, when: { path: `/${encodeURIComponent(name)}` }, action: 'block' }
}

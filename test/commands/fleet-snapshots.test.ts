import assert from 'node:assert/strict'
import { NO_PAYMENTS } from '../../src/payment/payment-terms.ts'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { makeSnapshot, parseSnapshot, type SnapshotDocument } from '../../src/plane/snapshot.ts'
import { allRules } from '../../src/policy/policy.ts'
import { FleetSnapshots } from '../../src/runtime/gateway/fleet-snapshots.ts'
import { SILENT } from '../contract/seen.ts'

const ORGANISATION = { first: [rule('attackers')], last: [rule('rest')] }

test('a proxy of one app uses what the managers send about this app, and no more', async (t) => {
  const { snapshots, used } = await started(t, { app: 'shop', file: null })
  snapshots.take(sent(7))
  assert.deepEqual(used.map(rulesOf), [{ shop: ['attackers', 'of-shop', 'rest'] }])
  assert.equal(used[0]!.number, 7)
})

test('a proxy of all apps uses the Snapshot as it came', async (t) => {
  const { snapshots, used } = await started(t, { app: null, file: null })
  snapshots.take(sent(7))
  assert.deepEqual(used.map(rulesOf), [
    { shop: ['attackers', 'of-shop', 'rest'], blog: ['attackers', 'of-blog', 'rest'] },
  ])
})

test('its own file stands in place of the rules that the managers send for its app', async (t) => {
  const { snapshots, used, write, reload } = await started(t, { app: 'shop', file: text('of-file') })
  assert.deepEqual(used, [], 'without the rules of the organisation there is nothing to use')
  snapshots.take(sent(7))
  await write(text('of-changed-file'))
  await reload()
  snapshots.take(sent(8))
  snapshots.take(sent(20))
  assert.deepEqual(used.map(rulesOf), [
    { shop: ['attackers', 'of-file', 'rest'] },
    { shop: ['attackers', 'of-changed-file', 'rest'] },
    { shop: ['attackers', 'of-changed-file', 'rest'] },
    { shop: ['attackers', 'of-changed-file', 'rest'] },
  ])
  assert.deepEqual(
    used.map(({ number }) => number),
    [7, 8, 9, 20],
    'each has a higher number than the one before',
  )
})

test('a damaged file: it does not start, and later the rules from before stay in force', async (t) => {
  for (const damaged of ['{', '{"first": []}', '{"rules": [{"name": "x", "action": "blok"}]}'])
    await assert.rejects(started(t, { app: 'shop', file: damaged }), /policy\.json/)
  const { snapshots, used, write, reload } = await started(t, { app: 'shop', file: text('of-file') })
  snapshots.take(sent(7))
  await write('{"rules": [')
  await reload()
  snapshots.take(sent(8))
  assert.deepEqual(used.map(rulesOf), [
    { shop: ['attackers', 'of-file', 'rest'] },
    { shop: ['attackers', 'of-file', 'rest'] },
  ])
})

async function started(
  t: Test,
  { app, file }: { readonly app: string | null; readonly file: string | null },
) {
  const folder = mkdtempSync(join(tmpdir(), 'fleet-snapshots-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const policyFile = file === null ? null : join(folder, 'policy.json')
  const write = (content: string) => writeFileSync(join(folder, 'policy.json'), content)
  if (file !== null) write(file)
  const used: SnapshotDocument[] = []
  const publish = (document: SnapshotDocument) => void used.push(document)
  const snapshots = new FleetSnapshots(
    { app, policyFile, upstreams: ['app'], payments: NO_PAYMENTS },
    { publish },
  )
  await snapshots.load(SILENT)
  const reload = () => Promise.all(snapshots.reloaders.map((reloader) => reloader.check(true)))
  return { snapshots, used, write, reload }
}

function sent(number: number): SnapshotDocument {
  const appPolicies = ['shop', 'blog'].map((app) => ({ app, document: text(`of-${app}`) }))
  return makeSnapshot(number, ORGANISATION, 1, null, { appPolicies })
}

function rulesOf(document: SnapshotDocument) {
  const policies = [...parseSnapshot(document).appPolicies]
  return Object.fromEntries(
    policies.map(([app, policy]) => [app, allRules(policy).map(({ decision }) => decision.rule)]),
  )
}

function text(name: string): string {
  return JSON.stringify({ rules: [rule(name)] })
}

function rule(name: string) {
  return { name, when: { path: `/${name}` }, action: 'block' }
}

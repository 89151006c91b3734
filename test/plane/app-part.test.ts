import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parseApps } from '../../src/apps/app.ts'
import {
  type PartOfApp,
  composed,
  partsOf,
  readHead,
  readPart,
  writeHead,
  writePart,
} from '../../src/plane/app/app-part.ts'
import { readPartFile, writePartFile } from '../../src/plane/app/part-file.ts'
import { makeSnapshot, parseSnapshot } from '../../src/plane/snapshot.ts'
import { shrink } from '../../src/plane/snapshot-delta.ts'
import { temporaryFolder } from '../e2e/programs.ts'

const POLICY = JSON.stringify({ rules: [{ name: 'a', when: { path: '/x' }, action: 'block' }] })
const whole = makeSnapshot(7, { rules: [], otherwise: 'pass' }, 1, null, {
  apps: parseApps([
    { id: 'shop', hosts: ['shop.example'] },
    { id: 'wiki', hosts: ['wiki.example'] },
  ]),
  appPolicies: [
    { app: 'shop', document: POLICY },
    { app: 'default', document: POLICY },
  ],
})
const head = {
  ...{ number: 7, hash: whole.hash, madeAtMs: 1, before: 6 },
  base: { number: 3, hash: 'ab'.repeat(32) },
}
const shop = partsOf(whole).get('shop')!

test('the parts of a Snapshot make the Snapshot of one app', async () => {
  const parts = partsOf(whole)
  assert.deepEqual([...parts.keys()], ['shop', 'wiki', 'default'])
  assert.deepEqual([parts.get('wiki')!.policy, parts.get('default')!.definition], [null, null])
  const { apps: _, appPolicies: _policies, ...base } = { ...whole, number: 3 }
  const part = await readPart(await writePart(shop), 'shop')
  assert.deepEqual(part, shop)
  const document = composed(base, readHead(writeHead(head)), part)
  assert.deepEqual(document, { ...whole, apps: [whole.apps![0]], appPolicies: [whole.appPolicies![0]] })
  assert.deepEqual([...parseSnapshot(document).appPolicies.keys()], ['shop'])
})

const content = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
async function message(line: object, value: unknown): Promise<Buffer> {
  const bytes = content(value)
  const said = { format: 1, number: 7, app: 'shop', bytes: bytes.length, ...line }
  return Buffer.concat([Buffer.from(`${JSON.stringify(said)}\n`), await shrink(bytes)])
}

for (const [what, made, expected] of [
  ['nothing', async () => Buffer.alloc(0), /no first line/],
  ['a line that is too long', async () => Buffer.from(`${' '.repeat(2_000)}\n`), /no first line/],
  ['a line without JSON', async () => Buffer.from('no\nx'), /not valid JSON/],
  ['a line of null', async () => Buffer.from('null\nx'), /not an object/],
  ['another format', () => message({ format: 2 }, {}), /format 2, and this version reads 1/],
  ['another app', () => message({ app: 'wiki' }, {}), /another app than "shop"/],
  ['no app', () => message({ app: '../x' }, {}), /invalid first line/],
  [
    'a number that is a time in the future',
    () => message({ number: Date.now() + 10 * 86_400_000 }, { definition: null, policy: null }),
    /time in the future/,
  ],
  ['a negative number', () => message({ number: -1 }, {}), /invalid first line/],
  ['too much content', () => message({ bytes: 17 * 1024 ** 2 }, {}), /too large/],
  ['less content than it says', () => message({ bytes: 500 }, {}), /another length/],
  ['more content than it says', () => message({ bytes: 1 }, { policy: null }), /cannot be read/],
  ['invalid JSON as content', () => message({}, 'no'), /not valid JSON/],
  ['an object as policy', () => message({}, { definition: null, policy: {} }), /invalid policy/],
  [
    'a policy that does not compile',
    () => message({}, { definition: null, policy: '{"rules":1}' }),
    /app "shop"/,
  ],
  ['invalid JSON as policy', () => message({}, { definition: null, policy: '{' }), /app "shop"/],
  [
    'an app with another id',
    () => message({}, { definition: { id: 'wiki' }, policy: null }),
    /defines another app/,
  ],
  [
    'an invalid app',
    () => message({}, { definition: { id: 'shop', hosts: 1 }, policy: null }),
    /invalid app/,
  ],
  ['more bytes than a message has', async () => Buffer.alloc(5 * 1024 ** 2), /has 5242880 bytes/],
] as const)
  test(`a part is refused that has ${what}`, async () => {
    await assert.rejects(async () => readPart(await made(), 'shop'), expected)
  })

for (const [what, changed] of [
  ['a number that is a time in the future', { number: Date.now() + 10 * 86_400_000 }],
  ['a text as number', { number: '7' }],
  ['a short hash', { hash: 'x' }],
  ['no base', { base: null }],
  ['another format', { format: 2 }],
  ['more bytes than a head has', { more: ' '.repeat(2_000) }],
] as const)
  test(`a head is refused that has ${what}`, async () => {
    const bytes = Buffer.from(JSON.stringify({ format: 1, ...head, ...changed }))
    assert.throws(() => readHead(bytes), { code: 'SNAPSHOT_INVALID' })
  })

test('a part that is on disk is read again, and no damaged one', async (t) => {
  const file = join(temporaryFolder(t), 'app.part')
  assert.equal(await readPartFile(file, 'shop'), null)
  await writePartFile(file, { head, part: shop })
  assert.deepEqual(await readPartFile(file, 'shop'), { head, part: shop satisfies PartOfApp })
  await assert.rejects(readPartFile(file, 'wiki'), /another app/)
  writeFileSync(file, 'x', { flag: 'a' })
  await assert.rejects(readPartFile(file, 'shop'), /is damaged/)
})

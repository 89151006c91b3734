import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { builtSet, setIn, writeBuiltSet } from '../../src/runtime/signatures/built-set.ts'
import { fingerprintsOf } from '../../src/classify/known/knowledge.ts'
import { BUILTIN_ALONE, isBuiltinAlone, loadContent } from '../../src/runtime/signatures/signature-content.ts'
import { KnowledgeReader, makeSignatureSet } from '../../src/plane/signature-set.ts'

test('what the build has made is what would be made of the files', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'built-set-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  await writeBuiltSet(await loadContent(BUILTIN_ALONE), folder)
  const built = (await setIn(folder))!
  const made = (await makeSignatureSet(await loadContent(BUILTIN_ALONE), join(folder, 'made'), null))!
  assert.deepEqual({ ...built, index: null }, { ...made, index: null })
  assert.equal(built.index.bytes, made.index.bytes)
  const [one, other] = [await new KnowledgeReader().read(built), await new KnowledgeReader().read(made)]
  assert.deepEqual(one.list, other.list)
  const all = [...fingerprintsOf((await loadContent(BUILTIN_ALONE)).list)]
  assert.ok(all.length > 500)
  for (const { type, value } of all)
    assert.deepEqual(one.fingerprints.nearest(type, value), other.fingerprints.nearest(type, value))

  const files = ['signature-set.json', 'signature-set.index'].map((name) => join(folder, name))
  const before = files.map((file) => readFileSync(file))
  await writeBuiltSet(await loadContent(BUILTIN_ALONE), folder)
  assert.deepEqual(
    files.map((file) => readFileSync(file)),
    before,
  )
})

test('is missing in a checkout and for another byte order', async (t) => {
  assert.equal(await builtSet(), null)
  const folder = mkdtempSync(join(tmpdir(), 'built-set-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  await writeBuiltSet(await loadContent(BUILTIN_ALONE), folder, 'BE')
  assert.equal(await setIn(folder), null)
})

test('is not used if the operator has signatures of their own', async () => {
  assert.ok(isBuiltinAlone(BUILTIN_ALONE))
  const own = [
    { feeds: [Buffer.alloc(1)] },
    { accepted: '{}' },
    { paths: ['own.yaml'] },
    { ranges: [{} as never] },
    { weightsFile: 'weights.json' },
  ]
  for (const each of own) assert.ok(!isBuiltinAlone({ ...BUILTIN_ALONE, ...each }), Object.keys(each)[0])
})

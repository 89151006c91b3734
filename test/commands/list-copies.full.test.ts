import { SIGNATURES_FOLDER } from '../../src/shared/package-files.ts'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { ListCopies, type ListCopy } from '../../src/runtime/list-copies.ts'
import { compiled, SignatureCompiler } from '../../src/runtime/signatures/signature-compiler.ts'
import { SignatureReading } from '../../src/runtime/signatures/signature-files.ts'
import type { SignatureSet } from '../../src/plane/signature-set.ts'

test('a copy says of each file that comes with Gatehouse what the file says', async () => {
  const names = readdirSync(SIGNATURES_FOLDER).filter((name) => name.endsWith('.yaml'))
  assert.ok(names.length > 10)
  for (const name of names) {
    const path = join(SIGNATURES_FOLDER, name)
    const [copies, fromFile] = await read([path], [])
    const [used, fromCopy] = await read([path], copies)
    assert.equal(copies.length, 1, name)
    assert.deepEqual(used, copies, name)
    assert.deepEqual(fromCopy, fromFile, name)
  }
})

test('a copy is of these bytes and no others, and is used for them', async (t) => {
  const { own, folder } = place(t)
  own('a.yaml', list('one'))
  const [copies] = await read([folder], [])
  const told = copies.map((copy) => ({ ...copy, list: copy.list.replace('one', 'copied') }))
  assert.deepEqual(await names(folder, told), ['copied'])
  own('a.yaml', `${list('one')} `)
  assert.deepEqual(await names(folder, told), ['one'])
  own('b.yaml', list('one').replace('id: a', 'id: b'))
  const [both] = await read([folder], copies)
  assert.equal(both.length, 2, 'copies of files that are no longer read are dropped')
})

test('a damaged copy costs nothing but time', async (t) => {
  const { own, folder } = place(t)
  own('a.yaml', list('one'))
  const [[copy]] = await read([folder], [])
  assert.ok(copy)
  for (const damage of [
    { list: '' },
    { list: 'null' },
    { list: '[]' },
    { list: '[{"id":"a"}]' },
    { list: copy.list.slice(0, -1) },
    { places: [] },
  ])
    assert.deepEqual(await names(folder, [{ ...copy, ...damage }]), ['one'], JSON.stringify(damage))
})

test('an id that stands twice is said with both places, copied or not', async (t) => {
  const { own, folder } = place(t)
  own('a.yaml', list('one'))
  own('b.yaml', `# another\n${list('two')}`)
  const [a] = await read([join(folder, 'a.yaml')], [])
  const [b] = await read([join(folder, 'b.yaml')], [])
  for (const copies of [[], a, b, [...a, ...b]]) {
    const reading = await SignatureReading.of([folder], new ListCopies(copies))
    assert.throws(() => reading.done(), /b\.yaml:2:4: .*"a" is taken: it stands at .*a\.yaml:1:4/)
  }
})

test('more is not kept than a process is sent in one go', async () => {
  const copies = new ListCopies()
  const software = {
    id: 'a',
    name: 'x'.repeat(1024 * 1024),
    kind: 'tool',
    signatures: [],
    aliases: [],
    purposes: [],
  }
  const verification = { rangesUrl: null, ranges: null, reverseDns: [], signatureAgent: null }
  for (let i = 0; i < 6; i++)
    copies.add(`${i}`, { list: [{ ...software, verification } as never], places: [':1:1'] })
  assert.equal(copies.used.length, 3)
})

test('the process that compiles is given what was read before, and gives back what it has read', async (t) => {
  const { own, folder, data } = place(t)
  own('a.yaml', list('one'))
  const sources = { feeds: [], paths: [folder], weightsFile: null }
  const compiler = new SignatureCompiler(data)
  t.teardown(() => compiler.close())
  assert.ok(has(await compiler.make(sources), 'one'))
  own('a.yaml', list('two'))
  const set = await compiler.make(sources)
  assert.ok(has(set, 'two') && !has(set, 'one'))
  assert.equal(await compiler.make(sources), set)
  const { copies } = await compiled({ sources, folder: data, newest: set.hash, copies: [] })
  const told = copies.map((copy) => ({ ...copy, list: copy.list.replace('"two"', '"copied"') }))
  const again = await compiled({ sources, folder: data, newest: set.hash, copies: told })
  assert.ok(has(again.set!, 'copied'))
})

test('a checkout keeps copies of the lists that come with it beside its compiled code', async (t) => {
  const { data } = place(t)
  assert.equal(nameIn(data), 'GPTBot')
  const [kept] = globSync(join(data, '*/signature-lists.json'))
  assert.ok(kept)
  const text = readFileSync(kept, 'utf8')
  writeFileSync(kept, text.replaceAll('GPTBot', 'Copied'))
  assert.equal(nameIn(data), 'Copied')
  writeFileSync(kept, '[null, {"of": 1}]')
  assert.equal(nameIn(data), 'GPTBot')
  assert.equal(readFileSync(kept, 'utf8'), text, 'it is written again')
})

/** The name of a built-in agent in a process that keeps its compiled code in this folder. */
function nameIn(folder: string): string {
  const files = new URL('../../src/runtime/signatures/signature-files.ts', import.meta.url)
  const program = `
    const { loadSoftware } = await import(${JSON.stringify(files.href)})
    process.stdout.write((await loadSoftware(null)).find(({ id }) => id === 'gptbot').name)`
  const env = { ...process.env, NODE_COMPILE_CACHE: folder }
  return execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', env })
}

async function read(paths: readonly string[], before: readonly ListCopy[]) {
  const copies = new ListCopies(before)
  const reading = await SignatureReading.of(paths, copies)
  return [copies.used, reading.done().flatMap((file) => file.list)] as const
}

async function names(folder: string, before: readonly ListCopy[]): Promise<readonly string[]> {
  return (await read([folder], before))[1].map(({ name }) => name)
}

function has({ pieces }: SignatureSet, name: string): boolean {
  return pieces.some((piece) => piece.includes(`"name":"${name}"`))
}

function list(name: string): string {
  return `- {id: a, name: ${name}, kind: tool, signatures: [{user_agent: acme-one, source: a test, date: 2026-11-21}]}`
}

function place(t: Test) {
  const data = mkdtempSync(join(tmpdir(), 'gatehouse-copies-'))
  t.teardown(() => rmSync(data, { recursive: true }))
  const folder = join(data, 'own')
  mkdirSync(folder)
  return { data, folder, own: (name: string, text: string) => writeFileSync(join(folder, name), text) }
}

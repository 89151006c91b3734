import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tmpdir } from 'node:os'
import { type Test, test } from 'tap'
import { type OwnSources, type SignaturesFrom, SignaturesPart } from '../../src/runtime/live-parts.ts'
import { Reloader } from '../../src/runtime/reload.ts'
import { SignatureCompiler } from '../../src/runtime/signatures/signature-compiler.ts'
import { loadContent } from '../../src/runtime/signatures/signature-content.ts'
import { loadSoftware } from '../../src/runtime/signatures/signature-files.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { FeedStore } from '../../src/manage/publish/feed-store.ts'
import { feedKeyOf, makeFeedPrivateKey, parseFeedPrivateKey, signFeed } from '../../src/plane/feed.ts'
import type { SignatureSet } from '../../src/plane/signature-set.ts'

const key = parseFeedPrivateKey(makeFeedPrivateKey())
const builtin = await loadSoftware(null)
const builtinIds = new Set<string>(builtin.map(({ id }) => id))

test('ours give way to feeds, an earlier feed to a later one, and all to the operator', async (t) => {
  const { publish, own, load } = bench(t)
  assert.deepEqual(
    (await load()).map(({ id }) => id),
    builtin.map(({ id }) => id),
  )
  publish('first', 1, { a: 'first', b: 'first', c: 'first' })
  publish('second', 1, { b: 'second', c: 'second' })
  own('own.yaml', '- {id: c, name: own, kind: tool}')
  const merged = new Map((await load()).map(({ id, name }) => [id, name]))
  assert.deepEqual([merged.get('a'), merged.get('b'), merged.get('c')], ['first', 'second', 'own'])
  assert.equal(merged.size, builtin.length + 3)
})

test('files that come, change and go are noticed, and a bad one leaves all as it was', async (t) => {
  const { publish, own, start } = bench(t)
  const { names, check, lines } = await start()
  assert.deepEqual(names(), null)
  own('own.yaml', '- {id: x, name: one, kind: tool}')
  await check()
  assert.deepEqual(names(), { x: 'one' })
  publish('first', 1, { y: 'feed' })
  await check()
  assert.deepEqual(names(), { x: 'one', y: 'feed' })
  own('other.yaml', '- {id: x, name: again, kind: tool}')
  await check()
  assert.deepEqual(names(), { x: 'one', y: 'feed' })
  assert.match(String(lines().at(-1)!['problems']), /own\.yaml:1:\d+: .*"x" is taken: .*other\.yaml:1:/)
  own('other.yaml', '[]')
  publish('first', 2, { y: 'newer' })
  await check()
  assert.deepEqual(names(), { x: 'one', y: 'newer' })
})

test('what was accepted and decides stands with its software, and no more of it than every worker can hold', async () => {
  const line = (i: number) => {
    const ja4 = `t13d1517h2_${String(i).padStart(12, '0')}_cb7bf5808d99`
    return JSON.stringify({ software: 'gptbot', ja4, decisive: true, source: 'accepted', date: '2026-11-21' })
  }
  const load = (count: number) => {
    const accepted = Array.from({ length: count }, (_, i) => line(i)).join('\n')
    return loadContent({ feeds: [], accepted, paths: [], weightsFile: null })
  }
  const { list } = await load(2)
  const { signatures } = list.find(({ id }) => id === 'gptbot')!
  assert.equal(signatures.filter((each) => 'isDecisive' in each && each.isDecisive).length, 2)
  await load(10_000)
  await assert.rejects(load(10_001), { code: 'SIGNATURES_TOO_MANY' })
})

test('what a pin holds back is not used', async (t) => {
  const { publish, store, start } = bench(t)
  publish('first', 1, { y: 'old' })
  const { names, check } = await start()
  publish('first', 2, { y: 'new' })
  await check()
  assert.deepEqual(names(), { y: 'new' })
  await store.setPin('first', 1)
  await check()
  assert.deepEqual(names(), { y: 'old' })
  await store.setPin('first', null)
  await check()
  assert.deepEqual(names(), { y: 'new' })
})

test('the folders that are watched are those in which something may come', async (t) => {
  const { part, folder } = bench(t)
  const folders = new Set((await part.files()).map((file) => dirname(file)))
  assert.ok(folders.has(join(folder, 'feeds')), [...folders].join())
  assert.ok(folders.has(join(folder, 'own')))
})

test('a file that is named and not there is a mistake', async (t) => {
  const { folder, part } = bench(t)
  rmSync(join(folder, 'own'), { recursive: true })
  await assert.rejects(part.load(), { code: 'SIGNATURES_INVALID' })
})

interface Named {
  readonly id: string
  readonly name: string
}

function softwareIn({ pieces }: SignatureSet): readonly Named[] {
  return pieces.flatMap((piece) => JSON.parse(piece))
}

test("weights of one's own are taken, also when they change, and bad ones leave all as it was", async (t) => {
  const { folder, own, store } = bench(t)
  const weightsFile = join(folder, 'weights.json')
  const write = (temperature: number | string) =>
    writeFileSync(weightsFile, JSON.stringify({ temperature, bias: { agent: 1, automation: 0, human: 0 } }))
  write(2)
  const used: SignatureSet[] = []
  const compiler = new SignatureCompiler(join(folder, 'snapshots'))
  const sources = { paths: [join(folder, 'own')], weightsFile }
  const part = new SignaturesPart(fromFiles(sources, store), compiler, (set) => void used.push(set))
  const written: string[] = []
  const log = createLogTo('info', { write: (line) => void written.push(line) })
  const { value, reloader } = await Reloader.load(part, log)
  assert.equal((value.weights as { temperature: number }).temperature, 2)
  write('warm')
  await reloader.check(false)
  assert.deepEqual([used.length, reloader.status.isCurrent], [0, false])
  assert.match(written.at(-1)!, /weights\.json:1:2: temperature: must be a number/)
  rmSync(weightsFile)
  await reloader.check(false)
  assert.match(written.at(-1)!, /weights\.json: no such file/)
  write(3)
  own('own.yaml', '- {id: x, name: one, kind: tool}')
  await reloader.check(false)
  assert.deepEqual([reloader.status.isCurrent, used.length], [true, 1])
  assert.equal((used[0]!.weights as { temperature: number }).temperature, 3)
})

function fromFiles(own: OwnSources, feeds: FeedStore): SignaturesFrom {
  return { own, feeds, accepted: async () => '', ranges: null }
}

function bench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-signatures-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'own'))
  mkdirSync(join(folder, 'feeds'))
  const written: string[] = []
  const log = createLogTo('info', { write: (line) => void written.push(line) })
  const trusts = ['first', 'second'].map((name) => ({ name, keys: [feedKeyOf(key)] }))
  const store = new FeedStore(join(folder, 'feeds'), trusts, log)
  let used: readonly Named[] | null = null
  const compiler = new SignatureCompiler(join(folder, 'snapshots'))
  const own = { paths: [join(folder, 'own')], weightsFile: null }
  const part = new SignaturesPart(fromFiles(own, store), compiler, (set) => {
    used = softwareIn(set)
  })
  return {
    ...{ folder, part, store },
    load: async () => softwareIn(await part.load()),
    own: (name: string, text: string) => writeFileSync(join(folder, 'own', name), text),
    publish(name: string, version: number, software: Record<string, string>) {
      const list = Object.entries(software).map(([id, name]) => ({ id, name, kind: 'tool' }))
      const content = { name, version, created: '2026-11-21T10:00:00Z', expires: null, software: list }
      writeFileSync(join(folder, 'feeds', `${name}@${version}.json`), signFeed(content, [key]))
    },
    async start() {
      const { reloader } = await Reloader.load(part, log)
      const names = () => {
        const added = used?.filter(({ id }) => !builtinIds.has(id)).map(({ id, name }) => [id, name])
        return added === undefined ? null : Object.fromEntries(added)
      }
      const lines = (): Record<string, unknown>[] => written.map((line) => JSON.parse(line))
      return { names, lines, check: () => reloader.check(false) }
    },
  }
}

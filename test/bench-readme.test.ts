import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'

const README = readFileSync('bench/README.md', 'utf8')
const SCRIPTS: Readonly<Record<string, string>> = JSON.parse(readFileSync('package.json', 'utf8')).scripts
const LINES_MAX = 330

test('every command of bench/README.md exists, and every benchmark is in it', async () => {
  const named = new Set([...README.matchAll(/npm run\s+([\w:-]+)/g)].map(([, name]) => name!))
  assert.deepEqual(
    [...named].filter((name) => !(name in SCRIPTS)),
    [],
  )
  const benchmarks = Object.keys(SCRIPTS).filter((name) => /(?:\s|^)node bench\//.test(SCRIPTS[name]!))
  assert.ok(benchmarks.length > 20)
  assert.deepEqual(
    benchmarks.filter((name) => !named.has(name)),
    [],
  )
})

test('every file that bench/README.md names exists', async () => {
  const linked = [...README.matchAll(/\]\(([^)#]+)/g)].map(([, path]) => `bench/${path}`)
  const named = [...README.matchAll(/\bbench\/[\w/-]+\.ts/g)].map(([path]) => path)
  assert.ok(linked.length > 3 && named.length > 1)
  assert.deepEqual(
    [...linked, ...named].filter((path) => !existsSync(path)),
    [],
  )
})

test('bench/README.md is short and has the marks of the load tables', async () => {
  assert.ok(README.split('\n').length <= LINES_MAX + 1)
  const load = readFileSync('bench/load/load.ts', 'utf8')
  for (const [mark] of load.matchAll(/<!-- .* -->/g)) assert.equal(README.split(mark).length, 2, mark)
})

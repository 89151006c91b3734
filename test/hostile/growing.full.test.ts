import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { growing } from './growing.ts'
import { BOUNDS, REASONS } from './growing-limits.ts'

test('whatever in src/ can become longer has a bound that is written down', async (t) => {
  const found = growing().map(({ file, name }) => `${file.slice('src/'.length)} ${name}`)
  const listed = BOUNDS.flatMap(([file, , ...names]) => names.map((name) => `${file} ${name}`))
  assert.deepEqual(
    found.filter((each) => !listed.includes(each)),
    [],
    'say in growing-limits.ts what bounds these',
  )
  assert.deepEqual(
    listed.filter((each) => !found.includes(each)),
    [],
    'these are there no more',
  )
  t.comment(`${found.length} of them`)
})

test('limits that are named are there, and are looked at', async () => {
  for (const [file, bound] of BOUNDS) {
    if (Object.hasOwn(REASONS, bound)) continue
    const [name = '', place = file] = bound.split(' ').toReversed()
    const uses = readFileSync(`src/${place}`, 'utf8').split(new RegExp(`\\b${name}\\b`)).length - 1
    assert.ok(uses >= (name === 'max' ? 1 : 2), `${file}: ${bound}`)
  }
})

test('what looks for them sees fields, modules, what constructors make, and no tables', async () => {
  const seen = growing(
    'src/{identity/fetch/fetch-places,fingerprint/ja4plus/ja4h,classify/verdict/traffic}.ts',
  )
  assert.deepEqual(
    seen.map(({ name, kind }) => `${kind} ${name}`),
    [
      ...['Map Recent.#newer', 'Map Recent.#older', 'Map NameHashes.#hashes'],
      ...['Map FetchPlaces.#running', 'Set FetchPlaces.#waiting', 'LateCache FetchPlaces.#minutes'],
    ],
  )
})

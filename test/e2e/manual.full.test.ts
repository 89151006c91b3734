import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { test } from 'tap'
import { type Examples, startBench } from './manual/bench.ts'
import { examplesOf, manualPages } from './manual/examples.ts'
import { skipped } from './programs.ts'

/** Only this page, by its name: `PAGE=events npx tap test/e2e/manual.full.test.ts`. */
const ONLY = process.env['PAGE']

test('every example of the manual does what it says', { skip: skipped('curl') }, async (t) => {
  const bench = await startBench(t)
  for (const page of manualPages()) {
    const name = basename(page, '.md').toLowerCase()
    if (ONLY !== undefined && name !== ONLY) continue
    const runners = await runnersOf(name)
    const found = examplesOf(page)
    const unknown = found.filter(({ text }) => runners.filter(([mark]) => text.includes(mark)).length !== 1)
    assert.deepEqual(unknown, [], `each example of ${page} is in its table once`)
    assert.equal(found.length, runners.length, `the table of ${page} lists only its examples`)
    for (const { section, text: example } of found) {
      const [mark, how] = runners.find(([mark]) => example.includes(mark))!
      if (typeof how === 'string') assert.ok(existsSync(how), `${page}, ${mark}: ${how} does not exist`)
      else await t.test(`${page}, ${section}: ${mark.trim()}`, async () => void (await how(bench, example)))
    }
  }
})

test('every script that the manual names exists', async () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
  const named = manualPages().flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name!),
  )
  assert.ok(named.length > 20, `${named.length} scripts`)
  assert.deepEqual(
    named.filter((name) => !(name in scripts)),
    [],
  )
})

async function runnersOf(name: string): Promise<Examples> {
  const file = new URL(`./manual/pages/${name}.ts`, import.meta.url)
  if (!existsSync(file)) return []
  const { examples }: { examples: Examples } = await import(file.href)
  return examples
}

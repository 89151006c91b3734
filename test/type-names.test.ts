import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'tap'

/** Mirrors the schemas of the API, whose names are those of the server's types. */
const GENERATED = 'src/dashboard/api/operations.ts'

test('a name of an exported type has one meaning in all of src', async () => {
  const files = new Map<string, string[]>()
  for (const file of globSync('src/**/*.{ts,tsx}').filter((file) => file !== GENERATED)) {
    const declared = readFileSync(file, 'utf8').matchAll(
      /^export (?:abstract )?(?:interface|type|class) (\w+)/gm,
    )
    for (const [, name] of declared) files.set(name!, [...(files.get(name!) ?? []), file])
  }
  assert.ok(files.size > 800, `${files.size} types`)
  const shared = [...files].filter(([, of]) => new Set(of).size > 1)
  assert.deepEqual(shared, [])
})

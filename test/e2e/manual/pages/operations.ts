import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'
import { withConfiguration } from '../configuration.ts'

export const examples: Examples = [['gatehouse-monday.db', looksAfterIt]]

async function looksAfterIt(bench: Bench, example: string): Promise<void> {
  const { out } = await withConfiguration(bench, example)
  assert.match(out, /gatehouse\.yaml/)
  assert.match(out, /"status":"ready"/)
  assert.ok(existsSync(join(bench.folder, 'gatehouse-monday.db')))
}

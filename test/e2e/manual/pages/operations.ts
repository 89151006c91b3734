import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'
import { withConfiguration } from '../configuration.ts'

export const examples: Examples = [
  ['gatehouse-monday.db', looksAfterIt],
  ['limit_a_second', isAGoodConfiguration],
]

async function isAGoodConfiguration(bench: Bench, example: string): Promise<void> {
  writeFileSync(join(bench.folder, 'sampled.yaml'), `proxy: {upstream: ${bench.app.url}}\n${example}`)
  const { out } = await bench.shell('gatehouse check --config sampled.yaml')
  assert.match(out, /human: 0\.01/)
}

async function looksAfterIt(bench: Bench, example: string): Promise<void> {
  const { out } = await withConfiguration(bench, example)
  assert.match(out, /gatehouse\.yaml/)
  assert.match(out, /"status":"ready"/)
  assert.ok(existsSync(join(bench.folder, 'gatehouse-monday.db')))
}

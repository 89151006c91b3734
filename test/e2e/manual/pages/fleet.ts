import assert from 'node:assert/strict'
import type { Bench, Examples } from '../bench.ts'
import { withConfiguration } from '../configuration.ts'

export const examples: Examples = [
  ['gatehouse manage --config', 'test/e2e/fleet.full.test.ts'],
  ['snapshot export', writesASnapshot],
]

async function writesASnapshot(bench: Bench, example: string): Promise<void> {
  const { out } = await withConfiguration(bench, example)
  assert.match(out, /^Snapshot +1$/m)
}

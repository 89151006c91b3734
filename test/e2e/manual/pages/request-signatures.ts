import assert from 'node:assert/strict'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [['grep gatehouse_signatures_total', countsOne]]

async function countsOne({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /^gatehouse_signatures_total\{finding="failed",why="not-covered"\} \d/m)
}

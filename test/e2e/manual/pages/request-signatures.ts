import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [['grep gatehouse_signatures_total', countsOne]]

async function countsOne({ shell }: Bench, example: string): Promise<void> {
  // Workers report their counts a moment later.
  for (const untilMs = Date.now() + 20_000; Date.now() < untilMs; await wait(100)) {
    const { out } = await shell(example)
    if (/^gatehouse_signatures_total\{finding="failed",why="expired"\} [1-9]/m.test(out)) return
  }
  assert.fail('the signature is not counted')
}

import assert from 'node:assert/strict'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [['/v1/events?types=', listensToEvents]]

async function listensToEvents({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /^retry: \d+$/m)
  assert.match(out, /^\{"events":\[/m)
}

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'
import { exampleWith, GUIDE } from '../examples.ts'

export const examples: Examples = [
  ['node gnap.mjs', getsAGrant],
  ['// gnap.mjs', 'test/manage/gnap.full.test.ts'],
]

async function getsAGrant({ folder, shell }: Bench, example: string): Promise<void> {
  writeFileSync(join(folder, 'gnap.mjs'), exampleWith(`${GUIDE}/gnap.md`, '// gnap.mjs'))
  const { out } = await shell(example)
  assert.match(out, /agent_id: 'gptbot'/)
}

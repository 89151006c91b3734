import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [['# gatehouse.yaml', isAGoodConfiguration]]

async function isAGoodConfiguration({ folder, shell }: Bench, example: string): Promise<void> {
  writeFileSync(join(folder, 'proxy.yaml'), example)
  const { out } = await shell('gatehouse check --config proxy.yaml')
  assert.match(out, /www\.shop\.example/)
}

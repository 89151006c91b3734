import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['# privacy.yaml', ({ folder }, example) => writeFileSync(join(folder, 'privacy.yaml'), example)],
  ['check --config privacy.yaml', checks],
  ['erase --address', erases],
]

async function erases({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /WOULD BE\nsightings +0/)
  // An example of another page may have made the account.
  assert.match(out, /DONE\nusers +(?:0\n|1 +deleted\n)/)
}

async function checks({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /addresses: keyed_hash/)
  assert.match(out, /paths: pattern/)
}

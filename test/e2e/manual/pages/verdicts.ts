import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['# request.yaml', ({ folder }, example) => writeFileSync(join(folder, 'request.yaml'), example)],
  ['--explain request.yaml', explains],
  ['verdict  agent', (_, example) => assert.ok(explained.includes(example), explained)],
]

/** What `check --explain` printed. */
let explained = ''

async function explains({ shell }: Bench, example: string): Promise<void> {
  explained = (await shell(example)).out
}

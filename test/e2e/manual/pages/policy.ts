import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['# policy.yaml', ({ folder }, example) => writeFileSync(join(folder, 'policy.yaml'), example)],
  ['# request.yaml', ({ folder }, example) => writeFileSync(join(folder, 'request.yaml'), example)],
  ['--explain request.yaml', explains],
  ['# purpose.yaml', ({ folder }, example) => writeFileSync(join(folder, 'purpose.yaml'), example)],
  ['--purpose training', listsAPurpose],
  ['/v1/policy/explain', asksTheApi],
]

async function explains({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /block, by rule "tools at the login"/)
  assert.match(out, /HTTP\/1.1 403/)
}

async function listsAPurpose({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /^gptbot .*training/m)
  assert.doesNotMatch(out, /^chatgpt-user /m)
  assert.match(out, /block, by rule "training"/)
}

async function asksTheApi({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.deepEqual(json[0].policy.rules, [])
  assert.equal(json[1].decision.action, 'tag')
}

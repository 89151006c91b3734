import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['# mcp-policy.yaml', ({ folder }, example) => writeFileSync(join(folder, 'mcp-policy.yaml'), example)],
  ['--explain call.json', explains],
  ['/v1/requests?mcp_tool', asksTheApi],
]

async function explains({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /no deletes/)
  assert.match(out, /"error":\{"code":-32003,"message":"This request is not allowed here\."/)
}

async function asksTheApi({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.deepEqual(json[0].items ?? json[0].requests ?? json[0].data, [])
}

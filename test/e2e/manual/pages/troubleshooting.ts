import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import type { Bench, Examples } from '../bench.ts'
import { withConfiguration } from '../configuration.ts'

export const examples: Examples = [
  ['gatehouse doctor', looks],
  ['/v1/requests?limit', listsRequests],
  ['--explain', explains],
]

async function looks(bench: Bench, example: string): Promise<void> {
  const { out } = await withConfiguration(bench, example)
  assert.match(out, /"status":"ready"/)
  assert.match(out, /upstream/i)
}

async function listsRequests({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.ok(Array.isArray(json[0].requests))
}

async function explains({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example, { instead: [['config/', `${resolve('config')}/`]] })
  assert.match(out, /crawlers/)
  assert.match(out, /block/)
}

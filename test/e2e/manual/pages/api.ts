import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['--name me --access admin', usesTheApi],
  ['/v1/requests/facets', countsAndExports],
  ['/v2/signatures', betaAnswers],
]

async function usesTheApi({ folder, shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.equal(json[0].agents[0].id, 'gptbot')
  assert.deepEqual([json[1].is_agent, json[1].agent_id], [true, 'gptbot'])
  assert.match(readFileSync(join(folder, 'key'), 'utf8'), /^ghk_\S+\n$/)
}

async function countsAndExports({ folder, shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.deepEqual(
    json[0].facets.map(({ facet }: { facet: string }) => facet),
    ['host', 'agent_id'],
  )
  assert.match(readFileSync(join(folder, 'requests.csv'), 'utf8'), /^id,seen_at,app,/)
}

async function betaAnswers({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.equal(json[0].signatures.length, 1)
  assert.equal(json[1].length ?? json[1].results.length, 2)
}

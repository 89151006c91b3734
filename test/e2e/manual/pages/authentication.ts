import assert from 'node:assert/strict'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['--name reader', isKnown],
  ['clients create --name ci', getsAToken],
]

async function getsAToken({ shell }: Bench, example: string): Promise<void> {
  const [make, ...ask] = example.split('\n') as [string, ...string[]]
  const { err } = await shell(make)
  const [id] = /^cli_[\w-]+/m.exec(err) ?? assert.fail(err)
  const { json } = await shell(ask.join('\n'), { variables: { ID: id } })
  assert.equal(json[0].token_type, 'Bearer')
}

async function isKnown({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.deepEqual(json[0].scopes.toSorted(), ['detect', 'read'])
}

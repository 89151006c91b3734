import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { withKeyedSignatures } from '../../../../src/identity/verify/keyed-signature.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['grep gatehouse_signatures_total', countsOne],
  ['Signature-Key: sig1=jwks_uri', namesKey],
]

function namesKey(_: Bench, example: string): void {
  const lines = example.trim().split('\n')
  const rawHeaders = [
    ...lines.flatMap((line) => line.split(/: (.*)/).slice(0, 2)),
    'Signature',
    'sig1=:AAAA:',
  ]
  const request = { method: 'GET', target: '/', base: 'https://gate.example', rawHeaders }
  const createdMs = Number(/created=(\d+)/.exec(example)![1]) * 1_000
  const [read] = withKeyedSignatures([], request, { allowPrivate: false }, createdMs)
  assert.ok(read?.kind === 'published', JSON.stringify(read))
  assert.deepEqual(
    [read.agentId, read.keysOf, read.kid],
    ['https://agent.example', 'https://agent.example/.well-known/agent-metadata', 'key-1'],
  )
}

async function countsOne({ shell }: Bench, example: string): Promise<void> {
  // Workers report their counts a moment later.
  for (const untilMs = Date.now() + 20_000; Date.now() < untilMs; await wait(100)) {
    const { out } = await shell(example)
    if (/^gatehouse_signatures_total\{finding="failed",why="expired"\} [1-9]/m.test(out)) return
  }
  assert.fail('the signature is not counted')
}

import assert from 'node:assert/strict'
import { freePort } from '../../ports.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['gatehouse help', showsHelp],
  ['signatures import', imports],
]

async function showsHelp({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /^Usage: gatehouse keys create/)
  assert.match(out, /^ {2}policy /m)
}

async function imports({ shell }: Bench, example: string): Promise<void> {
  const port = await freePort()
  const [record, add] = example.replaceAll('curl.jsonl', 'added.jsonl').trim().split('\n') as [string, string]
  const asking = `(until command curl -sk --http2 https://localhost:${port}/; do sleep 0.1; done) & `
  const { out } = await shell(`${asking}${record} --listen 127.0.0.1:${port}\nwait\n${add}`)
  assert.match(out, /curl/)
}

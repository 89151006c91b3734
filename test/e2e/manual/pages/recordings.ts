import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../ports.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['record --out curl.jsonl', records],
  ['"client_hello_hex"', recordsLinesLikeThese],
  ['evaluate test/classify', evaluates],
  ['Brier 0.0237', 'test/e2e/recordings-tables.full.test.ts'],
  ['Brier 0.0239', 'test/e2e/recordings-tables.full.test.ts'],
  ['--compare before.json', compares],
]

async function records({ folder, shell }: Bench, example: string): Promise<void> {
  const [first, second] = example.trim().split('\n') as [string, string]
  const port = await freePort()
  const asking = `(until command curl -sk --http2 https://localhost:${port}/; do sleep 0.1; done) & `
  await shell(`${asking}${first} --listen 127.0.0.1:${port}\nwait`)
  assert.equal(JSON.parse(readFileSync(join(folder, 'curl.jsonl'), 'utf8')).client, 'curl')
  await shell(`${second} --listen 127.0.0.1:0`, { instead: [['--seconds 600', '--seconds 1']] })
  assert.ok(existsSync(join(folder, 'app.jsonl')))
}

function recordsLinesLikeThese({ folder }: Bench, example: string): void {
  const said = JSON.parse(example.replace(',…]', ']').replaceAll(',…', ''))
  const row = JSON.parse(readFileSync(join(folder, 'curl.jsonl'), 'utf8'))
  assert.deepEqual(Object.keys(row), Object.keys(said))
  assert.deepEqual(Object.keys(row.requests[0]), Object.keys(said.requests[0]))
  assert.deepEqual([row.client, row.label, row.alpn], [said.client, said.label, said.alpn])
}

async function evaluates({ folder, shell }: Bench, example: string): Promise<void> {
  writeYours(folder)
  const { out } = await shell(example)
  assert.match(out, /^llm-sdk /m)
  assert.ok(JSON.parse(readFileSync(join(folder, 'weights.json'), 'utf8')))
}

async function compares({ folder, shell }: Bench, example: string): Promise<void> {
  writeYours(folder)
  const { out } = await shell(example)
  assert.match(out, /^Compared with \d/m)
  assert.match(out, /^llm-sdk +\d+ +\d+ +\d+ +0 /m)
}

/** A part of the recording, because fitting takes its time. */
function writeYours(folder: string): void {
  const lines = readFileSync('test/classify/recorded.jsonl', 'utf8').split('\n')
  writeFileSync(join(folder, 'yours.jsonl'), lines.filter((_, at) => at % 10 === 0).join('\n'))
}

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseConfig } from '../../../../src/config/config.ts'
import { freePort } from '../../ports.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['record --out curl.jsonl', records],
  ['"client_hello_hex"', recordsLinesLikeThese],
  ['by label, and what was missed', evaluates],
  ['Brier 0.0237', 'test/e2e/recordings-tables.full.test.ts'],
  ['Brier 0.0239', 'test/e2e/recordings-tables.full.test.ts'],
  ['--compare before.json', compares],
  ['signatures: own/', publishes],
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
  writeAcme(folder)
  const { out } = await shell(example, {
    instead: [
      ['--signatures signatures', `--signatures ${resolve('signatures')}`],
      ['test/classify/recorded.jsonl yours.jsonl', 'yours.jsonl'],
    ],
  })
  assert.match(readFileSync(join(folder, 'own/acme.yaml'), 'utf8'), /ja4: /)
  assert.match(out, /^Compared with \d/m)
  assert.match(out, /^llm-sdk +\d+ +\d+ +\d+ +0 /m)
}

function publishes(_: Bench, example: string): void {
  const text = `proxy:\n  upstream: http://127.0.0.1:3000\n${example}`
  const { config } = parseConfig({ flags: {}, env: {}, file: { name: 'gatehouse.yaml', text } })
  assert.deepEqual([config.signatures.length, config.weights.file !== null], [1, true])
}

/** A client of the reader, with the entry that they write for it. */
function writeAcme(folder: string): void {
  const row = JSON.parse(readFileSync(join(folder, 'curl.jsonl'), 'utf8'))
  writeFileSync(join(folder, 'acme.jsonl'), `${JSON.stringify({ ...row, client: 'acme' })}\n`)
  mkdirSync(join(folder, 'own'))
  const entry = `- id: acme\n  name: Acme\n  kind: agent\n  category: custom\n  signatures:\n    - ${SIGNATURE}\n`
  writeFileSync(join(folder, 'own/acme.yaml'), entry)
}

const SIGNATURE = '{ user_agent: acme/, source: its author, date: 2026-11-27 }'

/** A part of the recording, because fitting takes its time. */
function writeYours(folder: string): void {
  const lines = readFileSync('test/classify/recorded.jsonl', 'utf8').split('\n')
  writeFileSync(join(folder, 'yours.jsonl'), lines.filter((_, at) => at % 10 === 0).join('\n'))
}

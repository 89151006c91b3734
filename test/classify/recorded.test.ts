import assert from 'node:assert/strict'
import { createReadStream, readFileSync } from 'node:fs'
import { test } from 'tap'
import { type CorpusRow, KNOWN_LABELS } from '../../src/classify/known/corpus.ts'
import { readCorpus } from '../../src/commands/record/corpus-file.ts'
import { redactHead } from '../../src/commands/record/redaction.ts'

/** Made with `gatehouse record` of programs as they are installed; config/guide/recordings.md says how. */
const FILE = 'test/classify/recorded.jsonl'

const rows: CorpusRow[] = []
for await (const { row } of readCorpus(createReadStream(FILE), (number, fault) => {
  throw new Error(`line ${number}: ${fault.message}`)
}))
  rows.push(row)

test('every recording says who it is of, once, and what can be read of its TLS', async () => {
  assert.ok(rows.length > 100)
  assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length)
  for (const { id, label, version, print } of rows) {
    assert.ok(KNOWN_LABELS.includes(label as (typeof KNOWN_LABELS)[number]), `${id}: ${label}`)
    assert.ok(version !== null && print.ja4 !== null && print.traits !== null, id)
  }
  assert.deepEqual(new Set(rows.map(({ label }) => label)), new Set(KNOWN_LABELS))
})

test('no recording holds a secret, or a path of the machine it was made on', async () => {
  for (const { id, requests } of rows) {
    for (const { head } of requests) assert.deepEqual(redactHead(head, false), head, id)
  }
  assert.doesNotMatch(readFileSync(FILE, 'utf8'), /\/(?:home|root|tmp|work)\//)
})

test('what was written down beside it is what our code computes', async () => {
  const lines = readFileSync(FILE, 'utf8').trimEnd().split('\n')
  for (const [index, line] of lines.entries()) {
    const written = JSON.parse(line) as { h2?: { akamai: string | null }; requests: { ja4h: string }[] }
    const { id, print, requests } = rows[index]!
    assert.equal(print.http2, written.h2?.akamai ?? null, id)
    assert.deepEqual(
      requests.map(({ ja4h }) => ja4h),
      written.requests.map(({ ja4h }) => ja4h),
      id,
    )
  }
})

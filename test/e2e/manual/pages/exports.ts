import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['folder: ./requests', isValid],
  ['bucket: s3://', isValid],
  ['url: tls://nats.example', isValid],
  ['endpoint: https://otel.example', isValid],
]

async function isValid({ folder, app, shell }: Bench, example: string): Promise<void> {
  for (const name of ['access-key', 'secret-key', 'otel-token'])
    writeFileSync(join(folder, name), 'a-secret-of-the-manual', { mode: 0o600 })
  writeFileSync(join(folder, 'gatehouse.creds'), 'a-secret-of-the-manual', { mode: 0o600 })
  writeFileSync(join(folder, 'sinks.yaml'), `proxy:\n  upstream: ${app.url}\n${example}`)
  const { out } = await shell('gatehouse check --config sinks.yaml\n')
  assert.match(
    out,
    /\n {2}(?:parquet|nats|otlp_logs):\n(?: {4}.*\n)*? {4}(?:folder|bucket|subject|endpoint): \S+ # sinks\.yaml:\d/,
  )
  assert.doesNotMatch(out, /a-secret-of-the-manual/)
}

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['url: clickhouse://', isValid],
  ['CREATE DATABASE', 'test/store/clickhouse.full.test.ts'],
  ['toStartOfHour', 'test/store/clickhouse.full.test.ts'],
]

async function isValid({ folder, app, shell }: Bench, example: string): Promise<void> {
  const password = join(folder, 'clickhouse-password')
  writeFileSync(password, 'a-secret-of-the-manual', { mode: 0o600 })
  const given = example.replace('/run/secrets/clickhouse-password', password)
  writeFileSync(join(folder, 'clickhouse.yaml'), `proxy:\n  upstream: ${app.url}\n${given}`)
  const { out } = await shell('gatehouse check --config clickhouse.yaml\n')
  assert.match(out, /\n {2}url: clickhouse:\/\/gatehouse@clickhouse\.example:8123\/gatehouse/)
  assert.doesNotMatch(out, /a-secret-of-the-manual/)
}

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['trusted_headers:', trustsHeadersOfAProxy],
  ['// app.mjs', 'test/e2e/manual-apps.full.test.ts'],
  ['# agents.py', 'test/e2e/manual-apps.full.test.ts'],
  ['// Prices.java', 'test/e2e/manual-apps.full.test.ts'],
  ['map $http_x_agent_verdict', 'test/e2e/manual-apps.full.test.ts'],
  ['isProven', 'test/proxy/tag-signature.test.ts'],
]

async function trustsHeadersOfAProxy({ folder, shell }: Bench, example: string): Promise<void> {
  writeFileSync(join(folder, 'trusted.yaml'), example)
  const { out } = await shell('gatehouse check --config trusted.yaml --upstream http://127.0.0.1:3000')
  assert.match(out, /cf-connecting-ip/)
}

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['users codes', makesPeople],
  ['roles_claim:', isAGoodConfiguration],
  ['assertions:', isAGoodConfiguration],
  ['client_secret_file:', isAGoodConfiguration],
  ['--without-password', makesSomebodyWithoutPassword],
]

async function makesPeople({ shell }: Bench, example: string): Promise<void> {
  const { out, err } = await shell(example, { input: 'a password of tests and of nothing else\n' })
  assert.match(out + err, /otpauth:\/\//)
}

async function isAGoodConfiguration({ folder, shell }: Bench, example: string): Promise<void> {
  writeFileSync(join(folder, 'secret'), 'a secret of tests', { mode: 0o600 })
  writeFileSync(join(folder, 'openid.yaml'), example.replace('/run/secrets/openid', join(folder, 'secret')))
  const { out } = await shell('gatehouse check --config openid.yaml --upstream http://127.0.0.1:3000')
  assert.match(out, /id\.example\/realms\/us/)
}

async function makesSomebodyWithoutPassword({ folder, shell }: Bench, example: string): Promise<void> {
  await shell(example, { variables: { GATEHOUSE_DATA_DIR: join(folder, 'other') } })
}

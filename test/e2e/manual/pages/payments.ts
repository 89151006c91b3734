import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['# selling.yaml', ({ folder }, example) => writeFileSync(join(folder, 'selling.yaml'), example)],
  ['# payments.yaml', ({ folder }, example) => writeFileSync(join(folder, 'payments.yaml'), example)],
  ['check --config payments.yaml', checks],
  [
    '# licensed-policy.yaml',
    ({ folder }, example) => writeFileSync(join(folder, 'licensed-policy.yaml'), example),
  ],
  [
    '# licensed.yaml',
    async ({ folder, shell }, example) => {
      writeFileSync(join(folder, 'licensed.yaml'), example)
      const { out } = await shell('gatehouse check --config licensed.yaml')
      assert.match(out, /introspection: https:\/\/licenses\.example\/introspect/)
    },
  ],
  ['/v1/payments', asksTheLedger],
]

async function checks({ shell }: Bench, example: string): Promise<void> {
  assert.match((await shell(example)).out, /facilitator: https:\/\/facilitator\.example\/x402/)
}

async function asksTheLedger({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /"payments":\[\]/)
  assert.match(out, /^id,created_at,state,scheme,/m)
}

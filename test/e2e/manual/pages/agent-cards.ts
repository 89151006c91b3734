import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parsePolicyText } from '../../../../src/runtime/policy-source.ts'
import type { Examples } from '../bench.ts'

export const examples: Examples = [
  [
    '# policy.yaml',
    (_, example) => assert.equal(parsePolicyText(example, 'page').policy.last.rules.length, 3),
  ],
  [
    '# gatehouse.yaml',
    async ({ folder, shell }, example) => {
      writeFileSync(join(folder, 'registries.yaml'), example)
      const { out } = await shell('gatehouse check --config registries.yaml')
      assert.match(out, /registry\.example/)
    },
  ],
]

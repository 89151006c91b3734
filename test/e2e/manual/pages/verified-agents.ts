import assert from 'node:assert/strict'
import { parsePolicyText } from '../../../../src/runtime/policy-source.ts'
import type { Examples } from '../bench.ts'

export const examples: Examples = [
  [
    '# policy.yaml',
    (_, example) => assert.equal(parsePolicyText(example, 'page').policy.last.rules.length, 3),
  ],
]

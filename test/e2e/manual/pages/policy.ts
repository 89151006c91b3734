import assert from 'node:assert/strict'
import { parsePolicyText } from '../../../../src/config/source.ts'
import type { Examples } from '../bench.ts'

export const examples: Examples = [
  [
    'name: imitators',
    (_, example) => assert.equal(parsePolicyText(example, 'policy.md').policy.rules.length, 3),
  ],
]

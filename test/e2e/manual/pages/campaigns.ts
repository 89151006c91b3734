import assert from 'node:assert/strict'
import { parsePolicyText } from '../../../../src/runtime/policy-source.ts'
import { decide } from '../../../../src/policy/decide.ts'
import { parsePolicy } from '../../../../src/policy/policy.ts'
import { FACTS } from '../../../policy/request-facts.ts'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['/v1/campaigns', listsCampaigns],
  ['campaign: true', blocksCampaigns],
]

async function listsCampaigns({ shell }: Bench, example: string): Promise<void> {
  const { json } = await shell(example)
  assert.deepEqual(json[0].campaigns, [])
  assert.deepEqual(json[1].requests, [])
}

function blocksCampaigns(_: Bench, example: string): void {
  const policy = parsePolicy(parsePolicyText(example, 'policy.yaml').document)
  const actionOn = (campaign: string | null) => decide(policy, { ...FACTS, campaign }, 0).action.kind
  assert.deepEqual([actionOn('cmp_1'), actionOn(null)], ['block', 'tag'])
}

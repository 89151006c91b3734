import { allRules, type Policy } from '../policy/policy.ts'
import { PolicyRequest } from '../policy/request.ts'
import { REQUEST } from './published-terms.ts'
import { UNKNOWN } from '../classify/verdict/verdict.ts'

/**
 * A key that is equal for hosts that a policy does not tell apart, so that invented hosts cost nothing. Hosts are known
 * one by one if the policy tests them in an expression or inside `not`.
 */
export function hostGroup(policy: Policy, host: string): string {
  if (!policy.asked.host) return ''
  const request = new PolicyRequest()
  request.read({ ...REQUEST, host, verdict: UNKNOWN }, policy.asked)
  let group = ''
  for (const { conditions } of allRules(policy)) {
    for (const { name, takes, test } of conditions) {
      if (name === 'host') group += test(request) ? '+' : '-'
      else if ((name === 'not' || name === 'expression') && asksHost(takes)) return host
    }
  }
  return group
}

function asksHost(takes: unknown): boolean {
  return JSON.stringify(takes).includes('host')
}

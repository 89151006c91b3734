import type { Verdict } from '../../classify/verdict/verdict.ts'
import type { Print } from '../../fingerprint/print.ts'
import type { RateLimitAction } from '../../policy/action.ts'
import type { Decision } from '../../policy/decide.ts'
import type { ProxyContext } from './context.ts'
import { clientNetwork } from '../../wire/ip-address.ts'

/** Counts a request by the limit of its rule: how many milliseconds it is over that; 0 where there is none. */
export function overLimit(
  { limiter, clock }: ProxyContext,
  address: string,
  print: Print,
  verdict: Verdict,
  { action, rule }: Decision,
): number {
  if (action.kind !== 'rate_limit') return 0
  return limiter.take(`${counted(action.per, address, print, verdict)} ${rule}`, action, clock.nowMs)
}

/** Whose requests are counted together, by each rule for itself. Who has no fingerprint is known by its address. */
function counted(per: RateLimitAction['per'], address: string, print: Print, verdict: Verdict): string {
  if (per === 'agent' && verdict.agent !== null) return `agent ${verdict.agent.id}`
  const fingerprint = print.connection.stable ?? print.connection.ja4
  if (per === 'fingerprint' && fingerprint !== null) return `fingerprint ${fingerprint}`
  return `address ${clientNetwork(address)}`
}

import type { Verdict } from '../../classify/verdict/verdict.ts'
import type { Print } from '../../fingerprint/print.ts'
import type { RateLimitAction } from '../../policy/action.ts'
import type { App } from '../../apps/app.ts'
import type { Decision } from '../../policy/decide.ts'
import type { ProxyContext } from './context.ts'
import { clientNetwork } from '../../wire/ip-address.ts'
import { shortText } from '../../wire/own-text.ts'

/**
 * Counts a request against the limit of its rule. Returns the milliseconds until the limit allows it; 0 if it
 * is allowed or the rule has no limit.
 */
export function overLimit(
  { limiter, clock }: ProxyContext,
  address: string,
  app: App,
  { print, verdict, decision: { action, rule, layer }, tool }: Limited,
): number {
  if (action.kind !== 'rate_limit') return 0
  const name = layer === 'app' ? `${app.id}/${rule}` : rule
  const of = action.perTool && tool !== null ? `${name} ${shortText(tool, TOOL_LENGTH_MAX)}` : name
  return limiter.take(`${counted(action.per, address, print, verdict)} ${of}`, action, clock.nowMs)
}

interface Limited {
  readonly print: Print
  readonly verdict: Verdict
  readonly decision: Decision
  /** The tool of an MCP server that is called. */
  readonly tool: string | null
}

/**
 * The key under which requests count together, separately for each rule. Without an agent or fingerprint it
 * is the address.
 */
function counted(per: RateLimitAction['per'], address: string, print: Print, verdict: Verdict): string {
  if (per === 'agent' && verdict.agent !== null) return `agent ${verdict.agent.id}`
  const fingerprint = print.connection.stable ?? print.connection.ja4
  if (per === 'fingerprint' && fingerprint !== null) return `fingerprint ${fingerprint}`
  return `address ${clientNetwork(address)}`
}

/** As many keys are kept as the limiter has room for. */
const TOOL_LENGTH_MAX = 128

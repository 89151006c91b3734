import type { Print } from '../../fingerprint/print.ts'
import type { BlockAction } from '../../policy/action.ts'
import type { Decision } from '../../policy/decide.ts'
import type { Connection } from '../connection/connection.ts'
import type { ProxyContext } from './context.ts'
import type { HostBar } from './host-gate.ts'

/** A refusal by the settings, whatever the policy says. */
export type Bar =
  /** `proxy.fail` is `closed`, and the hello could not be parsed. */
  | 'no-fingerprint'
  | HostBar
  /** `proxy.odd_header_names` is `refuse`, and the request has an odd header name. */
  | 'odd-header-name'
  /** A rule asks for the call of an MCP server, and the body can be read in several ways, or not at all. */
  | 'mcp-message'

export function barOf(
  { fail, hostGate, headerRules }: Pick<ProxyContext, 'fail' | 'hostGate' | 'headerRules'>,
  connection: Connection,
  authority: string,
  print: Print,
  oddNames: number,
): Bar | null {
  if (fail === 'closed' && connection.isTls && print.connection.ja4 === null) return 'no-fingerprint'
  const hostBar = hostGate === null ? null : hostGate.check(connection, authority)
  if (hostBar !== null) return hostBar
  return oddNames > 0 && headerRules.oddNames === 'refuse' ? 'odd-header-name' : null
}

const BLOCK: BlockAction = { kind: 'block', status: 403, body: null, title: null }

/** The decision for each bar, as if a rule of that name had blocked. */
export const BARRED: Readonly<Record<Bar, Decision>> = {
  'no-fingerprint': { action: BLOCK, rule: 'proxy.fail', layer: null, wouldHave: null },
  'unknown-host': { action: BLOCK, rule: 'proxy.hosts', layer: null, wouldHave: null },
  'no-server-name': { action: BLOCK, rule: 'proxy.tls.require_sni', layer: null, wouldHave: null },
  misdirected: { action: BLOCK, rule: 'proxy.tls.sni_mismatch', layer: null, wouldHave: null },
  'odd-header-name': { action: BLOCK, rule: 'proxy.odd_header_names', layer: null, wouldHave: null },
  'mcp-message': { action: BLOCK, rule: 'mcp.message', layer: null, wouldHave: null },
}

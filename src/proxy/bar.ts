import type { Print } from '../fingerprint/print.ts'
import type { BlockAction } from '../policy/action.ts'
import type { Decision } from '../policy/decide.ts'
import type { Connection } from './connection.ts'
import type { ProxyContext } from './context.ts'
import type { HostBar } from './host-gate.ts'

/** What settings forbid, whatever the policy says. */
export type Bar =
  /** `proxy.fail` is `closed`, and the hello could not be read. */
  'no-fingerprint' | HostBar

export function barOf(
  { fail, hostGate }: Pick<ProxyContext, 'fail' | 'hostGate'>,
  connection: Connection,
  authority: string,
  print: Print,
): Bar | null {
  if (fail === 'closed' && connection.isTls && print.connection.ja4 === null) return 'no-fingerprint'
  return hostGate === null ? null : hostGate.check(connection, authority)
}

const BLOCK: BlockAction = { kind: 'block', status: 403, body: null, title: null }

/** As if a rule of that name had blocked. */
export const BARRED: Readonly<Record<Bar, Decision>> = {
  'no-fingerprint': { action: BLOCK, rule: 'proxy.fail', wouldHave: null },
  'unknown-host': { action: BLOCK, rule: 'proxy.hosts', wouldHave: null },
  'no-server-name': { action: BLOCK, rule: 'proxy.tls.require_sni', wouldHave: null },
  misdirected: { action: BLOCK, rule: 'proxy.tls.sni_mismatch', wouldHave: null },
}

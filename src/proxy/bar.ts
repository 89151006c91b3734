import type { Print } from '../fingerprint/print.ts'
import type { BlockAction } from '../policy/action.ts'
import type { Decision } from '../policy/decide.ts'
import type { Connection } from './connection.ts'
import type { ProxyContext } from './context.ts'

/** What settings forbid, whatever the policy says. */
export type Bar =
  /** `proxy.fail` is `closed`, and the hello could not be read. */
  | 'no-fingerprint'
  /** `proxy.tls.sni_mismatch` is `reject`, and the request is for another host than its connection. */
  | 'misdirected'

export function barOf(
  { fail, sniMismatch }: Pick<ProxyContext, 'fail' | 'sniMismatch'>,
  connection: Connection,
  authority: string | null,
  print: Print,
): Bar | null {
  if (fail === 'closed' && connection.isTls && print.connection.ja4 === null) return 'no-fingerprint'
  if (sniMismatch === 'reject' && isMisdirected(connection, authority)) return 'misdirected'
  return null
}

/** The name asked for in the hello, against the name of the request. */
function isMisdirected({ isTls, serverName }: Connection, authority: string | null): boolean {
  if (!isTls || serverName === null || authority === null) return false
  const colon = authority.lastIndexOf(':')
  const host = colon === -1 || authority.endsWith(']') ? authority : authority.slice(0, colon)
  return host.toLowerCase() !== serverName.toLowerCase()
}

const BLOCK: BlockAction = { kind: 'block', status: 403, body: null, title: null }

/** As if a rule of that name had blocked. */
export const BARRED: Readonly<Record<Bar, Decision>> = {
  'no-fingerprint': { action: BLOCK, rule: 'proxy.fail', wouldHave: null },
  misdirected: { action: BLOCK, rule: 'proxy.tls.sni_mismatch', wouldHave: null },
}

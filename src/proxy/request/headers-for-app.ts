import type { AppHeaders } from '../connection/app-headers.ts'
import type { Connection } from '../connection/connection.ts'
import type { ProxyContext } from './context.ts'
import { introduce } from './introduction.ts'
import type { Judged } from './judge.ts'
import { clientPath } from '../connection/peer-address.ts'
import type { ReceivedHeaders, RelayedFrom } from '../connection/request-headers.ts'
import type { UpstreamGroup } from '../upstream/upstream.ts'
import type { Visit } from './visit.ts'

/** Builds the headers for the app. `ruleHeaders` are as in `Visit.pass`. */
export function headersForApp(
  proxy: ProxyContext,
  { connection, head, authority, trace }: Visit,
  judged: Judged,
  upstream: UpstreamGroup,
  ruleHeaders: readonly string[] | null,
): AppHeaders {
  const { received, decision, id } = judged
  const own = received.kept
  proxy.toll.hideLicense(own)
  if (trace !== null) proxy.tracer!.tell(trace, own)
  const relayed = connection.isTrusted ? relayedFrom(proxy, connection, received.hop) : null
  const action = ruleHeaders === null ? null : decision.action.kind
  const introduction = introduce(connection, authority, relayed, judged, action)
  if (ruleHeaders === null) return { own, introduction }
  const from = own.length
  own.push('X-Agent-Decision-Id', id)
  for (const text of ruleHeaders) own.push(text)
  if (proxy.signer !== null) {
    const signed = {
      method: head.method,
      authority: upstream.settings.host === 'upstream' ? null : authority,
      scheme: relayed?.hop.forwardedProto ?? (connection.isTls ? 'https' : 'http'),
      target: head.target,
    }
    const nowS = Math.floor(proxy.clock.nowMs / 1000)
    const tags = [...introduction.headers, ...own.slice(from)]
    own.push('X-Agent-Signature', proxy.signer.sign(signed, tags, nowS))
  }
  return { own, introduction }
}

function relayedFrom(
  { headerRules, trusted }: ProxyContext,
  connection: Connection,
  hop: ReceivedHeaders['hop'],
): RelayedFrom {
  const path = clientPath(connection, hop, trusted)
  return { hop, passesForwarded: headerRules.isTrusted('forwarded'), path }
}

import type { ProxyContext } from './context.ts'
import type { Judged } from './judge.ts'
import { pushForwarding, pushTags } from './request-headers.ts'
import type { Trace } from './tracer.ts'
import type { UpstreamGroup } from './upstream.ts'
import type { Visit } from './visit.ts'

/** The complete list of headers for the app. `ruleHeaders` as in `Visit.pass`. */
export function headersForApp(
  proxy: ProxyContext,
  { connection, head, authority }: Visit,
  { received, print, verdict, decision, id }: Judged,
  upstream: UpstreamGroup,
  ruleHeaders: readonly string[] | null,
  trace: Trace | null,
): string[] {
  const headers = received.kept
  if (trace !== null) proxy.tracer!.tell(trace, headers)
  const hop = connection.isTrusted ? received.hop : null
  const from = headers.length
  pushForwarding(headers, connection, authority, hop)
  if (ruleHeaders === null) return headers
  pushTags(headers, print, verdict, decision.action.kind, id)
  for (const text of ruleHeaders) headers.push(text)
  if (proxy.signer !== null) {
    const signed = {
      method: head.method,
      authority: upstream.settings.host === 'upstream' ? null : authority,
      scheme: hop?.forwardedProto ?? (connection.isTls ? 'https' : 'http'),
      target: head.target,
    }
    const nowS = Math.floor(proxy.clock.nowMs / 1000)
    headers.push('X-Agent-Signature', proxy.signer.sign(signed, headers.slice(from), nowS))
  }
  return headers
}

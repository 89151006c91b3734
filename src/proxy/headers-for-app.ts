import type { ProxyContext } from './context.ts'
import type { Judged } from './judge.ts'
import { pushForwarding, pushTags } from './request-headers.ts'
import type { Visit } from './visit.ts'

/** The complete list of headers for the app. `ruleHeaders` as in `Visit.pass`. */
export function headersForApp(
  proxy: ProxyContext,
  { connection, head, authority }: Visit,
  { received, print, verdict, decision, id }: Judged,
  ruleHeaders: readonly string[] | null,
): string[] {
  const headers = received.kept
  pushForwarding(headers, connection, authority, connection.isTrusted ? received.hop : null)
  if (ruleHeaders === null) return headers
  const from = headers.length
  pushTags(headers, print, verdict, decision.action.kind, id)
  for (const text of ruleHeaders) headers.push(text)
  if (proxy.signer !== null) {
    const nowS = Math.floor(proxy.clock.nowMs / 1000)
    const signature = proxy.signer.sign(head.method, authority ?? '', head.target, headers.slice(from), nowS)
    headers.push('X-Agent-Signature', signature)
  }
  return headers
}

import type { ProxyContext } from './context.ts'
import { type Introduction, introduce } from './introduction.ts'
import type { Judged } from './judge.ts'
import type { Trace } from './tracer.ts'
import type { UpstreamGroup } from './upstream.ts'
import type { Visit } from './visit.ts'

/** All headers for an app but for framing. */
export interface HeadersForApp {
  /** Of this request alone, the client's first: name, value, … */
  readonly own: readonly string[]
  readonly introduction: Introduction | null
}

/** `ruleHeaders` as in `Visit.pass`. */
export function headersForApp(
  proxy: ProxyContext,
  { connection, head, authority }: Visit,
  { received, print, verdict, decision, id }: Judged,
  upstream: UpstreamGroup,
  ruleHeaders: readonly string[] | null,
  trace: Trace | null,
): HeadersForApp {
  const own = received.kept
  if (trace !== null) proxy.tracer!.tell(trace, own)
  const hop = connection.isTrusted ? received.hop : null
  const action = ruleHeaders === null ? null : decision.action.kind
  const introduction = introduce(connection, authority, hop, print, verdict, action)
  if (ruleHeaders === null) return { own, introduction }
  const from = own.length
  own.push('X-Agent-Decision-Id', id)
  for (const text of ruleHeaders) own.push(text)
  if (proxy.signer !== null) {
    const signed = {
      method: head.method,
      authority: upstream.settings.host === 'upstream' ? null : authority,
      scheme: hop?.forwardedProto ?? (connection.isTls ? 'https' : 'http'),
      target: head.target,
    }
    const nowS = Math.floor(proxy.clock.nowMs / 1000)
    const tags = [...introduction.headers, ...own.slice(from)]
    own.push('X-Agent-Signature', proxy.signer.sign(signed, tags, nowS))
  }
  return { own, introduction }
}

/** As one list: name, value, … */
export function listed({ own, introduction }: HeadersForApp): string[] {
  return introduction === null ? [...own] : [...own, ...introduction.headers]
}

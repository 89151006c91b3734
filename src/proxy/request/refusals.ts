import type { BlockAction, RedirectAction, TarpitAction } from '../../policy/action.ts'
import type { Bar } from './bar.ts'
import type { ForwardOutcome } from '../upstream/forward.ts'
import type { Judged } from './judge.ts'
import type { McpRefusal } from '../../wire/mcp/mcp-message.ts'
import type { RefusalAnswer } from './refuse.ts'

export function barred({ id, mcp }: Judged, bar: Bar): RefusalAnswer {
  switch (bar) {
    case 'mcp-message':
      return unreadable(id, mcp as McpRefusal)
    case 'no-fingerprint':
      return own(id, 403, 'no_fingerprint', 'This connection could not be recognised.')
    case 'unknown-host':
      return own(id, 421, 'unknown_host', 'This host is not served here.')
    case 'no-server-name':
      return own(id, 421, 'no_server_name', 'This connection named no host (TLS SNI).')
    case 'misdirected':
      return own(id, 421, 'misdirected', 'This connection was opened for another host.')
    case 'odd-header-name':
      return own(id, 400, 'odd_header_name', 'A header name may have only letters, digits and hyphens here.')
  }
}

/** `retryMs`: how long a client over its limit has to wait. 0 without a limit. */
export function blocked(judged: Judged, action: BlockAction | TarpitAction, retryMs: number): RefusalAnswer {
  return forCall(judged, blockedRequest(judged, action, retryMs))
}

/** A client of an MCP server reads errors of JSON-RPC. The operator's own text goes before. */
function forCall({ mcp }: Judged, refusal: RefusalAnswer): RefusalAnswer {
  const isCall = mcp?.kind === 'message' && mcp.method !== null
  if (!isCall || (refusal.body ?? null) !== null) return refusal
  return { ...refusal, ...rpcError(mcp.id, DENIED, refusal.detail, refusal) }
}

function unreadable(id: Judged['id'], { status, code, why, id: call }: McpRefusal): RefusalAnswer {
  const refusal = own(id, status, 'mcp_message', why)
  const headers =
    status === 415 ? ['Accept-Encoding', 'identity'] : status === 503 ? ['Retry-After', '1'] : []
  return { ...refusal, ...rpcError(call, code, why, refusal), headers }
}

/** `call`: the id of the request that failed, as JSON. */
function rpcError(
  call: string | null,
  code: number,
  message: string,
  { code: reason, decisionId }: RefusalAnswer,
): Pick<RefusalAnswer, 'body' | 'type'> {
  const error = JSON.stringify({ code, message, data: { code: reason, decision_id: decisionId } })
  return { type: 'application/json', body: `{"jsonrpc":"2.0","id":${call},"error":${error}}\n` }
}

function blockedRequest({ id }: Judged, action: BlockAction | TarpitAction, retryMs: number): RefusalAnswer {
  const headers = retryMs > 0 ? ['Retry-After', String(Math.ceil(retryMs / 1000))] : []
  if (retryMs > 0 && action.kind === 'tarpit') {
    return { ...own(id, 429, 'rate_limited', 'Too many requests.'), headers }
  }
  if (action.kind === 'tarpit') return own(id, 403, 'blocked', 'This request is not allowed here.')
  const isLimit = action.status === 429
  const code = isLimit ? 'rate_limited' : 'blocked'
  const detail = isLimit ? 'Too many requests.' : 'This request is not allowed here.'
  return { ...own(id, action.status, code, detail), headers, body: action.body, title: action.title }
}

/** An agent that signs its requests only when it is asked to may come again (RFC 9421 §5). */
export function askingToSign(refusal: RefusalAnswer): RefusalAnswer {
  if (!MAY_SIGN.has(refusal.status)) return refusal
  return { ...refusal, headers: [...(refusal.headers ?? []), 'Accept-Signature', SIGNATURE_WANTED] }
}

export function redirected({ id }: Judged, { status, to }: RedirectAction): RefusalAnswer {
  return { ...own(id, status, 'redirected', 'Go on there.'), headers: ['Location', to] }
}

/** The licence of the content. */
export function published({ id }: Judged, license: string): RefusalAnswer {
  return { ...own(id, 200, 'published', ''), type: 'application/rsl+xml', body: license }
}

/** The app was unreachable, or its answer was not valid HTTP. */
export function unserved(
  { id }: Judged,
  { status, reason }: Extract<ForwardOutcome, { kind: 'failed' }>,
): RefusalAnswer {
  const code = `upstream_${reason.replaceAll('-', '_')}`
  if (status === 400) return own(id, status, 'bad_request', 'This request cannot be passed on.')
  if (status === 504) return own(id, status, code, 'The service behind this address did not answer in time.')
  if (status === 503) return own(id, status, code, 'The service behind this address has no room for more.')
  return own(id, status, code, 'The service behind this address cannot be reached.')
}

/** The app has answered an extended CONNECT, but opened no WebSocket. */
export function noWebSocket({ id }: Judged): RefusalAnswer {
  return own(id, 502, 'upstream_no_websocket', 'The service behind this address opened no WebSocket.')
}

function own(decisionId: Judged['id'], status: number, code: string, detail: string): RefusalAnswer {
  return { status, detail, code, decisionId, headers: [], body: null, title: null }
}

/** Of those that JSON-RPC leaves to servers; MCP does not use it. */
const DENIED = -32_003
const MAY_SIGN: ReadonlySet<number> = new Set([401, 403, 429])
const SIGNATURE_WANTED = 'sig1=("@authority" "signature-agent";key="sig1");created;expires;tag="web-bot-auth"'

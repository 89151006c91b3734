import type { BlockAction, RedirectAction, TarpitAction } from '../../policy/action.ts'
import type { Bar } from './bar.ts'
import type { ForwardOutcome } from '../upstream/forward.ts'
import type { Judged } from './judge.ts'
import type { RefusalAnswer } from './refuse.ts'

export function barred({ id }: Judged, bar: Bar): RefusalAnswer {
  switch (bar) {
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
export function blocked({ id }: Judged, action: BlockAction | TarpitAction, retryMs: number): RefusalAnswer {
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

export function redirected({ id }: Judged, { status, to }: RedirectAction): RefusalAnswer {
  return { ...own(id, status, 'redirected', 'Go on there.'), headers: ['Location', to] }
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

function own(decisionId: Judged['id'], status: number, code: string, detail: string): RefusalAnswer {
  return { status, detail, code, decisionId, headers: [], body: null, title: null }
}

import type { DecisionId } from '../connection/decision-id.ts'
import type { Exchange } from '../connection/exchange.ts'
import { STATUS_CODES } from '../../shared/node-http.ts'

/** An answer by the proxy instead of the app. */
export interface RefusalAnswer {
  readonly status: number
  /** One short sentence for people. */
  readonly detail: string
  /** A stable code for programs. */
  readonly code: string
  readonly decisionId: DecisionId
  /** Additional headers: Retry-After, Location. */
  readonly headers?: readonly string[]
  /** The operator's own text instead of the page: plain text or JSON. */
  readonly body?: string | null
  readonly title?: string | null
}

/** Answers a request: with a page for browsers, with problem+json (RFC 9457) for programs. */
export function refuse(exchange: Exchange, refusal: RefusalAnswer): void {
  if (exchange.answered) return exchange.abort()
  const { type, body } = refusalBody(acceptOf(exchange.head.rawHeaders), refusal)
  const bytes = Buffer.from(body)
  const headers = [
    'Content-Type',
    type,
    'Content-Length',
    String(bytes.length),
    'Cache-Control',
    'no-store',
    'X-Content-Type-Options',
    'nosniff',
    'X-Agent-Decision-Id',
    refusal.decisionId,
    ...(refusal.headers ?? []),
  ]
  const bodyless = exchange.head.method === 'HEAD'
  exchange.answer(refusal.status, headers, bodyless ? 0 : bytes.length)
  if (!bodyless) exchange.write(bytes)
  exchange.end([])
}

/** The same for an upgrade request, which has no Exchange. */
export function refusalText(rawHeaders: readonly string[], refusal: RefusalAnswer): string {
  const { type, body } = refusalBody(acceptOf(rawHeaders), refusal)
  const lines = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? 'Refused'}`,
    `Content-Type: ${type}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    `X-Agent-Decision-Id: ${refusal.decisionId}`,
    'Connection: close',
  ]
  const more = refusal.headers ?? []
  for (let i = 0; i < more.length; i += 2) lines.push(`${more[i]}: ${more[i + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

function refusalBody(accept: string, refusal: RefusalAnswer): { type: string; body: string } {
  const { body = null, status, detail, code, decisionId } = refusal
  const title = refusal.title ?? STATUS_CODES[status] ?? 'Refused'
  if (body !== null) return { type: isJson(body) ? 'application/json' : 'text/plain; charset=utf-8', body }
  if (wantsPage(accept)) return { type: 'text/html; charset=utf-8', body: page(title, detail, decisionId) }
  const problem = { type: 'about:blank', title, status, detail, code, decision_id: decisionId }
  return { type: 'application/problem+json', body: `${JSON.stringify(problem)}\n` }
}

function page(title: string, detail: string, decisionId: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}code{font-size:.9em}</style>
<h1>${escaped(title)}</h1>
<p>${escaped(detail)}</p>
<p>If you think this is a mistake, quote this number: <code>${escaped(decisionId)}</code></p>
</html>
`
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

function isJson(body: string): boolean {
  try {
    JSON.parse(body)
    return true
  } catch {
    return false
  }
}

/** All Accept headers, joined, in lower case. */
function acceptOf(rawHeaders: readonly string[]): string {
  let accept = ''
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length === 6 && rawHeaders[i]!.toLowerCase() === 'accept')
      accept += `${rawHeaders[i + 1]!.toLowerCase()},`
  }
  return accept
}

/** RFC 9110 §12.5.1: whether HTML is accepted explicitly and JSON is not preferred. */
function wantsPage(accept: string): boolean {
  let page = 0
  let json = 0
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    const weight = quality === undefined ? 1 : Number(quality.slice(2))
    if (type === 'text/html' || type === 'text/*') page = Math.max(page, weight)
    else if (JSON_TYPE.test(type)) json = Math.max(json, weight)
  }
  return page > 0 && page >= json
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json$/

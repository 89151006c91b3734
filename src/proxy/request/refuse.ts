import type { DecisionId } from '../connection/decision-id.ts'
import type { Exchange } from '../connection/exchange.ts'
import type { Upgrade } from '../connection/upgrade.ts'
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
  /** The media type of `body`, if it is neither. */
  readonly type?: string
  readonly title?: string | null
  /** More members of the problem for programs (RFC 9457 §3.2). */
  readonly members?: object
}

/** Answers a request: with a page for browsers, with problem+json (RFC 9457) for programs. */
export function refuse(exchange: Exchange, refusal: RefusalAnswer): void {
  if (exchange.answered) return exchange.abort()
  const { headers, body } = refusalParts(exchange.head.rawHeaders, refusal)
  const bodyless = exchange.head.method === 'HEAD'
  exchange.answer(refusal.status, headers, bodyless ? 0 : body.length)
  if (!bodyless) exchange.write(body)
  exchange.end([])
}

/** The same for an upgrade. */
export function refuseUpgrade(upgrade: Upgrade, refusal: RefusalAnswer): void {
  const { headers, body } = refusalParts(upgrade.requestHead.rawHeaders, refusal)
  upgrade.answer(refusal.status, headers, null)
  upgrade.stream.write(body)
  upgrade.finish()
}

export interface RefusalParts {
  readonly headers: readonly string[]
  readonly body: Buffer
}

/** `rawHeaders` are those of the request. */
export function refusalParts(rawHeaders: readonly string[], refusal: RefusalAnswer): RefusalParts {
  const { type, body } = refusalBody(acceptOf(rawHeaders), refusal)
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
  return { headers, body: bytes }
}

function refusalBody(accept: string, refusal: RefusalAnswer): { type: string; body: string } {
  const { body = null, status, detail, code, decisionId, members } = refusal
  const title = refusal.title ?? STATUS_CODES[status] ?? 'Refused'
  if (body !== null && refusal.type !== undefined) return { type: refusal.type, body }
  if (body !== null) return { type: isJson(body) ? 'application/json' : 'text/plain; charset=utf-8', body }
  if (wantsPage(accept)) return { type: 'text/html; charset=utf-8', body: page(title, detail, decisionId) }
  const problem = { type: 'about:blank', title, status, detail, code, decision_id: decisionId, ...members }
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

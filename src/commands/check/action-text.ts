import type { Action, BlockAction, RedirectAction, TarpitAction } from '../../policy/action.ts'
import { blocked, redirected } from '../../proxy/request/refusals.ts'
import { refusalParts } from '../../proxy/request/refuse.ts'
import { pushTags } from '../../proxy/connection/request-headers.ts'
import type { DecisionId } from '../../proxy/connection/decision-id.ts'
import type { DescribedFacts } from '../../policy/written-request.ts'
import type { McpMessage } from '../../wire/mcp/mcp-message.ts'
import { STATUS_CODES } from '../../shared/node-http.ts'

/** The effect of an action on the app or the client. */
export interface ActionEffect {
  /** One sentence. */
  readonly text: string
  /**
   * Headers for the app, or the head of the client's response, followed by its body unless that is a page.
   */
  readonly lines: readonly string[]
}

export function effectsOf(action: Action, request: DescribedFacts): readonly ActionEffect[] {
  switch (action.kind) {
    case 'pass':
      return [
        {
          text: 'The app gets the request, with X-Forwarded-*, X-Real-IP and Forwarded and nothing else of ours.',
          lines: [],
        },
      ]
    case 'tag':
      return [{ text: 'The app gets the request, with:', lines: tags(action, request, action.headers) }]
    case 'route':
      return [
        { text: `The upstream ${action.upstream} gets the request, with:`, lines: tags(action, request, []) },
      ]
    case 'block':
      return [{ text: 'The app gets nothing. The client gets:', lines: answer(action, request, 0) }]
    case 'redirect':
      return [{ text: 'The app gets nothing. The client gets:', lines: answer(action, request, 0) }]
    case 'tarpit':
      return [
        {
          text: `The app gets nothing. The client waits for ${action.delayMs} ms, unless ${action.connectionsMax} wait already, and gets:`,
          lines: answer(action, request, 0),
        },
      ]
    case 'charge': {
      const { price, currency, passMs, schemes } = action
      const bought = passMs === 0 ? 'each request' : `${passMs} ms`
      const text = `A client that has not paid gets 402 with an offer: ${price} ${currency} for ${bought}, over ${schemes.join(' or ')}. With a payment, the app gets the request, with:`
      return [{ text, lines: tags(action, request, []) }]
    }
    case 'rate_limit': {
      const { requests, windowMs, burst, per, perTool, then } = action
      const each = perTool ? `${per} and tool` : per
      const limit = `${requests} in ${windowMs} ms, ${burst} at once, for each ${each}`
      return [
        { text: `Up to ${limit}, the app gets the request, with:`, lines: tags(action, request, []) },
        ...effectsOf(then, request).map(({ text }) => ({
          text: `Over that: ${text}`,
          lines: answer(then, request, windowMs / requests),
        })),
      ]
    }
  }
}

function tags(action: Action, { print, facts }: DescribedFacts, more: readonly string[]): readonly string[] {
  const headers: string[] = []
  pushTags(headers, print, facts.verdict, action.kind)
  headers.push('X-Agent-Decision-Id', DECISION_ID, ...more)
  return headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}`] : []))
}

function answer(
  action: BlockAction | TarpitAction | RedirectAction,
  { facts }: DescribedFacts,
  retryMs: number,
): readonly string[] {
  const judged = { id: DECISION_ID, mcp: messageOf(facts) } as Parameters<typeof blocked>[0]
  const refusal = action.kind === 'redirect' ? redirected(judged, action) : blocked(judged, action, retryMs)
  const { headers, body } = refusalParts(facts.rawHeaders, refusal)
  const fields = headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}`] : []))
  const lines = [`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? 'Refused'}`, ...fields, '']
  return headers[1]!.startsWith('text/html') ? [...lines, '(a page)'] : [...lines, body.toString().trimEnd()]
}

/** The call that is described has no id. */
function messageOf({ mcp }: DescribedFacts['facts']): McpMessage | null {
  return mcp == null ? null : { kind: 'message', id: null, name: null, version: null, ...mcp }
}

/** Placeholder: real decisions have unique ids. */
const DECISION_ID = '00000000-0000-7000-8000-000000000000' as DecisionId

import { percent } from '../../../parts/format.ts'
import { isObject, type WrittenRule } from './policy-rules.ts'

/** A rule in words. It takes anything: the policy may not be checked yet. */
export function ruleSentence(rule: WrittenRule): string {
  const { when, action } = rule
  const conditions = conditionsText(when)
  const effect = actionText(action)
  return conditions === null ? `Every request ${effect}.` : `If ${conditions}, the request ${effect}.`
}

/** What happens if no rule matches. */
export function otherwiseSentence(action: unknown): string {
  return `If no rule matches, the request ${actionText(action ?? 'tag')}.`
}

/** All of them have to match. `null`: every request matches. */
function conditionsText(when: unknown): string | null {
  if (typeof when === 'string') return `the expression ${cut(when)} is true`
  if (!isObject(when)) return when === undefined ? '(no conditions)' : cut(when)
  const parts = Object.entries(when).map(([name, value]) => conditionText(name, value))
  return parts.length === 0 ? null : parts.join(' and ')
}

function conditionText(name: string, value: unknown): string {
  const flag = typeof value === 'boolean' ? FLAGS[name]?.[value ? 0 : 1] : undefined
  if (flag !== undefined) return flag
  switch (name) {
    case 'confidence_min':
      return `the confidence is at least ${typeof value === 'number' ? percent(value) : cut(value)}`
    case 'verified':
      return `the identity is verified by ${either(value)}`
    case 'evidence':
      return `the evidence includes ${either(value)}`
    case 'card':
      return `the card of its signer has ${cut(value)}`
    case 'header':
      return isObject(value) ? headersText(value) : `the headers are ${cut(value)}`
    case 'expression':
      return `the expression ${cut(value)} is true`
    case 'not':
      return `not (${conditionsText(value) ?? 'nothing'})`
    default:
      return `${NAMES[name] ?? cut(name)} is ${either(value)}`
  }
}

function headersText(headers: WrittenRule): string {
  const parts = Object.entries(headers).map(([name, value]) => {
    const present = isObject(value) ? value['present'] : undefined
    if (present === undefined) return `the header ${cut(name)} is ${either(value)}`
    return `the header ${cut(name)} is ${present === true ? 'present' : 'absent'}`
  })
  return parts.length === 0 ? 'there are headers' : parts.join(' and ')
}

/** After “the request”. */
function actionText(action: unknown): string {
  const [name, settings] = actionIn(action)
  const of = (member: string) => cut(settings[member])
  switch (name) {
    case 'pass':
      return 'passes'
    case 'tag':
      return Object.keys(settings).length === 0 ? 'is tagged' : 'is tagged with headers of this rule'
    case 'block':
      return `is blocked with ${cut(settings['status'] ?? 403)}`
    case 'rate_limit':
      return `is limited to ${of('requests')} in ${of('window')} for each ${of('per')}`
    case 'tarpit':
      return `waits ${cut(settings['delay'] ?? '10s')} for its answer`
    case 'redirect':
      return `is redirected to ${of('to')}`
    case 'route':
      return `goes to the upstream ${of('upstream')}`
    case 'charge':
      return chargeText(settings)
    default:
      return `gets ${cut(action)}`
  }
}

function chargeText({ price, currency, scheme, pass }: WrittenRule): string {
  const what = pass === undefined ? '' : ` for a pass of ${cut(pass)}`
  return `costs ${cut(price)} ${cut(currency)}${what} (${either(scheme)})`
}

/** The name of an action and its settings, empty if it has none. */
export function actionIn(action: unknown): readonly [name: string, settings: WrittenRule] {
  if (typeof action === 'string') return [action, {}]
  const [first, ...others] = isObject(action) ? Object.entries(action) : []
  if (first === undefined || others.length > 0) return ['', {}]
  return [first[0], isObject(first[1]) ? first[1] : {}]
}

/** `a, b or c`. */
function either(value: unknown): string {
  const all = (Array.isArray(value) ? value : [value]).map(cut)
  const shown =
    all.length > LISTED_MAX ? [...all.slice(0, LISTED_MAX), `${all.length - LISTED_MAX} more`] : all
  return shown.length < 2 ? (shown[0] ?? 'nothing') : `${shown.slice(0, -1).join(', ')} or ${shown.at(-1)}`
}

function cut(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')
  if (text === '') return '“”'
  return text.length > LENGTH_MAX ? `${text.slice(0, LENGTH_MAX)}…` : text
}

/** Before “is”. */
const NAMES: Readonly<Record<string, string>> = {
  verdict: 'the verdict',
  agent: 'the agent',
  category: 'the category',
  purpose: 'a purpose',
  software: 'the software',
  signer: 'the signer',
  campaign: 'the campaign',
  hello: 'the TLS hello',
  ja4: 'the JA4',
  stable: 'the stable key',
  ja4h: 'the JA4H',
  http2: 'the HTTP/2 fingerprint',
  method: 'the method',
  address: 'the address',
  host: 'the host',
  path: 'the path',
  user_agent: 'the User-Agent',
  mcp_method: 'the MCP method',
  mcp_tool: 'the MCP tool',
  mcp_resource: 'the MCP resource',
}
/** Conditions that are true or false. */
const FLAGS: Readonly<Record<string, readonly [string, string]>> = {
  verified: ['the identity is verified', 'the identity is not verified'],
  listed: ['the agent is in the signatures', 'the agent is not in the signatures'],
  card: ['its signer has an agent card', 'its signer has no agent card'],
  forged: ['it has forged headers', 'it has no forged headers'],
  campaign: ['it belongs to a campaign', 'it belongs to no campaign'],
}
const LISTED_MAX = 5
const LENGTH_MAX = 80

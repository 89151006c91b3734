import { didYouMean } from '../shared/did-you-mean.ts'
import { type Place, shown } from '../shared/problem.ts'
import { type ChargeAction, readCharge } from './charging/charge.ts'
import { optional, readDuration, required } from './charging/members.ts'
import type { PaymentTerms } from '../payment/payment-terms.ts'

/** What the proxy does with a request. The build fails wherever a newly added kind is not handled. */
export type Action =
  | PassAction
  | TagAction
  | BlockAction
  | RateLimitAction
  | TarpitAction
  | RedirectAction
  | RouteAction
  | ChargeAction

/** Forwards the request unchanged: the proxy adds no headers of its own. */
export interface PassAction {
  readonly kind: 'pass'
}

/** Forwards the request with the headers that describe the verdict, and with the headers of the rule. */
export interface TagAction {
  readonly kind: 'tag'
  /** A flat list: name, value, … */
  readonly headers: readonly string[]
}

export interface BlockAction {
  readonly kind: 'block'
  readonly status: BlockStatus
  /** Replaces the proxy's own page. `null`: the proxy's page. */
  readonly body: string | null
  readonly title: string | null
}

export type BlockStatus = 401 | 403 | 404 | 429 | 451 | 503

export interface RateLimitAction {
  readonly kind: 'rate_limit'
  readonly per: 'agent' | 'fingerprint' | 'address'
  readonly requests: number
  readonly windowMs: number
  /** How many requests may arrive at once. */
  readonly burst: number
  /** Calls of each tool of an MCP server count by themselves. */
  readonly perTool: boolean
  /** What happens to a request over the limit. */
  readonly then: BlockAction | TarpitAction
}

/**
 * Delays the response. If `connectionsMax` requests are already delayed, the next one is answered without
 * delay.
 */
export interface TarpitAction {
  readonly kind: 'tarpit'
  readonly delayMs: number
  readonly connectionsMax: number
}

export interface RedirectAction {
  readonly kind: 'redirect'
  /** An absolute URL, or a path on the same host. */
  readonly to: string
  readonly status: RedirectStatus
}

export type RedirectStatus = 302 | 303 | 307 | 308

/** Adds the same headers as `tag` and forwards to another upstream. */
export interface RouteAction {
  readonly kind: 'route'
  readonly upstream: string
}

/** An action and the rule that chose it. */
export interface Outcome {
  readonly action: Action
  readonly rule: string
  readonly layer: PolicyLayer
}

/** In the order in which their rules are tried: `first` and `last` are the organisation's, `app` is the app's own. */
export const POLICY_LAYERS = ['first', 'app', 'last'] as const
export type PolicyLayer = (typeof POLICY_LAYERS)[number]

/** Whether the action can keep a client from what it requested. */
export function isRestricting(action: Action): boolean {
  switch (action.kind) {
    case 'block':
    case 'rate_limit':
    case 'tarpit':
    case 'redirect':
    case 'charge':
      return true
    case 'pass':
    case 'tag':
    case 'route':
      return false
  }
}

/** How much of what the client asks for an action keeps from it, for comparison. */
export function strictness(kind: Action['kind']): number {
  return STRICTNESS.indexOf(kind)
}

/** What an action may name. */
export interface KnownToActions {
  /** `null`: not checked. */
  readonly upstreams: readonly string[] | null
  /** How payments are taken; `null`: not checked. */
  readonly payments: PaymentTerms | null
}

/** Reads an action: a name (`block`), or a mapping of one name to its settings. */
export function readAction(place: Place, { upstreams, payments }: KnownToActions): Action | null {
  const chosen = choose(place, ACTION_NAMES)
  if (chosen === null) return null
  const [name, settings] = chosen
  switch (name) {
    case 'pass':
      return settings === null ? PASS : settings.refuse('takes no settings')
    case 'tag':
      return settings === null ? TAG : readTag(settings)
    case 'block':
      return settings === null ? BLOCK : readBlock(settings)
    case 'rate_limit':
      return readRateLimit(settings ?? place)
    case 'tarpit':
      return readTarpit(settings)
    case 'redirect':
      return readRedirect(settings ?? place)
    case 'route':
      return readRoute(settings ?? place, upstreams)
    case 'charge':
      return readCharge(settings ?? place, payments)
  }
}

/** The name of an action and the place of its settings; `null` settings if only the name is given. */
function choose<Name extends string>(place: Place, names: readonly Name[]): [Name, Place | null] | null {
  if (!place.isMapping) {
    const name = place.choice(names)
    if (name === null) return null
    return WITH_SETTINGS.has(name) ? place.refuse(`${name} takes settings: {${name}: {…}}`) : [name, null]
  }
  const members = [...place.members(names)]
  if (members.length !== 1) return place.refuse(`must have exactly one action, but has ${members.length}`)
  const [name, settings] = members[0]!
  return names.includes(name as Name) ? [name as Name, settings] : null
}

function readTag(place: Place): TagAction | null {
  const member = place.members(['headers']).get('headers')
  const headers: string[] = []
  let isGood = true
  for (const [name, header] of member?.entries() ?? []) {
    const value = header.text('a header value')
    if (!TAG_NAME.test(name))
      header.refuse(`${shown(name)} is not allowed here; the name of a header must start with x-agent-`)
    else if (RESERVED.has(name.toLowerCase()))
      header.refuse('is set by the proxy and cannot be set by a rule')
    else if (value !== null && !TAG_VALUE.test(value))
      header.refuse('must be printable ASCII without a space at the start or end')
    else if (value !== null) headers.push(name, value)
    isGood &&= headers.at(-2) === name
  }
  return isGood ? { kind: 'tag', headers } : null
}

function readBlock(place: Place): BlockAction | null {
  const members = place.members(['status', 'body', 'title'])
  const status = optional(members.get('status'), (member) => member.choice(BLOCK_STATUSES), 403)
  const body = optional(members.get('body'), (member) => member.text('text', BODY_LENGTH_MAX), NONE)
  const title = optional(members.get('title'), (member) => member.text('text'), NONE)
  if (status === null || body === null || title === null) return null
  return { kind: 'block', status, body: body === NONE ? null : body, title: title === NONE ? null : title }
}

function readRateLimit(place: Place): RateLimitAction | null {
  const members = place.members(['per', 'per_tool', 'requests', 'window', 'burst', 'then'])
  const per = required(place, members, 'per', (member) => member.choice(RATE_LIMIT_KEYS))
  const requests = required(place, members, 'requests', (member) => member.integer(1, REQUESTS_MAX))
  const windowMs = required(place, members, 'window', (member) => readDuration(member, 1, WINDOW_MS_MAX))
  const burst = optional(members.get('burst'), (member) => member.integer(1, REQUESTS_MAX), requests)
  const perTool = optional(members.get('per_tool'), (member) => member.boolean(), false)
  const then = optional(members.get('then'), readThen, TOO_MANY_REQUESTS)
  if (per === null || requests === null || windowMs === null || burst === null) return null
  if (perTool === null || then === null) return null
  return { kind: 'rate_limit', per, requests, windowMs, burst, perTool, then }
}

function readThen(place: Place): BlockAction | TarpitAction | null {
  const chosen = choose(place, ['block', 'tarpit'])
  if (chosen === null) return null
  const [name, settings] = chosen
  if (name === 'tarpit') return readTarpit(settings)
  return settings === null ? TOO_MANY_REQUESTS : readBlock(settings)
}

function readTarpit(place: Place | null): TarpitAction | null {
  const members = place?.members(['delay', 'connections_max'])
  const delayMs = optional(members?.get('delay'), (member) => readDuration(member, 1, DELAY_MS_MAX), 10_000)
  const connectionsMax = optional(
    members?.get('connections_max'),
    (member) => member.integer(1, TARPIT_CONNECTIONS_MAX),
    100,
  )
  return delayMs === null || connectionsMax === null ? null : { kind: 'tarpit', delayMs, connectionsMax }
}

function readRedirect(place: Place): RedirectAction | null {
  const members = place.members(['to', 'status'])
  const to = required(place, members, 'to', redirectTarget)
  const status = optional(members.get('status'), (member) => member.choice(REDIRECT_STATUSES), 302)
  return to === null || status === null ? null : { kind: 'redirect', to, status }
}

/** Allows only RFC 3986 characters, because the value is copied into a header as it is. */
function redirectTarget(place: Place): string | null {
  const text = place.text('a URL, or a path')
  if (text === null) return null
  const isPath = /^\/(?![/\\])/.test(text)
  if (isPath ? URI_CHARACTERS.test(text) : ABSOLUTE_URL.test(text)) return text
  return place.refuse(
    `is ${shown(text)}; expected a URL with http:// or https://, or a path that starts with a single /`,
  )
}

function readRoute(place: Place, upstreams: readonly string[] | null): RouteAction | null {
  const members = place.members(['upstream'])
  const upstream = required(place, members, 'upstream', (member) => {
    const name = member.text('the name of an upstream')
    if (name === null || upstreams === null || upstreams.includes(name)) return name
    const near = didYouMean(name, upstreams)
    return member.refuse(
      `unknown upstream ${shown(name)}${near || `; known upstreams: ${upstreams.join(', ')}`}`,
    )
  })
  return upstream === null ? null : { kind: 'route', upstream }
}

const ACTION_NAMES = ['pass', 'tag', 'block', 'rate_limit', 'tarpit', 'redirect', 'route', 'charge'] as const
const WITH_SETTINGS: ReadonlySet<string> = new Set(['rate_limit', 'redirect', 'route', 'charge'])
// Most rules have no settings. These are in memory once.
const PASS: PassAction = { kind: 'pass' }
export const TAG: TagAction = { kind: 'tag', headers: [] }
const BLOCK: BlockAction = { kind: 'block', status: 403, body: null, title: null }
const BLOCK_STATUSES = [401, 403, 404, 429, 451, 503] as const
const REDIRECT_STATUSES = [302, 303, 307, 308] as const
const RATE_LIMIT_KEYS = ['agent', 'fingerprint', 'address'] as const
const TOO_MANY_REQUESTS: BlockAction = { kind: 'block', status: 429, body: null, title: null }
/** Stands for a `null` value, because `null` itself means refused here. */
const NONE = Symbol('none')
const TAG_NAME = /^x-agent-[a-z0-9-]+$/i
const TAG_VALUE = /^[!-~](?:[ -~]*[!-~])?$/
/** Headers that the proxy sets itself. A rule must not contradict them. */
const RESERVED: ReadonlySet<string> = new Set(
  [
    'verdict',
    'name',
    'name-confidence',
    'category',
    'purpose',
    'confidence',
    'verified',
    'identity',
    'key',
    'conflict',
    'action',
    'decision-id',
    'signature',
  ].map((name) => `x-agent-${name}`),
)
const URI_CHARACTERS = /^[\w.~!*'();:@&=+$,/?#[\]%-]+$/
const ABSOLUTE_URL = /^https?:\/\/[\w.~!*'();:@&=+$,/?#[\]%-]+$/
/** The body is stored once and written for each refused request. */
const BODY_LENGTH_MAX = 65_536
const REQUESTS_MAX = 1_000_000
/** Counts are kept in memory and end with the process. A longer window would promise more than that. */
const WINDOW_MS_MAX = 86_400_000
/** Most clients have given up by then, so a longer delay has no effect. */
const DELAY_MS_MAX = 300_000
const TARPIT_CONNECTIONS_MAX = 100_000
const STRICTNESS: readonly Action['kind'][] = [
  'pass',
  'tag',
  'route',
  'rate_limit',
  'charge',
  'redirect',
  'tarpit',
  'block',
]

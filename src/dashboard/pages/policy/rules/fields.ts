import { CATEGORIES, PURPOSES, VERDICTS } from '../../live/names.ts'

/** How a value is entered. */
export type FieldKind =
  | 'text'
  | 'number'
  | 'choice'
  | 'choices'
  /** One or several texts, each in a line. */
  | 'lines'
  /** Lines, where `true` and `false` are booleans. */
  | 'words'
  | 'yes-no'
  | 'check'
  /** `name: value`, each in a line. */
  | 'pairs'
  | 'json'

export interface RuleField {
  /** A member of the rule, or of a member: `free.requests`. */
  readonly name: string
  readonly label: string
  readonly kind: FieldKind
  readonly choices?: readonly string[]
  readonly hint?: string
  /** Its text may have several lines. */
  readonly isLong?: boolean
  /** The value of a new condition. */
  readonly first?: unknown
}

const PURPOSE_CHOICES = PURPOSES.map(({ purpose }) => purpose)

/** By name, in the order of the manual. */
export const CONDITION_FIELDS: readonly RuleField[] = [
  {
    ...{ name: 'verdict', label: 'Verdict', kind: 'choices', first: 'agent' },
    choices: VERDICTS.map(({ verdict }) => verdict),
  },
  { name: 'agent', label: 'Agent', kind: 'lines', first: '', hint: 'Ids or names, one a line.' },
  {
    ...{ name: 'category', label: 'Category', kind: 'choices', first: 'crawler' },
    choices: CATEGORIES.map(({ category }) => category).filter((each) => each !== 'unnamed'),
  },
  { name: 'purpose', label: 'Purpose', kind: 'choices', first: 'training', choices: PURPOSE_CHOICES },
  { name: 'software', label: 'Software', kind: 'lines', first: '', hint: 'Ids or names, one a line.' },
  {
    ...{ name: 'evidence', label: 'Evidence', kind: 'lines', first: 'spoofed-browser' },
    hint: 'Kinds of evidence, one a line. A * stands for any text.',
  },
  { name: 'confidence_min', label: 'Minimum confidence', kind: 'number', first: 0.8, hint: 'From 0 to 1.' },
  {
    ...{ name: 'verified', label: 'Verified', kind: 'words', first: true },
    hint: 'true, false, or methods of proof, one a line.',
  },
  { name: 'listed', label: 'In the signatures', kind: 'yes-no', first: true },
  { name: 'signer', label: 'Signer', kind: 'lines', first: '', hint: 'URLs, one a line.' },
  {
    ...{ name: 'card', label: 'Agent card', kind: 'json', first: true },
    hint: 'true, false, or JSON like {"purpose": "search"}.',
  },
  { name: 'forged', label: 'Forged headers', kind: 'yes-no', first: true },
  {
    ...{ name: 'campaign', label: 'Campaign', kind: 'words', first: true },
    hint: 'true, false, or ids of campaigns, one a line.',
  },
  {
    name: 'hello',
    label: 'No fingerprint',
    kind: 'choices',
    first: 'not-tls',
    choices: ['malformed', 'not-tls'],
  },
  { name: 'ja4', label: 'JA4', kind: 'lines', first: '', hint: 'One a line.' },
  { name: 'stable', label: 'Stable key', kind: 'lines', first: '', hint: 'One a line.' },
  { name: 'ja4h', label: 'JA4H', kind: 'lines', first: '', hint: 'One a line.' },
  { name: 'http2', label: 'HTTP/2 fingerprint', kind: 'lines', first: '', hint: 'One a line.' },
  { name: 'method', label: 'Method', kind: 'lines', first: 'POST', hint: 'Like POST, one a line.' },
  {
    ...{ name: 'address', label: 'Address', kind: 'lines', first: '' },
    hint: 'Addresses or ranges like 192.0.2.0/24, one a line.',
  },
  { name: 'host', label: 'Host', kind: 'lines', first: '', hint: 'Like *.shop.example, one a line.' },
  { name: 'path', label: 'Path', kind: 'lines', first: '/', hint: 'Like /search*, one a line.' },
  { name: 'user_agent', label: 'User-Agent', kind: 'lines', first: '', hint: 'Like *bot*, one a line.' },
  {
    ...{ name: 'header', label: 'Headers', kind: 'json', first: {} },
    hint: 'JSON, like {"X-Plan": "free"} or {"Accept": {"present": false}}.',
  },
  { name: 'mcp_method', label: 'MCP method', kind: 'lines', first: 'tools/call', hint: 'One a line.' },
  { name: 'mcp_tool', label: 'MCP tool', kind: 'lines', first: '', hint: 'Like delete_*, one a line.' },
  { name: 'mcp_resource', label: 'MCP resource', kind: 'lines', first: '', hint: 'URIs, one a line.' },
  { name: 'expression', label: 'Expression', kind: 'text', isLong: true, first: '', hint: 'In CEL.' },
  {
    ...{ name: 'not', label: 'Not', kind: 'json', first: {} },
    hint: 'JSON of conditions, like {"verified": true}. Matches unless all of them match.',
  },
]

export interface ActionForm {
  readonly label: string
  readonly fields: readonly RuleField[]
  /** The settings of a new action; `null`: it needs none. */
  readonly first: Readonly<Record<string, unknown>> | null
}

const STATUSES = ['401', '403', '404', '429', '451', '503']

/** By name. */
export const ACTION_FORMS: Readonly<Record<string, ActionForm>> = {
  pass: { label: 'Pass', fields: [], first: null },
  tag: {
    label: 'Tag',
    fields: [
      {
        ...{ name: 'headers', label: 'Headers for the app', kind: 'pairs' },
        hint: 'Optional. Names start with x-agent-: “x-agent-plan: free”, one a line.',
      },
    ],
    first: null,
  },
  block: {
    label: 'Block',
    fields: [
      { name: 'status', label: 'Status', kind: 'number', choices: STATUSES, hint: 'Default: 403.' },
      { name: 'title', label: 'Title', kind: 'text', hint: 'Optional.' },
      {
        ...{ name: 'body', label: 'Body', kind: 'text', isLong: true },
        hint: 'Optional. Replaces the page of the proxy.',
      },
    ],
    first: null,
  },
  rate_limit: {
    label: 'Limit the rate',
    fields: [
      { name: 'requests', label: 'Requests', kind: 'number' },
      { name: 'window', label: 'In', kind: 'text', hint: 'Like 1m or 1h.' },
      { name: 'per', label: 'Of each', kind: 'choice', choices: ['agent', 'fingerprint', 'address'] },
      { name: 'burst', label: 'At once', kind: 'number', hint: 'Default: all of them.' },
      { name: 'per_tool', label: 'Count each MCP tool by itself', kind: 'check' },
      {
        ...{ name: 'then', label: 'Over the limit', kind: 'json' },
        hint: 'Default: block with 429. Like tarpit, or {"block": {"status": 503}}.',
      },
    ],
    first: { per: 'agent', requests: 10, window: '1m' },
  },
  tarpit: {
    label: 'Slow down',
    fields: [
      { name: 'delay', label: 'Delay', kind: 'text', hint: 'Default: 10s.' },
      { name: 'connections_max', label: 'Requests that wait at most', kind: 'number', hint: 'Default: 100.' },
    ],
    first: null,
  },
  redirect: {
    label: 'Redirect',
    fields: [
      { name: 'to', label: 'To', kind: 'text', hint: 'A URL, or a path.' },
      {
        ...{ name: 'status', label: 'Status', kind: 'number', hint: 'Default: 302.' },
        choices: ['302', '303', '307', '308'],
      },
    ],
    first: { to: '/' },
  },
  route: {
    label: 'Route to another upstream',
    fields: [{ name: 'upstream', label: 'Upstream', kind: 'text', hint: 'Its name in the settings.' }],
    first: { upstream: '' },
  },
  charge: {
    label: 'Charge',
    fields: [
      { name: 'price', label: 'Price', kind: 'text', hint: 'Like 0.01: at most six places.' },
      { name: 'currency', label: 'Currency', kind: 'text', hint: 'That of the settings, like USD.' },
      { name: 'scheme', label: 'Paid with', kind: 'choices', choices: ['x402', 'crawler-price', 'license'] },
      { name: 'description', label: 'Description', kind: 'text', hint: 'What is sold. Clients see it.' },
      {
        ...{ name: 'pass', label: 'Pass', kind: 'text' },
        hint: 'How long a payment lets in, like 10m. Empty: for one request.',
      },
      {
        name: 'path',
        label: 'Paths of a pass',
        kind: 'text',
        hint: 'Like /articles/*. Empty: all of the rule.',
      },
      { name: 'purpose', label: 'For the purposes', kind: 'choices', choices: PURPOSE_CHOICES },
      { name: 'license', label: 'Licence', kind: 'text', hint: 'A URL.' },
      { name: 'free.requests', label: 'Free requests', kind: 'number', hint: 'Of each agent.' },
      { name: 'free.window', label: 'Free requests in', kind: 'text', hint: 'Like 1d.' },
      {
        ...{ name: 'exempt', label: 'Need not pay', kind: 'choices' },
        choices: ['verified-search', 'user-triggered'],
      },
      { name: 'day_max', label: 'At most on a day', kind: 'text', hint: 'Of each agent, like 5.' },
      {
        ...{ name: 'fail', label: 'If a payment cannot be checked', kind: 'choice' },
        choices: ['closed', 'open'],
      },
    ],
    first: { price: '0.01', currency: 'USD', scheme: ['x402'] },
  },
}

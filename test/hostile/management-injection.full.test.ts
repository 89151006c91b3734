import assert from 'node:assert/strict'
import { test } from 'tap'
import type { AnyOperation } from '../../src/manage/http/operation.ts'
import { VERSIONS } from '../../src/manage/api/operations.ts'
import { KINDS } from '../store/databases.ts'
import { Caller, type Heard, LIMIT_MS } from './management-caller.ts'
import { ADMIN_KEY, bodyFor, changedIn, Estate, tablesOf } from './management-estate.ts'
import { HOSTILE_ENCODINGS, HOSTILE_PATHS, HOSTILE_TEXTS, HOSTILE_VALUES } from './management-strings.ts'
import { shareOf } from './whole.ts'

const OPERATIONS = VERSIONS.flatMap(({ prefix, operations }) =>
  operations.map((operation) => ({
    prefix,
    operation,
    name: `${operation.method} ${prefix}${operation.path}`,
  })),
)
const AS_ADMIN = { authorization: `Bearer ${ADMIN_KEY}`, accept: 'application/json', 'if-match': '*' }
/** The part that is tried in CI. */
const NTH = 30

for (const kind of KINDS)
  test(`${kind}: what is hostile is refused, or is the text that it is`, async (t) => {
    const estate = await Estate.start(t, kind)
    const { manage } = estate
    const caller = new Caller(t, manage.url, AS_ADMIN)
    await t.test('a hostile text in a query finds nothing and changes nothing', async () => {
      const before = await tablesOf(manage.storeUrl)
      let turn = 0
      for (const { prefix, operation, name } of OPERATIONS) {
        if (operation.method !== 'GET') continue
        for (const parameter of Object.keys(operation.query.shape as object))
          for (const value of shareOf([...encoded(HOSTILE_TEXTS), ...HOSTILE_ENCODINGS], NTH, turn++)) {
            const about = `${name} ${parameter}=${value.slice(0, 80)}`
            const path = `${estate.pathFor(operation, prefix)}?${needed(operation, parameter)}${parameter}=${value}`
            const heard = await caller.ask('GET', path)
            isSane(heard, about)
            if (heard.status === 400 || heard.status === 414) continue
            if (heard.status === 404 && NAMES_ONE.has(`${operation.id} ${parameter}`)) continue
            assert.equal(heard.status, 200, about)
            if (TAKES_NUMBERS.has(parameter) || LOOKS_UP_ONE.has(operation.id)) continue
            const strange = rowsIn(heard).filter(
              (row) => !isEmptyTime(row) && !has(row, decodeURIComponent(value)),
            )
            assert.equal(strange.length, 0, `${about}: ${JSON.stringify(strange[0])}`)
          }
      }
      assert.deepEqual(changedIn(before, await tablesOf(manage.storeUrl)), [])
      assert.deepEqual(manage.failures, [])
    })

    await t.test('a hostile name in a path names nothing, and changes nothing', async () => {
      const before = await tablesOf(manage.storeUrl)
      let turn = 0
      for (const { prefix, operation, name } of OPERATIONS) {
        if (!operation.path.includes('{')) continue
        const body = bodyFor(operation)
        for (const value of shareOf(
          [...encoded(HOSTILE_TEXTS), ...HOSTILE_ENCODINGS, ...HOSTILE_PATHS],
          NTH,
          turn++,
        )) {
          const path = prefix + operation.path.replace(/\{\w+\}/, value)
          const heard = await caller.ask(operation.method, path, body === null ? null : JSON.stringify(body))
          isSane(heard, `${name} ${value.slice(0, 80)}`)
          assert.ok(heard.status >= 400, `${name} ${value}: ${heard.status}`)
        }
      }
      assert.deepEqual(changedIn(before, await tablesOf(manage.storeUrl)), [])
      assert.deepEqual(manage.failures, [])
    })

    await t.test('hostile values in headers, and at the other doors', async () => {
      const before = await tablesOf(manage.storeUrl)
      const texts = HOSTILE_TEXTS.filter((value) => /^[\t\x20-\x7e]*$/.test(value))
      let turn = 0
      for (const header of HEADERS)
        for (const value of shareOf(texts, NTH, turn++))
          isSane(await caller.ask('GET', '/v1/webhooks', null, { [header]: value }), `${header}: ${value}`)
      for (const value of shareOf(HOSTILE_TEXTS, NTH / 6, turn++))
        for (const [path, body, more] of DOORS(value)) {
          const heard = await caller.ask(
            'POST',
            path,
            typeof body === 'string' ? body : JSON.stringify(body),
            more,
          )
          isSane(heard, `${path} ${JSON.stringify(body).slice(0, 200)}`)
          assert.doesNotMatch(heard.text, /ghk_|syntax error/, `${path} ${value}`)
        }
      assert.deepEqual(changedIn(before, await tablesOf(manage.storeUrl)), [])
      assert.deepEqual(manage.failures, [])
    })

    await t.test('a hostile value in a body is refused, or kept as the text that it is', async () => {
      let turn = 0
      for (const { operation, name } of OPERATIONS) {
        const body = bodyFor(operation)
        if (body === null || operation.id === 'updateSettings') continue
        for (const at of placesIn(body))
          for (const value of shareOf([...HOSTILE_TEXTS, ...HOSTILE_VALUES], NTH, turn++)) {
            const path = `/v1${operation.path.replace(/\{\w+\}/, 'nothing')}`
            const own = operation.path.includes('{') ? path : estate.pathFor(operation)
            const spoiled = JSON.stringify(withValue(body, at, value))
            isSane(
              await caller.ask(operation.method, own, spoiled),
              `${name} ${at}: ${spoiled.slice(0, 200)}`,
            )
          }
      }
      const tables = await tablesOf(manage.storeUrl)
      for (const table of NEEDED) assert.ok(tables[table]!.length > 0, `${table} is empty`)
      assert.deepEqual(manage.failures, [])
    })
  })

test('no path leads to a file that is not meant for everybody', async (t) => {
  const { manage } = await Estate.start(t, 'sqlite')
  const caller = new Caller(t, manage.url, {})
  for (const root of [
    '/',
    '/dashboard/',
    '/dashboard/assets/',
    '/docs/',
    '/.well-known/',
    '/oauth/',
    '/static/',
  ])
    for (const path of HOSTILE_PATHS) {
      const heard = await caller.ask('GET', root + path)
      isSane(heard, root + path)
      assert.doesNotMatch(heard.text, /root:x:|"devDependencies"|PRIVATE KEY|\[extensions\]/, root + path)
      // The page of the dashboard is at any address below its own.
      if (heard.status === 200)
        assert.match(String(heard.headers['content-type']), /^text\/html/, root + path)
    }
  assert.deepEqual(manage.failures, [])
})

function isSane({ status, headers, ms, text }: Heard, about: string): void {
  assert.ok(status < 500, `${about}: ${status} ${text}`)
  assert.equal(headers['x-injected'], undefined, about)
  assert.ok(ms < LIMIT_MS, `${about}: ${ms} ms`)
  assert.doesNotMatch(text, /SQLITE_|SqliteError|pg_catalog|at .*\(.*\.ts:\d+/, about)
}

/** The items of a list, the counted values, or the lines of a file. */
function rowsIn({ text, headers }: Heard): readonly unknown[] {
  if (headers['content-disposition'] !== undefined) return text.split('\n').filter((line) => line !== '')
  const lists = Object.values(JSON.parse(text) as object).filter((value) => Array.isArray(value))
  return lists.flat().flatMap((row) => (row as { values?: readonly unknown[] }).values ?? [row])
}

/** An hour of the statistics in which there was no request. */
function isEmptyTime(row: unknown): boolean {
  const { at, requests } = row as { at?: string; requests?: number }
  return at !== undefined && requests === 0
}

/** As it stands: `%` is a percent sign, and no wildcard. */
function has(row: unknown, text: string): boolean {
  return JSON.stringify(row).toLowerCase().includes(JSON.stringify(text).slice(1, -1).toLowerCase())
}

/** A lone surrogate has no UTF-8. */
function encoded(values: readonly string[]): readonly string[] {
  return values.map((value) => encodeURIComponent(value.toWellFormed()))
}

/** What an operation does not go without. */
function needed({ id }: AnyOperation, parameter: string): string {
  return id === 'lookupFingerprint' && parameter === 'match'
    ? 'ja4=t13d1516h2_8daaf6152771_e5627efa2ab1&'
    : ''
}

type Place = readonly (string | number)[]

/** Of every member, however deep. */
function placesIn(value: unknown, at: Place = []): readonly Place[] {
  if (typeof value !== 'object' || value === null) return [at]
  return [at, ...Object.entries(value).flatMap(([key, member]) => placesIn(member, [...at, key]))]
}

function withValue(body: unknown, [key, ...rest]: Place, value: unknown): unknown {
  if (key === undefined) return value
  const copy: Record<string, unknown> = Array.isArray(body)
    ? ([...(body as unknown[])] as never)
    : { ...Object(body) }
  copy[key] = withValue(copy[key], rest, value)
  return copy
}

/** Where 0 is a number and not a text. */
const TAKES_NUMBERS = new Set(['page', 'limit', 'min_confidence'])
/** It answers with the text that it was asked for. */
const LOOKS_UP_ONE = new Set(['lookupFingerprint'])
/** Parameters with the id of something, which is missing. */
const NAMES_ONE = new Set(['getAgentRules app'])
const HEADERS = [
  ...[
    'authorization',
    'if-match',
    'if-none-match',
    'idempotency-key',
    'last-event-id',
    'x-request-id',
    'origin',
  ],
  ...['accept', 'accept-encoding', 'accept-language', 'cookie', 'dpop', 'signature', 'signature-input'],
  ...[
    'signature-agent',
    'forwarded',
    'x-forwarded-host',
    'x-forwarded-for',
    'content-type',
    'content-encoding',
  ],
  ...['traceparent', 'mcp-session-id', 'mcp-protocol-version', 'a2a-version', 'sec-fetch-site', 'range'],
]
/** Nothing may have emptied them. */
const NEEDED = [
  'api_keys',
  'users',
  'webhooks',
  'oauth_clients',
  'trust',
  'software',
  'signatures',
  'policies',
]
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
type Door = readonly [path: string, body: object | string, headers?: Readonly<Record<string, string>>]

function DOORS(value: string): readonly Door[] {
  const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })
  const a2a = { 'a2a-version': '1.0' }
  const mcp = { accept: 'application/json, text/event-stream' }
  const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString()
  return [
    ['/a2a', rpc('GetTask', { id: value }), a2a],
    ['/a2a', rpc('ListTasks', { contextId: value }), a2a],
    ['/a2a', rpc('ListTasks', { pageToken: value }), a2a],
    ['/a2a', rpc('CancelTask', { id: value }), a2a],
    ['/a2a', rpc(value, {}), a2a],
    ['/mcp', rpc('resources/read', { uri: value }), mcp],
    ['/mcp', rpc('resources/list', { cursor: value }), mcp],
    ['/mcp', rpc('tools/call', { name: value, arguments: {} }), mcp],
    ['/mcp', rpc('prompts/get', { name: value, arguments: { agent_id: value } }), mcp],
    ['/mcp', rpc('completion/complete', completion(value)), mcp],
    [
      '/oauth/token',
      form({ grant_type: 'client_credentials', client_id: value, client_secret: value }),
      FORM,
    ],
    [
      '/oauth/token',
      form({ grant_type: 'authorization_code', code: value, client_id: 'x', code_verifier: value }),
      FORM,
    ],
    ['/oauth/token', form({ grant_type: value, scope: value }), FORM],
    ['/oauth/revoke', form({ token: value, client_id: value }), FORM],
    ['/oauth/introspect', form({ token: value }), FORM],
    ['/gnap/grant', { access_token: { access: [value] }, client: value }],
    [`/gnap/continue/${encodeURIComponent(value.toWellFormed())}`, {}],
  ]
}

function completion(value: string): object {
  return {
    ref: { type: 'ref/resource', uri: 'gatehouse://agents/{agent_id}' },
    argument: { name: 'agent_id', value },
  }
}

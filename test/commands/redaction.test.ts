import assert from 'node:assert/strict'
import { test } from 'tap'
import { redactHead, redactHeader, redactUrl } from '../../src/commands/record/redaction.ts'

const X = '<redacted>'
const HEX = '4bf92f3577b34da6a3ce929d0e0e4736'

const HEADERS: readonly (readonly [name: string, value: string, written: string])[] = [
  ['authorization', 'Bearer abc.def', `Bearer ${X}`],
  ['authorization', 'Digest username="me", response="00"', `Digest ${X}`],
  ['authorization', 'abcdef', X],
  ['authorization', 'two words', X],
  ['proxy-authorization', 'Basic bWU6c2VjcmV0', `Basic ${X}`],
  ['x-api-key', 'short', X],
  ['api-key', 'two words', X],
  ['x-goog-api-key', 'AIza', X],
  ['x-auth-token', '1', X],
  ['x-amz-security-token', 'a', X],
  ['x-csrf-token', 'a', X],
  ['x-accesstoken', 'a', X],
  ['x-portkey-api-key', 'a', X],
  ['x-user-auth', 'a', X],
  ['mcp-session-id', 'a', X],
  ['x-whatever', 'bearer secret', `bearer ${X}`],
  ['x-whatever', 'sk-proj-0123456789', X],
  ['x-whatever', 'key=ghp_0123456789abcdef;', `key=${X};`],
  ['x-whatever', 'eyJhbGciOi.eyJzdWIi.c2ln', X],
  ['x-request-id', HEX, X],
  ['traceparent', `00-${HEX}-00f067aa0ba902b7-01`, X],
  ['cookie', 'b=2; a=1;c=x=y', `b=${X}; a=${X};c=${X}`],
  ['cookie', 'novalue', X],
  ['cookie', 'a=1; ', `a=${X}; `],
  ['set-cookie', 'a=1', `a=${X}`],
  ['referer', 'https://a.test/p?q=1&r=2', 'https://a.test/p?q=&r='],
  [':path', '/p?q=1', '/p?q='],
  // What fingerprints are made of stays.
  [':authority', 'a.test', 'a.test'],
  ['anthropic-beta', 'fine-grained-tool-streaming-2025-05-14', 'fine-grained-tool-streaming-2025-05-14'],
  [
    'user-agent',
    'tool/1.0 (0123456789abcdef0123456789abcdef)',
    'tool/1.0 (0123456789abcdef0123456789abcdef)',
  ],
  ['accept', 'text/html,application/xhtml+xml;q=0.9', 'text/html,application/xhtml+xml;q=0.9'],
  ['x-portkey-runtime', 'node', 'node'],
  ['x-stainless-package-version', '7.0.1', '7.0.1'],
  ['x-api-key', '', ''],
]

for (const [name, value, written] of HEADERS) {
  test(`${name}: ${value}`, async () => {
    assert.equal(redactHeader(name, value, false), written)
  })
}

test('of a query the names stay', async () => {
  for (const [url, written] of [
    ['/', '/'],
    ['/a?', '/a?'],
    ['/a?b=c=d&e&f=', '/a?b=&e&f='],
    ['/a?b=1?c=2\n', '/a?b='],
    [`/reset/${HEX}`, `/reset/${X}`],
  ] as const)
    assert.equal(redactUrl(url, false), written)
  assert.equal(redactUrl('/a?b=1&c=two', true), '/a?b=1&c=two')
  assert.equal(redactUrl('https://u:p@ss@h.test/a@b', true), `https://${X}@h.test/a@b`)
  assert.equal(redactHeader('http-referer', 'https://u:p@h.test/', false), `https://${X}@h.test/`)
  assert.equal(redactUrl(`/a?b=${HEX}`, true), `/a?b=${X}`)
})

test('a request keeps its names, their case and order', async () => {
  const head = {
    ...({ method: 'GET', target: '/?a=1', version: '11' } as const),
    rawHeaders: ['Host', 'a.test', 'X-API-Key', 'abc', 'COOKIE', 'a=1'],
  }
  assert.deepEqual(redactHead(head, false), {
    ...{ method: 'GET', target: '/?a=', version: '11' },
    rawHeaders: ['Host', 'a.test', 'X-API-Key', X, 'COOKIE', `a=${X}`],
  })
})

import assert from 'node:assert/strict'
import { test } from 'tap'
import { hasOddNames } from '../../src/wire/header-name.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import type { Connection } from '../../src/proxy/connection/connection.ts'
import { NOTHING_KNOWN } from '../../src/proxy/connection/connection.ts'
import { judge } from '../../src/proxy/request/judge.ts'
import { startGate } from '../proxy/test-gate.ts'
import { settingsFor } from '../proxy/upstream-fixture.ts'
import { IS_WHOLE } from './whole.ts'

/** `proxy.limits.header_bytes`, less what else there is in a head. */
const LENGTH = 60 * 1024
const filled = (text: string, length = LENGTH) =>
  text.repeat(Math.ceil(length / text.length)).slice(0, length)
const numbered = (count: number, name: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => name(index))

/** What one head can be full of, a value each or many. */
const HEADS: Readonly<Record<string, readonly string[]>> = {
  cookies: ['cookie', filled('a;')],
  'cookies with values': ['cookie', filled('a=b; ')],
  'cookies, each another': ['cookie', numbered(6_000, (index) => `${6_000 - index}=b`).join(';')],
  'cookies in many fields': numbered(190, () => '').flatMap(() => ['cookie', filled('a=b;', 310)]),
  'cookies of blanks': ['cookie', filled(' ;')],
  'one cookie': ['cookie', `a=${filled('b')}`],
  'characters beyond ASCII': ['x', filled('\u00e9')],
  'bytes that are no UTF-8': ['x', filled('\u00ff\u0080')],
  'a User-Agent of products': ['user-agent', filled('bot/1 ')],
  'a User-Agent of comments': ['user-agent', filled('Mozilla/5.0 (compatible; ')],
  'a User-Agent of brackets': ['user-agent', filled('(')],
  languages: ['accept-language', filled('-, ')],
  types: ['accept', filled('a/b,')],
  brands: ['sec-ch-ua', filled('"a";v="1", ')],
  'hops by X-Forwarded-For': ['x-forwarded-for', filled('192.0.2.1,')],
  'empty hops in X-Forwarded-For': ['x-forwarded-for', filled(',')],
  'hops by Forwarded': ['forwarded', filled('for="[2001:db8::1]";by=_a,')],
  'options of Connection': ['connection', numbered(9_000, (index) => `n${index}`).join(',')],
  'blanks in TE': ['te', filled(' ,')],
  'labels of signatures': ['signature-input', filled('a=("b");c=1,'), 'signature', 'a=:AA==:'],
  'parameters of a signature': ['signature-input', `a=()${filled(';b=1')}`, 'signature', 'a=:AA==:'],
  'agents of signatures': ['signature-agent', filled('"https://agent.example"')],
  traces: ['traceparent', filled('00-'), 'tracestate', filled('a=b,')],
  'our own headers': numbered(190, (index) => `x-agent-${index}`).flatMap((name) => [name, filled('a', 300)]),
  'names of headers': numbered(190, (index) => `${index}${filled('n', 300)}`).flatMap((name) => [name, '']),
}
/** The same length of nothing in particular. */
const PLAIN = ['x', filled('a')]
const POLICY = {
  rules: [
    { name: 'asks all', when: { expression: 'request.headers.cookie.contains("zzz")' }, action: 'block' },
    { name: 'asks a glob', when: { header: { cookie: '*y*z*', 'user-agent': '*y*z*' } }, action: 'block' },
  ],
}

test('no head costs many times what another one of its length does', { timeout: 300_000 }, async (t) => {
  const knowledge = await loadKnowledge(null, null)
  const { context } = await startGate(t, {
    ...{ upstreams: [settingsFor(['http://127.0.0.1:9'])], policy: POLICY, knowledge },
  })
  let number = 0
  const timeOf = (fields: readonly string[], isTrusted: boolean) => {
    const times = Array.from({ length: TIMES }, () => {
      // Another one each time, that nothing is remembered of.
      const [name = '', value = '', ...others] = fields
      const rawHeaders = ['host', 'a', name, `${value}${number++}`, ...others]
      const head = {
        method: 'GET',
        target: `/${number}`,
        version: '20',
        rawHeaders,
        hasOddNames: hasOddNames(rawHeaders),
      } as const
      const startMs = performance.now()
      judge(context, { connection: connection(isTrusted), head, authority: 'a' })
      return performance.now() - startMs
    })
    return Math.min(...times) // a busy machine only adds to it
  }
  let dearest = 0
  for (const isTrusted of [false, true]) {
    timeOf(PLAIN, isTrusted)
    for (const [name, fields] of Object.entries(HEADS)) {
      timeOf(fields, isTrusted)
      const factor = () => timeOf(fields, isTrusted) / timeOf(PLAIN, isTrusted)
      // Again, where something else may have happened meanwhile.
      const dear = Math.min(...lazily(factor))
      dearest = Math.max(dearest, dear)
      assert.ok(dear < FACTOR_MAX, `${name}: ${dear.toFixed(1)} times as much`)
    }
  }
  t.comment(
    `${Object.keys(HEADS).length * 2} heads of ${LENGTH} characters, ${dearest.toFixed(1)} times as much at most`,
  )
})

/** Three at most, and none behind one that is good. */
function* lazily(measure: () => number): Generator<number> {
  for (let left = 3; left > 0; left--) {
    const found = measure()
    yield found
    if (found < FACTOR_MAX) return
  }
}

function connection(isTrusted: boolean): Connection {
  return {
    ...{ id: 1, address: '192.0.2.1', port: 1, peerAddress: '192.0.2.1', localPort: 1, localAddress: '' },
    ...{
      protocol: 'h2',
      isTls: false,
      serverName: null,
      print: NOTHING_KNOWN,
      conduct: null,
      introduction: null,
      admittedAuthority: null,
    },
    ...{ isTrusted, isJa4Hop: false },
  }
}

const TIMES = IS_WHOLE ? 101 : 11
/** Cookies took 65 times as much before they were counted, characters beyond ASCII 90 times. */
const FACTOR_MAX = 25

import assert from 'node:assert/strict'
import type { Asked } from '../e2e/app.ts'
import { until } from '../until.ts'
import { type ClientsApp, EVENTS, FIELDS, GZIP, LARGE, MANY, PAGE } from './app.ts'
import { type Answer, type Ask, ask, sha256 } from './ask.ts'
import type { Ability } from './clients.ts'

/** What a client is to ask for, and what it and the app must see of it. */
export interface ClientCase {
  readonly name: string
  readonly needs?: Ability
  readonly asks: readonly Ask[]
  check(seen: Seen): void | Promise<void>
}

export interface Seen {
  readonly answers: readonly Answer[]
  /** What the app was asked. */
  readonly asked: readonly Asked[]
  readonly app: ClientsApp
  readonly can: readonly Ability[]
}

export const CASES: readonly ClientCase[] = [
  {
    name: 'an answer with 100 fields',
    asks: [ask('/fields')],
    check({ answers }) {
      const [answer] = whole(answers, 'ok')
      const found = new Map(answer!.headers)
      for (const [name, value] of FIELDS) assert.equal(found.get(name), value)
    },
  },
  {
    name: `${MANY} requests at once`,
    asks: Array.from({ length: MANY }, (_, i) => ask(`/many?${i}`, { headers: [['x-turn', `${i}`]] })),
    check({ answers, asked }) {
      assert.equal(asked.length, MANY)
      for (const { url, rawHeaders } of asked)
        assert.equal(url, `/many?${valuesOf(rawHeaders, 'x-turn').join()}`)
      for (const [i, answer] of answers.entries()) whole([answer], `/many?${i}`)
    },
  },
  {
    name: 'a download of 32 MiB',
    asks: [ask('/large')],
    check: ({ answers, app }) => void whole(answers, app.pattern),
  },
  {
    name: 'an upload of 32 MiB',
    asks: [ask('/upload', { method: 'POST', upload: LARGE })],
    check({ answers, asked, app }) {
      whole(answers, 'taken')
      assert.equal(asked[0]!.body, sha256(app.pattern))
      assert.deepEqual(valuesOf(asked[0]!.rawHeaders, 'content-length'), [`${LARGE}`])
    },
  },
  {
    name: 'an upload of unknown length',
    needs: 'stream',
    asks: [ask('/upload', { method: 'PUT', upload: 3_000_000, isStreamed: true })],
    check({ answers, asked, app }) {
      whole(answers, 'taken')
      assert.equal(asked[0]!.body, sha256(app.pattern.subarray(0, 3_000_000)))
      assert.deepEqual(valuesOf(asked[0]!.rawHeaders, 'content-length'), [])
    },
  },
  {
    name: 'an upload that waits for 100 Continue',
    needs: 'expect',
    asks: [ask('/upload', { method: 'POST', upload: 100_000, headers: [['expect', '100-continue']] })],
    check({ answers, asked, app }) {
      whole(answers, 'taken')
      assert.equal(asked[0]!.body, sha256(app.pattern.subarray(0, 100_000)))
    },
  },
  {
    // The gateway reads and drops the rest of it.
    name: 'an upload of 8 MiB that the app refuses at once',
    asks: [ask('/too-large', { method: 'POST', upload: LARGE / 4 })],
    check: ({ answers }) => void whole(answers, 'too large', 413),
  },
  {
    // The gateway resets the stream behind its answer.
    name: 'an upload of 32 MiB that the app refuses at once',
    needs: 'early',
    asks: [ask('/too-large', { method: 'POST', upload: LARGE })],
    check: ({ answers }) => void whole(answers, 'too large', 413),
  },
  {
    name: 'events, each of which comes only when the one before has been read',
    asks: [ask('/events', { ack: '/next' })],
    check: ({ answers }) =>
      void whole(answers, Array.from({ length: EVENTS }, (_, i) => `data: ${i}\n\n`).join('')),
  },
  {
    name: 'a request that the client takes back',
    needs: 'reset',
    asks: [ask('/endless', { isCut: true })],
    check: ({ app }) => until(() => app.cut === 1),
  },
  {
    name: 'HEAD',
    asks: [ask('/head', { method: 'HEAD' })],
    check({ answers }) {
      const [answer] = whole(answers, '')
      assert.deepEqual(valuesOf(answer!.headers.flat(), 'content-length'), ['1234567'])
    },
  },
  {
    name: '204',
    asks: [ask('/none')],
    check({ answers }) {
      const [answer] = whole(answers, '', 204)
      assert.deepEqual(valuesOf(answer!.headers.flat(), 'x-none'), ['yes'])
    },
  },
  {
    name: '304',
    asks: [ask('/same', { headers: [['if-none-match', '"a"']] })],
    check({ answers, asked }) {
      const [answer] = whole(answers, '', 304)
      assert.deepEqual(valuesOf(answer!.headers.flat(), 'etag'), ['"a"'])
      assert.deepEqual(valuesOf(asked[0]!.rawHeaders, 'if-none-match'), ['"a"'])
    },
  },
  {
    name: '103 Early Hints before the answer',
    asks: [ask('/hints')],
    check: ({ answers }) => void whole(answers, 'ok'),
  },
  {
    name: 'a compressed answer',
    asks: [ask('/gzip', { headers: [['accept-encoding', 'gzip']] })],
    check({ answers, can }) {
      const [answer] = whole(answers, can.includes('raw') ? GZIP : PAGE)
      assert.deepEqual(valuesOf(answer!.headers.flat(), 'content-encoding'), ['gzip'])
    },
  },
  {
    // RFC 9113 §8.2.3.
    name: 'cookies in fields of their own',
    asks: [ask('/', { headers: ['a=1', 'b=2', 'c=3'].map((cookie) => ['cookie', cookie] as const) })],
    check({ answers, asked }) {
      whole(answers, 'ok')
      assert.deepEqual(valuesOf(asked[0]!.rawHeaders, 'cookie'), ['a=1; b=2; c=3'])
    },
  },
  {
    name: 'trailers of an answer',
    needs: 'trailers',
    asks: [ask('/trailers', { headers: [['te', 'trailers']] })],
    check({ answers }) {
      const [answer] = whole(answers, 'the body')
      assert.deepEqual(answer!.trailers, [['x-sum', '7']])
    },
  },
  {
    name: 'trailers of a request',
    needs: 'send-trailers',
    asks: [ask('/trailers', { method: 'POST', upload: 1000, isStreamed: true, trailers: [['x-sum', '12']] })],
    check({ answers, asked }) {
      whole(answers, 'the body')
      assert.deepEqual(valuesOf(asked[0]!.rawTrailers, 'x-sum'), ['12'])
    },
  },
]

/** The answers, after a check that they are as expected. */
export function whole(answers: readonly Answer[], body: string | Uint8Array, status = 200) {
  for (const answer of answers) {
    assert.deepEqual([answer.error, answer.status], ['', status])
    assert.deepEqual([answer.length, answer.sha256], [Buffer.byteLength(body), sha256(body)])
  }
  return answers
}

/** All values of a field, in whatever case its name is. */
function valuesOf(raw: readonly string[], name: string): string[] {
  return raw.flatMap((found, i) => (i % 2 === 0 && found.toLowerCase() === name ? [raw[i + 1]!] : []))
}

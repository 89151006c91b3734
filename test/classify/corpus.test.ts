import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { type CorpusRow, KNOWN_LABELS, parseCorpusRow } from '../../src/classify/known/corpus.ts'
import { traitNames } from '../../src/fingerprint/hello-traits.ts'
import { DocumentFault } from '../../src/shared/problem.ts'
import { clientHello, extension, records, serverName, supportedGroups } from '../vectors/hello-builder.ts'

const SHARED = '../shared/corpus/clients.jsonl'
const HELLO = clientHello({
  ciphers: [0x1301],
  extensions: [serverName('a.test'), supportedGroups(4588), extension(27)],
})
const HELLO_HEX = Buffer.concat(records([HELLO.subarray(0, 20), HELLO.subarray(20)])).toString('hex')
const LEAST = { id: 'r1', client: 'tool', label: 'http-library' }
const GET = { http: '1.1', method: 'GET', path: '/', headers: [['Host', 'a.test']] }
const GET_H2 = {
  http: '2.0',
  method: 'GET',
  path: '/',
  headers: [
    [':method', 'GET'],
    [':path', '/'],
    [':scheme', 'https'],
    [':authority', 'a.test'],
    ['accept', '*/*'],
  ],
}

test('the least that a row says', async () => {
  const nothing = { version: null, runtime: null, situation: null, ts: null, requests: [] }
  const print = {
    ja4: null,
    unresumed: null,
    stable: null,
    traits: null,
    ja4s: null,
    ja4x: null,
    http2: null,
    pageWeight: null,
  }
  assert.deepEqual(parseCorpusRow(LEAST), {
    ...LEAST,
    ...nothing,
    print: { ...print, noHello: 'not-tls', ja4Source: null },
  })
})

test('a hello is read from its records, and the print is what our own code says', async () => {
  const { print } = parseCorpusRow({ ...LEAST, client_hello_hex: HELLO_HEX, ja4: 'ignored' })
  assert.deepEqual([print.noHello, print.ja4Source], [null, 'own'])
  assert.match(print.ja4!, /^t12d010300_[0-9a-f]{12}_[0-9a-f]{12}$/)
  assert.match(print.stable!, /^gs1-t12d010300-/)
  assert.deepEqual(traitNames(print.traits!), ['compressCertificate', 'postQuantum', 'mlKem', 'tls13Ciphers'])
})

test('a hello that cannot be read is malformed, and not left out', async () => {
  for (const hex of [HELLO_HEX.slice(0, -2), '00', `17${HELLO_HEX.slice(2)}`]) {
    const { print } = parseCorpusRow({ ...LEAST, client_hello_hex: hex })
    assert.deepEqual([print.ja4, print.noHello, print.ja4Source], [null, 'malformed', null], hex)
  }
})

test('a JA4 may stand in place of a hello', async () => {
  const ja4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
  const { print } = parseCorpusRow({ ...LEAST, client_hello_hex: null, ja4 })
  assert.deepEqual([print.ja4, print.stable, print.noHello, print.ja4Source], [ja4, null, null, 'own'])
})

test('a request is a RequestHead, with its own JA4H and what else was noted', async () => {
  const request = {
    ...{ http: '1.0', method: 'POST', path: '/a?b=1', body_bytes: 7, situation: 'form', t: 12 },
    headers: [
      ['User-Agent', 'caf\u00e9'],
      ['Cookie', 'a=1'],
    ],
  }
  const [read] = parseCorpusRow({ ...LEAST, requests: [request] }).requests
  assert.deepEqual(read!.head, {
    method: 'POST',
    target: '/a?b=1',
    version: '10',
    rawHeaders: ['User-Agent', 'caf\u00e9', 'Cookie', 'a=1'],
  })
  assert.match(read!.ja4h!, /^po10cn010000_/)
  assert.equal(
    parseCorpusRow({ ...LEAST, requests: [request] }, false).requests[0]!.ja4h,
    null,
    'JA4+ is off',
  )
  assert.deepEqual([read!.bodyBytes, read!.situation, read!.atMs], [7, 'form', 12])
  const [plain] = parseCorpusRow({ ...LEAST, requests: [GET] }).requests
  assert.deepEqual([plain!.bodyBytes, plain!.situation, plain!.atMs], [0, null, null])
})

const PRIORITY = { stream: 3, exclusive: 1, dep: 0, weight: 201 }
const OPENINGS: readonly (readonly [what: string, h2: unknown, text: string | null])[] = [
  [
    'settings in the order sent',
    {
      settings: [
        [4, 9, 'NAME'],
        [2, 0],
      ],
      window_update: 5,
    },
    '4:9;2:0|5|0|m,p,s,a',
  ],
  ['nothing said', { settings: [], window_update: null, priority: [] }, '|00|0|m,p,s,a'],
  ['priorities', { settings: [[1, 2]], priority: [PRIORITY] }, '1:2|00|3:1:0:201|m,p,s,a'],
  [
    'priorities before the first HEADERS only',
    {
      settings: [[1, 2]],
      priority: [PRIORITY, { ...PRIORITY, stream: 5 }],
      frames: [
        [4, 0, 0, 6],
        [2, 0, 3, 5],
        [1, 5, 1, 20],
        [2, 0, 5, 5],
      ],
    },
    '1:2|00|3:1:0:201|m,p,s,a',
  ],
  ['more settings than any client sends', { settings: Array(33).fill([1, 2]) }, null],
]

for (const [what, h2, text] of OPENINGS) {
  test(`HTTP/2: ${what}`, async () => {
    assert.equal(parseCorpusRow({ ...LEAST, requests: [GET_H2], h2 }).print.http2, text)
  })
}

test('HTTP/2: the weight of a page that a person opened', async () => {
  const opened = [
    ['sec-fetch-dest', 'document'],
    ['sec-fetch-site', 'none'],
  ]
  const page = { ...GET_H2, headers: [...GET_H2.headers, ...opened] }
  const weightOf = (request: object, weight?: number | null) =>
    parseCorpusRow({ ...LEAST, requests: [request], h2: { settings: [[4, 9]], weight } }).print.pageWeight
  assert.deepEqual(
    [255, 0, null, undefined].map((weight) => weightOf(page, weight)),
    [255, 0, null, null],
  )
  assert.equal(weightOf(GET_H2, 255), null)
})

test('HTTP/2 without a request, or with one of HTTP/1, has no fingerprint', async () => {
  const h2 = { settings: [[4, 9]] }
  for (const requests of [[], [GET]])
    assert.equal(parseCorpusRow({ ...LEAST, requests, h2 }).print.http2, null)
})

const BAD: readonly (readonly [pointer: string, row: unknown])[] = [
  ['', []],
  ['', 'text'],
  ['', { id: 'r1', client: 'tool' }],
  ['/id', { ...LEAST, id: 7 }],
  ['/label', { ...LEAST, label: '' }],
  ['/version', { ...LEAST, version: {} }],
  ['/client_hello_hex', { ...LEAST, client_hello_hex: '160' }],
  ['/client_hello_hex', { ...LEAST, client_hello_hex: '16zz' }],
  ['/client_hello_hex', { ...LEAST, client_hello_hex: '' }],
  ['/client_hello_hex', { ...LEAST, client_hello_hex: '16'.repeat(65_537) }],
  ['/ja4', { ...LEAST, ja4: 'chrome' }],
  ['/requests', { ...LEAST, requests: {} }],
  ['/requests', { ...LEAST, requests: Array(10_001).fill(GET) }],
  ['/requests/0', { ...LEAST, requests: ['GET /'] }],
  ['/requests/0', { ...LEAST, requests: [{ path: '/' }] }],
  ['/requests/0/http', { ...LEAST, requests: [{ ...GET, http: '3.0' }] }],
  ['/requests/0/path', { ...LEAST, requests: [{ ...GET, path: '/'.repeat(65_537) }] }],
  ['/requests/1/headers/0', { ...LEAST, requests: [GET, { ...GET, headers: [['Host']] }] }],
  ['/requests/0/headers/0', { ...LEAST, requests: [{ ...GET, headers: [['Host', 7]] }] }],
  ['/requests/0/headers/0', { ...LEAST, requests: [{ ...GET, headers: [['A', '\u0142']] }] }],
  ['/requests/0/headers/0', { ...LEAST, requests: [{ ...GET, headers: [['A', 'a'.repeat(65_536)]] }] }],
  ['/requests/0/headers', { ...LEAST, requests: [{ ...GET, headers: Array(1001).fill(['A', 'b']) }] }],
  ['/requests/0/body_bytes', { ...LEAST, requests: [{ ...GET, body_bytes: -1 }] }],
  ['/requests/0/t', { ...LEAST, requests: [{ ...GET, t: '3' }] }],
  ['/h2', { ...LEAST, h2: 'settings' }],
  ['/h2/settings/0/1', { ...LEAST, h2: { settings: [[1, 2 ** 32]] } }],
  ['/h2/settings/0', { ...LEAST, h2: { settings: [[1]] } }],
  ['/h2/priority/0/weight', { ...LEAST, h2: { priority: [{ ...PRIORITY, weight: 0 }] } }],
  ['/h2/weight', { ...LEAST, h2: { weight: 257 } }],
  ['/h2/window_update', { ...LEAST, h2: { window_update: '1' } }],
  ['/h2/frames/0', { ...LEAST, h2: { frames: [4] } }],
]

for (const [pointer, row] of BAD) {
  test(`refused, at ${pointer || 'the row'}: ${JSON.stringify(row).slice(0, 70)}`, async () => {
    assert.throws(
      () => parseCorpusRow(row),
      (fault) =>
        fault instanceof DocumentFault && fault.problems.every((problem) => problem.pointer === pointer),
    )
  })
}

test('every problem is said at once', async () => {
  const bad = { ...LEAST, id: 1, requests: [{ ...GET, path: 2, headers: [[3, 4]] }] }
  assert.throws(
    () => parseCorpusRow(bad),
    (fault) =>
      fault instanceof DocumentFault &&
      fault.problems.map(({ pointer }) => pointer).join() === '/id,/requests/0/path,/requests/0/headers/0',
  )
})

const isThere = existsSync(SHARED)

test('the shared recordings all parse, and agree with who recorded them', {
  skip: !isThere && `${SHARED} is not there`,
}, async () => {
  const lines = readFileSync(SHARED, 'utf8').trimEnd().split('\n')
  assert.equal(lines.length, 578)
  for (const line of lines) {
    const recorded = JSON.parse(line) as Recorded
    const row = parseCorpusRow(recorded)
    assert.ok(row.print.ja4 !== null && row.print.traits !== null, row.id)
    assert.ok(
      KNOWN_LABELS.some((label) => label === row.label),
      row.label,
    )
    assertAgrees(row, recorded)
  }
})

interface Recorded {
  readonly h2?: { readonly akamai: string | null }
  readonly requests: readonly { readonly ja4h: string }[]
}

/** They wrote `0` for no WINDOW_UPDATE, and left `*` as it is where JA4H takes letters. */
function assertAgrees(row: CorpusRow, recorded: Recorded): void {
  const akamai = recorded.h2?.akamai ?? null
  assert.equal(row.print.http2?.replace('|00|', '|0|') ?? null, akamai, row.id)
  assert.deepEqual(
    row.requests.map(({ ja4h }) => ja4h),
    recorded.requests.map(({ ja4h }) => ja4h.replace('*0', '2a')),
    row.id,
  )
}

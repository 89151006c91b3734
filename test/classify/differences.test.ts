import assert from 'node:assert/strict'
import { test } from 'tap'
import { type CorpusRow, parseCorpusRow } from '../../src/classify/known/corpus.ts'
import { PeopleShown } from '../../src/classify/measure/differences.ts'

const JA4 = 't13d1517h2_8daaf6152771_cb7bf5808d99'
const OTHER_JA4 = 't13d1517h2_8daaf6152771_000000000000'
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'
const PAGE: Headers = [
  ['sec-ch-ua', '"Not:A-Brand";v="8", "Chromium";v="156"'],
  ['user-agent', CHROME],
  ['accept', 'text/html'],
  ['sec-fetch-mode', 'navigate'],
  ['sec-fetch-dest', 'document'],
  ['accept-language', 'en'],
]
const SCRIPT = changed(PAGE, 'sec-fetch-dest', 'script')
const PEOPLE = new PeopleShown([
  row(PAGE),
  row([...PAGE, ['cookie', 'a=b']]),
  row(without(PAGE, 'accept'), { method: 'POST' }),
  row(PAGE, { method: 'POST' }),
])

test('ignores what people sent, cookies, and names of scripts and platforms', async () => {
  for (const headers of [
    PAGE,
    [...PAGE, ['x-of-a-script', '1'], ['referer', 'https://a.test/']],
    changed(PAGE, 'user-agent', CHROME.replace('X11; Linux x86_64', 'Windows NT 10.0; Win64; x64')),
    changed(PAGE, 'sec-ch-ua', '"Not:A-Brand";v="8", "Google Chrome";v="156", "Chromium";v="156"'),
  ] as Headers[])
    assert.deepEqual(PEOPLE.differencesOf(row(headers)), [])
})

test('each way in which automation differs', async () => {
  const [first, ...rest] = PAGE
  for (const [difference, found] of [
    ['headless', row(changed(PAGE, 'user-agent', CHROME.replace('Chrome', 'HeadlessChrome')))],
    ['headless', row(changed(PAGE, 'sec-ch-ua', '"HeadlessChrome";v="156"'))],
    ['no browser in the User-Agent', row(changed(PAGE, 'user-agent', 'driven/1.0'))],
    ['no browser in the User-Agent', row(without(PAGE, 'user-agent'))],
    ['hello', row(PAGE, { ja4: OTHER_JA4 })],
    ['brand', row(changed(PAGE, 'sec-ch-ua', '" Not A;Brand";v="99", "Chromium";v="156"'))],
    ['header missing', row(without(PAGE, 'accept-language'))],
    ['header order', row([...rest, first!])],
  ] as const)
    assert.deepEqual(PEOPLE.differencesOf(found), [difference])
})

test('a header that people did not always send is not missing', async () => {
  assert.deepEqual(PEOPLE.differencesOf(row(without(PAGE, 'accept'), { method: 'POST' })), [])
  assert.deepEqual(PEOPLE.differencesOf(row(without(PAGE, 'accept'))), ['header missing'])
})

test('ignores requests of a kind that was never recorded', async () => {
  assert.deepEqual(PEOPLE.differencesOf(row(without(SCRIPT, 'accept-language'))), [])
})

test('finds nothing without a recording of that version', async () => {
  const older = changed(PAGE, 'user-agent', CHROME.replace('156', '147'))
  assert.equal(PEOPLE.differencesOf(row(older, { ja4: OTHER_JA4 })), null)
  assert.equal(new PeopleShown([]).differencesOf(row(PAGE)), null)
})

test('another opening of HTTP/2', async () => {
  const opening = (increment: number) => ({ settings: [[1, 65536]], window_update: increment, priority: [] })
  const people = new PeopleShown([row(PAGE, { http: '2.0', h2: opening(1) })])
  assert.deepEqual(people.differencesOf(row(PAGE, { http: '2.0', h2: opening(1) })), [])
  assert.deepEqual(people.differencesOf(row(PAGE, { http: '2.0', h2: opening(2) })), ['HTTP/2'])
})

type Headers = readonly (readonly [string, string])[]

function changed(headers: Headers, name: string, value: string): Headers {
  return headers.map((header) => (header[0] === name ? [name, value] : header))
}

function without(headers: Headers, name: string): Headers {
  return headers.filter((header) => header[0] !== name)
}

function row(
  headers: Headers,
  { ja4 = JA4, method = 'GET', http = '1.1', h2 = null as object | null } = {},
): CorpusRow {
  const requests = [{ http, method, path: '/', headers }]
  return parseCorpusRow({ id: 'r1', client: 'chromium', label: 'human-browser', ja4, h2, requests })
}

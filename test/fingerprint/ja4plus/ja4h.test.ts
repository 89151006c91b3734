import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'tap'
import { ja4h, ja4hRaw } from '../../../src/fingerprint/ja4plus/ja4h.ts'
import type { HttpVersion, RequestHead } from '../../../src/wire/request-head.ts'
import { BUDGET } from '../../vectors/arbitraries.ts'

/** The rules in the plainest words. Text is one character a byte. */
function parts(head: RequestHead): [a: string, names: string, cookieNames: string, cookiePairs: string] {
  const headers = head.rawHeaders.flatMap((name, i) =>
    i % 2 === 0 ? [[name, head.rawHeaders[i + 1]!] as const] : [],
  )
  const valuesOf = (wanted: string) =>
    headers.flatMap(([name, value]) => (name.toLowerCase() === wanted ? [value] : []))
  const names = headers.map(([name]) => name).filter((name) => !/^(:.*|cookie|referer)$/is.test(name))
  const cookies = valuesOf('cookie')
    .flatMap((value) => value.split(';'))
    .map((cookie) => cookie.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter((cookie) => cookie !== '')
    .map((pair) => ({ pair, name: pair.replace(/=.*$/s, '') }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.name, 'latin1'), Buffer.from(b.name, 'latin1')))
  const [language = ''] = valuesOf('accept-language')
  const letters = language
    .replace(/[,;].*$/s, '')
    .replace(/[- \t]/g, '')
    .replace(/[^A-Za-z]/g, (other) => other.charCodeAt(0).toString(16).padStart(2, '0'))
  const a = [
    head.method.slice(0, 2).toLowerCase() + head.version,
    valuesOf('cookie').length > 0 ? 'c' : 'n',
    valuesOf('referer').length > 0 ? 'r' : 'n',
    `${Math.min(names.length, 99)}`.padStart(2, '0'),
    letters.toLowerCase().slice(0, 4).padEnd(4, '0'),
  ]
  return [a.join(''), `${names}`, `${cookies.map(({ name }) => name)}`, `${cookies.map(({ pair }) => pair)}`]
}

const NAMES = [
  'Host',
  'cookie',
  'Cookie',
  'COOKIE',
  'Referer',
  'referer',
  'Accept-Language',
  'accept-language',
  'Cookie2',
]
const bytes = fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array).toString('latin1'))
const crumbs = fc.string({
  unit: fc.constantFrom('a', 'b', '-', '=', ';', ' ', '\t', '.', 'Z', '\u00e9'),
  maxLength: 20,
})
const headers = fc.array(
  fc.tuple(
    fc.oneof(fc.constantFrom(...NAMES), fc.constantFrom(':path', ':', 'x-a'), bytes),
    fc.oneof(crumbs, bytes),
  ),
  { maxLength: 105, size: '+1' },
)
const heads: fc.Arbitrary<RequestHead> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'get', 'DELETE', 'X', ''),
  target: fc.constant('/'),
  version: fc.constantFrom<HttpVersion>('10', '11', '20', '30'),
  rawHeaders: headers.map((list) => list.flat()),
})

test('any request has the fingerprint that the rules say', async () => {
  const cases = fc.property(heads, (head) => {
    const [a, ...lists] = parts(head)
    assert.equal(ja4hRaw(head), [a, ...lists].join('_'))
    assert.equal(ja4h(head), [a, ...lists.map(sha12)].join('_'))
  })
  fc.assert(cases, BUDGET)
})

test('a language that begins with any character', async () => {
  for (let code = 0; code < 256; code++) {
    const character = String.fromCharCode(code)
    const head = requestOf(['Accept-Language', `${character}b`])
    const [a] = parts(head)
    assert.equal(ja4hRaw(head).slice(0, 12), a, `character ${code}`)
  }
})

/** Method, and its letters where they are not its first two. */
const METHODS: Readonly<Record<string, string>> = {
  ...{ CHECKIN: 'cn', CHECKOUT: 'ct', COPY: 'cy', 'M-SEARCH': 'ms', MKCALENDAR: 'mc', MKCOL: 'ml' },
  ...{ MKREDIRECTREF: 'mr', MKWORKSPACE: 'mw', PROPFIND: 'pf', PROPPATCH: 'pp', REBIND: 'rb', REPORT: 'rp' },
  ...{ UNBIND: 'ub', UNCHECKOUT: 'uc', UNLINK: 'ui', UNLOCK: 'uo', UPDATEREDIRECTREF: 'ur' },
}

test('methods that would share their first two letters are told apart', async () => {
  for (const [method, mark] of Object.entries(METHODS)) {
    assert.equal(ja4h({ ...requestOf([]), method }).slice(0, 2), mark)
    assert.equal(ja4h({ ...requestOf([]), method: method.toLowerCase() }).slice(0, 2), mark)
  }
  const common = [
    'GET',
    'POST',
    'PUT',
    'HEAD',
    'DELETE',
    'OPTIONS',
    'PATCH',
    'TRACE',
    'CONNECT',
    'LOCK',
    'MOVE',
  ]
  for (const method of common) {
    assert.equal(ja4h({ ...requestOf([]), method }).slice(0, 2), method.slice(0, 2).toLowerCase())
  }
})

test('the order in which cookies are sent does not matter, that of headers does', async () => {
  const names = fc.uniqueArray(
    fc.string({ unit: fc.constantFrom('a', 'b', '-', '.', '_'), minLength: 1, maxLength: 4 }),
  )
  const shuffled = names.chain((list) => {
    const whole = { minLength: list.length, maxLength: list.length }
    return fc.tuple(fc.constant(list), fc.shuffledSubarray(list, whole))
  })
  const cases = fc.property(shuffled, ([sent, other]) => {
    const pairs = (list: readonly string[]) => list.map((name) => `${name}=${sent.indexOf(name)}`)
    const joined = requestOf(['Cookie', pairs(sent).join('; ')])
    const crumbled = requestOf(pairs(other).flatMap((pair) => ['Cookie', pair]))
    if (sent.length > 0) assert.equal(ja4h(crumbled), ja4h(joined))
  })
  fc.assert(cases, BUDGET)
  assert.notEqual(ja4h(requestOf(['A', '', 'B', ''])), ja4h(requestOf(['B', '', 'A', ''])))
})

test('names that came before hash as the first time, however many others came between', async () => {
  for (let pass = 0; pass < 2; pass++) {
    for (let i = 0; i < 5000; i++) {
      const name = i % 500 === 0 ? `x-${i}-`.padEnd(1000, '.') : `x-${i}`
      const found = ja4h(requestOf([name, '', 'Cookie', `c${i}=1`]))
      assert.equal(found, `ge11cn010000_${sha12(name)}_${sha12(`c${i}`)}_${sha12(`c${i}=1`)}`)
    }
  }
})

test('what is remembered of names keeps nothing else of their headers', async () => {
  const program = `
    import { ja4h } from ${JSON.stringify(new URL('../../../src/fingerprint/ja4plus/ja4h.ts', import.meta.url).href)}
    const used = () => { gc(); gc(); return process.memoryUsage().heapUsed }
    const before = used()
    for (let i = 0; i < 2000; i++) {
      const cookie = 'a-long-cookie-name-' + i + '=' + Buffer.alloc(60_000, 'x').toString('latin1')
      ja4h({ method: 'GET', target: '/', version: '11', rawHeaders: ['Cookie', cookie] })
    }
    console.log(used() - before)`
  const args = ['--expose-gc', '--input-type=module', '--eval', program]
  const held = Number(execFileSync(process.execPath, args, { encoding: 'utf8' }))
  assert.ok(held < 4_000_000, `${held} bytes`)
})

test('of cookies by the ten thousand only the first are read, in one header as in many', async () => {
  const crumbs = Array.from({ length: 30_000 }, (_, index) => `c${index}=1`)
  const first = ja4h(requestOf(['Cookie', crumbs.slice(0, 256).join('; ')]))
  assert.equal(ja4h(requestOf(['Cookie', crumbs.join('; ')])), first)
  assert.equal(ja4h(requestOf(crumbs.flatMap((crumb) => ['Cookie', crumb]))), first)
  assert.notEqual(ja4h(requestOf(['Cookie', crumbs.slice(0, 255).join('; ')])), first)
})

function requestOf(rawHeaders: readonly string[]): RequestHead {
  return { method: 'GET', target: '/', version: '11', rawHeaders }
}

/** Of the bytes, which the text has one a character of. */
function sha12(text: string): string {
  const digest = createHash('sha256').update(Buffer.from(text, 'latin1')).digest('hex')
  return text === '' ? '000000000000' : digest.slice(0, 12)
}

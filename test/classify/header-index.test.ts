import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { HEADER, HeaderIndex } from '../../src/classify/known/index/header-index.ts'
import { HeaderOrders } from '../../src/classify/known/header-orders.ts'
import { Reading } from '../../src/classify/verdict/reading.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'

const LIST = parseSoftwareList([
  agent('any', [{ header: 'x-sdk' }]),
  agent('exact', [{ header: 'X-Sdk', value: 'Exact' }]),
  agent('begins', [{ header: 'x-sdk', value: 'begin*' }]),
  agent('ends', [{ header: 'x-sdk', value: '*end' }]),
  agent('around', [{ header: 'x-sdk', value: 'aa*aa' }]),
  agent('three', [{ header: 'x-sdk', value: '*one*two*' }]),
  agent('hinted', [{ header: 'sec-ch-ua', value: '*"HeadlessChrome"*' }]),
  { id: 'kit', name: 'kit', kind: 'tool', signatures: [signature({ header: 'x-kit' })] },
  {
    ...{ id: 'chrome', name: 'chrome', kind: 'browser', engine: 'blink' },
    signatures: [
      signature({
        header_order: ['host', 'user-agent', 'accept', 'referer', 'cookie', 'te'],
        protocol: 'h1',
      }),
      signature({ header_order: ['accept', 'user-agent', 'referer', 'cookie', 'te'], protocol: 'h1' }),
    ],
  },
])
const INDEX = new HeaderIndex(LIST)

const VALUES: readonly (readonly [value: string, id: string])[] = [
  ['', 'any'],
  ['whatever', 'any'],
  ['exact', 'exact'],
  ['EXACT', 'exact'],
  ['exactly', 'any'],
  ['begin', 'begins'],
  ['Begin with it', 'begins'],
  ['the end', 'ends'],
  ['the end.', 'any'],
  ['aaaa', 'around'],
  ['aabaa', 'around'],
  ['aaa', 'any'],
  ['no one, but two', 'three'],
  ['two, one', 'any'],
  ['begin and end', 'begins'],
]

for (const [value, id] of VALUES) {
  test(`a header that says ${JSON.stringify(value)} is ${id}'s`, async () => {
    for (const name of ['x-sdk', 'X-SDK', 'x-Sdk']) assert.equal(INDEX.find(name).softwareOf(value)?.id, id)
  })
}

test('values fit as a regular expression would have it', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 6 })
  const value = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 8 })
  fc.assert(
    fc.property(text, value, (pattern, said) => {
      fc.pre(pattern !== '')
      const index = new HeaderIndex(parseSoftwareList([agent('one', [{ header: 'x', value: pattern }])]))
      const wanted = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(said)
      assert.equal(index.find('x').softwareOf(said) !== null, wanted, `${pattern} ${said}`)
    }),
    { numRuns: 1000 },
  )
})

test('of two that a value fits the one is meant that gives way less', async () => {
  const list = [
    { ...agent('base', [{ header: 'x', value: '*base*' }]), gives_way: 1 },
    agent('built-on-it', [{ header: 'x', value: '*built*' }]),
  ]
  for (const each of [list, list.toReversed()]) {
    const index = new HeaderIndex(parseSoftwareList(each))
    assert.equal(index.find('x').softwareOf('base, built')?.id, 'built-on-it')
    assert.equal(index.find('x').softwareOf('base')?.id, 'base')
  }
})

test('a value names the same software the second time, after many others, and if it is long', async () => {
  const header = INDEX.find('x-sdk')
  for (let round = 0; round < 3; round++)
    for (let i = 0; i < 100; i++) {
      const rest = i % 2 === 0 ? 'x'.repeat(300) : 'x'
      assert.equal(header.softwareOf(`begin ${i} ${rest}`)?.id, 'begins')
      assert.equal(header.softwareOf(`other ${i} ${rest}`)?.id, 'any')
    }
})

test('an unknown name says nothing, and neither does a name of an object member', async () => {
  for (const name of ['x-other', '', 'constructor', '__proto__', 'x-sdk ', 'x'.repeat(100_000)]) {
    const header = INDEX.find(name)
    assert.deepEqual([header.code, header.isEvidence], [0, false], name.slice(0, 20))
  }
})

test('names are known however many others came between', async () => {
  const before = INDEX.find('Sec-CH-UA')
  assert.equal(before.code, HEADER['sec-ch-ua'])
  for (let i = 0; i < 5000; i++) assert.equal(INDEX.find(`x-${i}`).code, 0)
  assert.equal(INDEX.find('Sec-CH-UA'), before)
})

test('every header that matters has a bit of its own', async () => {
  const codes = Object.values(HEADER)
  assert.equal(new Set(codes).size, codes.length)
  for (const code of codes) assert.ok(code >= 1 && code <= 31)
})

test('a reading keeps the first of each, but joins User-Agents', async () => {
  const found = read('accept', 'a', 'Accept', 'b', 'User-Agent', 'one', 'user-agent', 'two')
  assert.deepEqual([found.accept, found.userAgent], ['a', 'one, two'])
  assert.deepEqual([...found.order.slice(0, found.orderLength)], [9, 9, 8, 8])
  assert.deepEqual([found.has(HEADER.accept), found.has(HEADER.host)], [true, false])
})

test('a reading says what was sent for each header, and forgets what was read before', async () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.constantFrom(...Object.keys(HEADER))), (names) => {
      const reading = new Reading()
      reading.read(head(...Object.keys(HEADER).flatMap((name) => [name, 'before']), 'x-kit', '1'), INDEX)
      reading.read(head(...names.flatMap((name) => [name, 'now'])), INDEX)
      for (const [name, code] of Object.entries(HEADER)) assert.equal(reading.has(code), names.includes(name))
      assert.equal(reading.orderLength, names.length)
      assert.equal(reading.accept, names.includes('accept') ? 'now' : null)
      assert.equal(reading.fetchDest, names.includes('sec-fetch-dest') ? 'now' : null)
      assert.deepEqual([reading.tool, reading.hasCapitals], [null, false])
    }),
  )
})

test('an agent and a tool that their headers give away', async () => {
  const found = read('X-Kit', '1', 'X-SDK', 'exact')
  assert.deepEqual([found.tool?.id, found.agent?.id, found.agentHeader], ['kit', 'exact', 'X-SDK'])
  assert.equal(read('sec-ch-ua', '"HeadlessChrome";v="1"').agent?.id, 'hinted')
  assert.ok(found.hasCapitals)
  assert.ok(!read('x-Kit', '1').hasCapitals)
})

test('an order agrees with any that is known, whatever is left out or not known', async () => {
  const orders = new HeaderOrders(LIST)
  const compared = (...names: readonly string[]) =>
    orders.compare('blink', 'h1', read(...names.flatMap((name) => [name, ''])))
  assert.equal(compared('host', 'user-agent', 'accept', 'referer', 'cookie', 'te'), 'agrees')
  assert.equal(compared('host', 'x-other', 'user-agent', 'accept', 'cookie', 'te'), 'agrees')
  assert.equal(compared('accept', 'user-agent', 'referer', 'cookie', 'te'), 'agrees', 'the other order')
  assert.equal(compared('te', 'user-agent', 'accept', 'referer', 'cookie'), 'disagrees')
  assert.equal(compared('te', 'cookie', 'accept', 'host'), 'unknown', 'too few to tell')
  assert.equal(orders.compare('blink', 'h2', read()), 'unknown')
  assert.equal(orders.compare('gecko', 'h1', read()), 'unknown')
})

test('does not remember requests with too many headers', async () => {
  const found = read(...Array.from({ length: 10_000 }, () => ['cookie', 'a=1']).flat())
  assert.ok(found.orderLength <= found.order.length)
  assert.ok(found.has(HEADER.cookie))
})

function read(...rawHeaders: readonly string[]): Reading {
  const reading = new Reading()
  reading.read(head(...rawHeaders), INDEX)
  return reading
}

function head(...rawHeaders: readonly string[]) {
  return { method: 'GET', target: '/', version: '11', rawHeaders } as const
}

function agent(id: string, signatures: readonly object[]) {
  return { id, name: id, kind: 'agent', category: 'custom', signatures: signatures.map(signature) }
}

function signature(pattern: object) {
  return { ...pattern, source: 'made for this test', date: '2026-11-21' }
}

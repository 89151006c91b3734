import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { AddressLists, markAddress } from '../../src/classify/known/address-lists.ts'
import { EvidenceSet } from '../../src/classify/known/evidence.ts'
import { parseSoftwareList, type Software } from '../../src/classify/known/software.ts'
import { Address } from '../../src/wire/address-ranges.ts'

const DAY_MS = 86_400_000
const READ_MS = Date.UTC(2026, 10, 21)
const ELSEWHERE = '198.51.100.7'

test('the first and the last address of each range are in it, and their neighbours are where arithmetic says', async () => {
  const ipv4 = fc.tuple(fc.integer({ min: 0x1400_0000, max: 0x14ff_ffff }), fc.integer({ min: 8, max: 32 }))
  const ipv6 = fc.tuple(fc.bigInt(0n, 2n ** 100n), fc.integer({ min: 28, max: 128 }))
  const range = fc.oneof(
    ipv4.map(([low, length]) => naive(BigInt(low), length, 32)),
    ipv6.map(([low, length]) => naive((0x2001n << 112n) | (low << 7n) | 5n, length, 128)),
  )
  const lists = fc.uniqueArray(range, { minLength: 1, maxLength: 12, selector: textOf })
  fc.assert(
    fc.property(lists, (ranges) => {
      // Two of the widest are a list; more are refused.
      const sum = ranges.reduce((all, { bits, length }) => all + 2 ** ((bits === 32 ? 8 : 19) - length), 0)
      fc.pre(sum <= 2)
      const list = listOf(ranges.map(textOf))
      for (const { first, last, bits } of ranges)
        for (const value of [first - 1n, first, last, last + 1n])
          for (const text of formsOf(value, bits)) {
            const isIn = ranges.some(
              (each) => each.bits === bits && each.first <= value && value <= each.last,
            )
            assert.deepEqual(saidBy(list, text), [isIn ? 'address-published' : 'address-foreign'], text)
          }
    }),
    { numRuns: 2000 },
  )
})

test('of who is elsewhere it is said for as long as the list is new, and never by one that lacks addresses', async () => {
  const said = (days: number, isPartial = false, address = ELSEWHERE) =>
    saidBy(listOf(['192.0.2.0/24'], isPartial), address, READ_MS + days * DAY_MS)
  for (const days of [-1, 0, 1, 90, 90.99]) {
    assert.deepEqual(said(days), ['address-foreign'], `${days}`)
    assert.deepEqual(said(days, true), [], `${days}`)
  }
  for (const days of [-20_000, -2, 91, 1000]) assert.deepEqual(said(days), [], `${days}`)
  for (const days of [-20_000, 0, 91, 1000])
    for (const isPartial of [true, false])
      assert.deepEqual(said(days, isPartial, '192.0.2.9'), ['address-published'])
})

test('an address that is not known, or that many have, proves nothing', async () => {
  const list = listOf(['192.0.2.0/24'])
  for (const address of ['', 'unknown', '127.0.0.1', '10.0.0.7', '::1', 'fe80::1', '::ffff:192.168.0.1'])
    assert.deepEqual(saidBy(list, address), [], address)
})

test('those with one ranges_url have one list: the newest; one of their own comes first', async () => {
  const url = { ranges_url: 'https://vendor.test/ips.json' }
  const older = { source: 's', date: '2026-11-01', prefixes: ['192.0.2.0/24'] }
  const newer = { source: 's', date: '2026-11-02', prefixes: ['203.0.113.0/24'] }
  const lists = compiled(
    parseSoftwareList([
      bot('follower', url),
      bot('first', { ...url, ranges: older }),
      bot('second', { ...url, ranges: newer }),
      bot('other', { ranges_url: 'https://other.test/ips.json' }),
      bot('none', { reverse_dns: ['.bot.test'] }),
      { id: 'tool', name: 'Tool', kind: 'tool', verification: url },
    ]),
  )
  const ids = (text: string) => lists.with(read(text)).map(({ software }) => software.id)
  assert.deepEqual(ids('192.0.2.1'), ['first'])
  assert.deepEqual(ids('203.0.113.1'), ['follower', 'second'])
  assert.deepEqual(ids(ELSEWHERE), [])
})

test('a list of any length is compiled with pauses', async () => {
  const prefixes = Array.from({ length: 20_000 }, (_, i) => `20.${i >> 8}.${i & 255}.0/25`)
  const compiling = AddressLists.compiling(parseSoftwareList([botWith(prefixes)]))
  let pauses = 0
  while (!compiling.next().done) pauses++
  assert.ok(pauses >= 20, `${pauses}`)
})

interface NaiveRange {
  readonly first: bigint
  readonly last: bigint
  readonly length: number
  readonly bits: 32 | 128
}

function naive(within: bigint, length: number, bits: 32 | 128): NaiveRange {
  const size = 1n << BigInt(bits - length)
  const first = within - (within % size)
  return { first, last: first + size - 1n, length, bits }
}

function textOf({ first, length, bits }: NaiveRange): string {
  return `${formsOf(first, bits)[0]}/${length}`
}

/** How it can be written. */
function formsOf(value: bigint, bits: 32 | 128): readonly string[] {
  if (bits === 32) {
    const dotted = [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.')
    const [high, low] = [value >> 16n, value & 0xffffn].map((word) => word.toString(16))
    return [dotted, `::ffff:${dotted}`, `0:0:0:0:0:FFFF:${high}:${low}`]
  }
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16))
  const whole = groups.join(':')
  const short = whole.replace(/(?:^|:)0(?::0)+(?::|$)/, '::')
  return [whole, short, whole.toUpperCase(), groups.map((group) => group.padStart(4, '0')).join(':')]
}

function listOf(prefixes: readonly string[], partial = false) {
  const [software] = parseSoftwareList([botWith(prefixes, partial)])
  return compiled([software!]).of(software!)!
}

function botWith(prefixes: readonly string[], partial = false): object {
  return bot('bot', { ranges: { source: 's', date: '2026-11-21', partial, prefixes } })
}

function bot(id: string, verification: object): object {
  return { id, name: id, kind: 'agent', category: 'crawler', verification }
}

function compiled(list: readonly Software[]): AddressLists {
  const compiling = AddressLists.compiling(list)
  for (;;) {
    const step = compiling.next()
    if (step.done) return step.value
  }
}

function saidBy(list: ReturnType<typeof listOf>, text: string, nowMs = READ_MS): readonly string[] {
  const marks = new EvidenceSet()
  assert.equal(markAddress(marks, list, read(text), nowMs), marks.kinds().length > 0)
  return marks.kinds()
}

function read(text: string): Address {
  const address = new Address()
  address.read(text)
  return address
}

import assert from 'node:assert/strict'
import { test } from 'tap'
import { AddressLists } from '../../src/classify/known/address-lists.ts'
import { parseSoftwareList, type Software } from '../../src/classify/known/software.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import { IndexBuilder } from '../../src/classify/known/index/index-builder.ts'
import { rangesInUse, withFetchedRanges } from '../../src/runtime/published-lists.ts'
import { loadWeightsDocument } from '../../src/runtime/signatures/knowledge-files.ts'
import { publishedRanges } from '../../src/identity/address/ranges-document.ts'
import { makeSignatureSet } from '../../src/plane/signature-set.ts'
import { Address } from '../../src/wire/address-ranges.ts'
import { temporaryFolder } from '../e2e/programs.ts'

const URL = 'https://bot.example/ips.json'
const OWN = ranges(['192.0.2.0/24'], '2026-11-10')

test('a list that was fetched is that of all who have its URL', async () => {
  const list = agents({ bot: { ranges_url: URL, ranges: OWN }, image: { ranges_url: URL }, other: {} })
  assert.deepEqual(whose(list, '192.0.2.1'), ['bot', 'image'])
  const refreshed = withFetchedRanges(list, [fetched(['198.51.100.0/24'], '2026-11-20')])
  assert.deepEqual(whose(refreshed, '192.0.2.1'), [])
  assert.deepEqual(whose(refreshed, '198.51.100.1'), ['bot', 'image'])
  const published = refreshed[0]!.verification.ranges!
  assert.deepEqual([published.source, published.date], ['bot.example/ips.json', '2026-11-20'])
  assert.equal(refreshed[1], list[1], 'it stands with one of them')
})

test('a new list goes to all agents with its URL, and to no others', async () => {
  const list = agents({
    bot: { ranges_url: URL },
    image: { ranges_url: URL },
    other: { ranges_url: `${URL}l` },
  })
  const refreshed = withFetchedRanges(list, [fetched(['198.51.100.0/24'], '2026-11-20')])
  assert.deepEqual(whose(refreshed, '198.51.100.1'), ['bot', 'image'])
  assert.deepEqual(
    refreshed.map(({ verification }) => verification.ranges !== null),
    [true, false, false],
  )
  assert.equal(withFetchedRanges(list, []), list)
})

test('the newer one wins, and of the same day the one that was fetched', async () => {
  const list = agents({ bot: { ranges_url: URL, ranges: OWN } })
  for (const [date, wins] of [
    ['2026-11-09', false],
    ['2026-11-10', true],
    ['2026-11-11', true],
  ] as const) {
    const refreshed = withFetchedRanges(list, [fetched(['198.51.100.0/24'], date)])
    assert.deepEqual(whose(refreshed, '198.51.100.1'), wins ? ['bot'] : [], date)
  }
})

test('a partial list is never evidence against a claim', async () => {
  const list = agents({ bot: { ranges_url: URL, ranges: { ...OWN, partial: true } } })
  const [bot] = withFetchedRanges(list, [fetched(['198.51.100.0/24'], '2026-11-20')])
  assert.equal(bot!.verification.ranges!.isPartial, true)
})

test('reads the lists in use from a set: each URL once, with its newest list and its agent', async (t) => {
  const list = agents({
    image: { ranges_url: URL },
    bot: { ranges_url: URL, ranges: OWN },
    newer: { ranges_url: URL, ranges: ranges(['198.51.100.0/24'], '2026-11-12') },
    later: { ranges_url: `${URL}l` },
    own: { ranges: OWN },
  })
  const weights = await loadWeightsDocument(null)
  parseWeights(weights)
  const set = await makeSignatureSet(
    { list, fingerprints: new IndexBuilder(), weights },
    temporaryFolder(t),
    null,
  )
  const found = await rangesInUse(set!)
  assert.deepEqual(
    found.map(({ url, agent, published }) => [url, agent, published?.date ?? null]),
    [
      [URL, 'newer', '2026-11-12'],
      [`${URL}l`, 'later', null],
    ],
  )
})

function whose(list: readonly Software[], address: string): readonly string[] {
  const compiling = AddressLists.compiling(list)
  let step = compiling.next()
  while (!step.done) step = compiling.next()
  const read = new Address()
  read.read(address)
  return step.value.with(read).map(({ software }) => software.id)
}

function agents(given: Readonly<Record<string, object>>): readonly Software[] {
  return parseSoftwareList(
    Object.entries(given).map(([id, verification]) => {
      return { id, name: id, kind: 'agent', category: 'crawler', verification }
    }),
  )
}

function ranges(prefixes: readonly string[], date: string) {
  return { prefixes, date, source: 'the vendor' }
}

function fetched(prefixes: readonly string[], date: string) {
  return { url: URL, published: publishedRanges(prefixes, URL, date) }
}

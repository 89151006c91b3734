import assert from 'node:assert/strict'
import { test } from 'tap'
import { Dice, ipv4, joinedIn, play, HOMES, people, playCrawl, type Place } from './campaign-crowd.ts'

const SEEDS = [1, 2]

test('a crawl is found among few people, and among very many', async () => {
  for (const count of [100, 1_000, 12_000]) {
    const { found, crawled, wrong } = playCrawl(1, count, 500)
    assert.ok(found.length === 1 && crawled! <= 1_000, `${count} people: ${crawled}`)
    assert.ok(wrong <= count / 1_000, `${wrong} of ${count} are joined`)
  }
})

test('people with one popular browser are not a campaign', async () => {
  for (const seed of SEEDS) {
    const dice = new Dice(seed)
    const requests = people(dice, 10_000, { ...HOMES, browsers: 1 })
    assert.deepEqual(play(requests).found, [])
  }
})

test('offices with 200 people behind one address are not a campaign', async () => {
  for (const seed of SEEDS) {
    const dice = new Dice(seed)
    const offices: Place = { addressOf: (i) => () => ipv4(Math.floor(i / 200)), browsers: 1 }
    const played = play(people(dice, 8_000, offices))
    assert.deepEqual([played.found.length, joinedIn(played).size], [0, 0])
  }
})

test('mobile carriers are not a campaign, even if each connection gets another address', async () => {
  for (const [count, addresses] of [
    [8_000, 64],
    [4_000, 2_048],
  ] as const) {
    for (const isSticky of [true, false]) {
      const dice = new Dice(count + addresses)
      const carrier: Place = {
        addressOf: (_, { below }) => {
          const own = ipv4(dice.below(addresses))
          return isSticky ? () => own : () => ipv4(below.call(dice, addresses))
        },
        browsers: 2,
      }
      const played = play(people(dice, count, carrier))
      const said = `${count} people, ${addresses} addresses, ${isSticky ? 'sticky' : 'any'}`
      assert.deepEqual([played.found.length, joinedIn(played).size], [0, 0], said)
    }
  }
})

test('a crawl is found beside offices and carriers, and none of them is joined', async () => {
  const mixedPlace: Place = {
    addressOf: (i, dice) => {
      if (i % 3 === 0) return () => ipv4(i)
      if (i % 3 === 1) return () => ipv4((1 << 22) + (i >> 9))
      return () => ipv4((2 << 22) + dice.below(64))
    },
  }
  const { found, crawled, wrong } = playCrawl(3, 6_000, 500, {}, mixedPlace)
  assert.ok(found.length === 1 && crawled! <= 1_000, `${crawled}`)
  assert.ok(wrong <= 6, `${wrong}`)
})

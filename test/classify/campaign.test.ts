import assert from 'node:assert/strict'
import { test } from 'tap'
import { REQUEST_KIND } from '../../src/classify/campaign/seen-request.ts'
import { FOUND_MAX } from '../../src/classify/campaign/finder.ts'
import { CAMPAIGNS_MAX, MEMBERS_MAX } from '../../src/classify/campaign/members.ts'
import { networkHash } from '../../src/manage/intake/sighting-intake.ts'
import { mixed } from '../../src/wire/network-hash.ts'
import {
  browser,
  type Crawl,
  crawl,
  Dice,
  type Habits,
  ipv4,
  joinedIn,
  newFinder,
  PAGES,
  person,
  play,
  SALT,
  SITE,
  USUAL,
} from './campaign-crowd.ts'

const BEGIN_MS = Date.UTC(2026, 0, 1)
const CRAWL_MS = BEGIN_MS + 600_000
const CRAWLER = 200 << 16
const SEEDS = [1, 2]

interface Place {
  addressOf(person: number, dice: Dice): () => string
  readonly habits?: Habits
  readonly browsers?: number
}

/** People over half an hour. Half of them have the most common browser, in its only version. */
function people(dice: Dice, count: number, { addressOf, habits = USUAL, browsers = 9 }: Place = HOMES) {
  const requests = []
  for (let i = 0; i < count; i++) {
    const which = browser(browsers === 1 || dice.chance(0.5) ? 0 : 1 + dice.below(browsers - 1))
    const fromMs = BEGIN_MS + dice.below(1_800_000)
    requests.push(...person(dice, addressOf(i, dice), which, fromMs, habits))
  }
  return requests
}

const HOMES: Place = { addressOf: (i) => () => ipv4(i) }

function crawlFrom(dice: Dice, addresses: number, more: Partial<Crawl> = {}): Crawl {
  const addressOf = () => ipv4(CRAWLER + dice.below(addresses))
  return { requests: 1_500, perSecond: 20, jitter: 1, addressOf, ...more }
}

function isOfCrawl(addresses: number): (request: { readonly network: number }) => boolean {
  const of = Array.from({ length: addresses }, (_, i) => networkHash(ipv4(CRAWLER + i), SALT))
  const networks = new Set(of)
  return ({ network }) => networks.has(network)
}

/** Plays a crawl among people, and returns how it was joined. */
function playCrawl(seed: number, count: number, addresses: number, more: Partial<Crawl> = {}, place = HOMES) {
  const dice = new Dice(seed)
  const isCrawl = isOfCrawl(addresses)
  const requests = [...people(dice, count, place), ...crawl(dice, CRAWL_MS, crawlFrom(dice, addresses, more))]
  const played = play(requests, isCrawl)
  const joined = [...joinedIn(played)]
  const wrong = joined.filter((network) => !isCrawl({ network })).length
  return { ...played, joined: joined.length - wrong, wrong }
}

for (const seed of SEEDS) {
  test(`seed ${seed}: a crawl from 500 addresses is found among 5,000 people within 1,000 requests`, async () => {
    const { found, crawled, joined, wrong } = playCrawl(seed, 5_000, 500)
    assert.equal(found.length, 1)
    assert.ok(crawled! <= 1_000, `found after ${crawled} requests`)
    assert.ok(joined >= 250, `${joined} addresses are joined`)
    assert.ok(wrong <= 5, `${wrong} of 5,000 people are joined`)
  })
}

test('a crawl is found on a site that has no other visitors, at any pace, in turns and at random', async () => {
  for (const inTurns of [false, true]) {
    for (const perSecond of [1, 20, 100]) {
      const addressOf = inTurns ? (i: number) => ipv4(CRAWLER + (i % 500)) : undefined
      const more = { perSecond, jitter: 0, ...(addressOf === undefined ? {} : { addressOf }) }
      const { found, crawled, joined } = playCrawl(1, 0, 500, more)
      const said = `${perSecond} a second, ${inTurns ? 'in turns' : 'at random'}: ${crawled} ${joined}`
      assert.ok(found.length === 1 && crawled! <= 1_000 && joined >= 300, said)
    }
  }
})

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

test('where parts come from another host, people are not joined', async () => {
  for (const seed of SEEDS) {
    const dice = new Dice(seed)
    const habits = { ...USUAL, partsElsewhere: true }
    const played = play(people(dice, 6_000, { ...HOMES, habits }))
    assert.deepEqual([played.found.length, joinedIn(played).size], [0, 0])
  }
})

test('a newsletter that many people open from a mail, with all parts cached, is not a campaign', async () => {
  const dice = new Dice(1)
  const cached = { ...USUAL, cached: 1, direct: 1 }
  const readers: Place = { addressOf: (i) => () => ipv4((1 << 22) + i), habits: cached, browsers: 1 }
  const letters = people(dice, 3_000, readers).map((request) => ({ ...request, target: request.target % 5 }))
  assert.deepEqual(play([...people(dice, 3_000), ...letters]).found, [])
})

test('a member that loads parts, or follows a link, is a member no longer', async () => {
  for (const kind of [REQUEST_KIND.part, REQUEST_KIND.followed]) {
    const dice = new Dice(1)
    const played = play(crawl(dice, CRAWL_MS, crawlFrom(dice, 100)))
    const [campaign] = played.finder.campaigns
    const network = [...campaign!.members.keys()][0]!
    const { program, order } = browser(0)
    played.finder.note({ network, host: SITE, program, order, kind, target: 1, atMs: campaign!.lastSeenMs })
    assert.equal(campaign!.members.has(network), false)
    assert.equal(played.finder.look(campaign!.lastSeenMs + 6_000).isChanged, true)
  }
})

test('a campaign counts what its members request, and ends an hour after the last of it', async () => {
  const dice = new Dice(1)
  const { finder, found } = play(crawl(dice, CRAWL_MS, crawlFrom(dice, 100)))
  const [campaign] = finder.campaigns
  assert.equal(found[0], campaign)
  assert.ok(campaign!.requests > 500, `${campaign!.requests}`)
  finder.look(campaign!.lastSeenMs + 3_599_000)
  assert.equal(finder.campaigns.length, 1)
  assert.equal(finder.look(campaign!.lastSeenMs + 3_601_000).isChanged, true)
  assert.equal(finder.campaigns.length, 0)
})

test('other crawlers, sites and browsers are other campaigns', async () => {
  const dice = new Dice(1)
  const requests = [0, 1, 2].flatMap((number) =>
    crawl(dice, CRAWL_MS, crawlFrom(dice, 100, { browser: browser(number) })),
  )
  const elsewhere = crawl(dice, CRAWL_MS, crawlFrom(dice, 100)).map((each) => ({ ...each, host: SITE + 1 }))
  const { finder } = play([...people(dice, 500), ...requests, ...elsewhere])
  assert.equal(new Set(finder.campaigns.map(({ id }) => id)).size, 4)
})

test('a flood of invented visitors joins no one, and takes no more memory', async () => {
  const dice = new Dice(1)
  const flood = Array.from({ length: 200_000 }, (_, i) => ({
    network: mixed(i % 70_000),
    host: SITE,
    program: mixed(i),
    order: mixed(i + 1),
    kind: REQUEST_KIND.page,
    target: i,
    atMs: CRAWL_MS + i,
  }))
  const finder = newFinder()
  const before = finder.bytes
  const played = play([...flood, ...people(dice, 2_000)], undefined, finder)
  assert.deepEqual([played.found.length, joinedIn(played).size], [0, 0])
  assert.equal(finder.bytes, before)
  assert.ok(before < 5_000_000, `${before} bytes`)
})

test('a flood of invented crawlers begins a few campaigns at a time, and replaces none that goes on', async () => {
  const dice = new Dice(1)
  const finder = newFinder()
  const flood = (fromMs: number) =>
    Array.from({ length: 120_000 }, (_, i) => ({
      network: 1 + (i % 60_000),
      host: i % 1_000,
      program: mixed(i % 1_000),
      order: 1,
      kind: REQUEST_KIND.page,
      target: dice.below(2 ** 32),
      atMs: fromMs + i / 2,
    }))
  let nowMs = CRAWL_MS
  const ids: string[][] = []
  for (let round = 0; round < 3; round++) {
    for (const seen of flood(nowMs)) finder.note(seen)
    nowMs += 60_000
    for (let look = 0; look < 8; look++) {
      nowMs += 1_000
      const { found } = finder.look(nowMs)
      assert.ok(found.length <= FOUND_MAX, `${found.length}`)
    }
    ids.push(finder.campaigns.map(({ id }) => id))
  }
  assert.equal(ids[0]!.length, CAMPAIGNS_MAX)
  assert.deepEqual(ids[1], ids[0])
  assert.deepEqual(ids[2], ids[0])
})

test('one address cannot push out the visitors of others', async () => {
  const dice = new Dice(1)
  const network = networkHash('192.0.2.1', SALT)
  const flood = Array.from({ length: 100_000 }, (_, i) => ({
    network,
    host: SITE,
    program: mixed(i),
    order: 1,
    kind: REQUEST_KIND.page,
    target: i,
    atMs: CRAWL_MS + i / 2,
  }))
  const isCrawl = isOfCrawl(500)
  const requests = [...flood, ...crawl(dice, CRAWL_MS, crawlFrom(dice, 500))]
  const { found, crawled } = play(requests, isCrawl)
  assert.ok(found.length === 1 && crawled! <= 1_000, `${crawled}`)
})

test('campaigns and members are bounded', async () => {
  const dice = new Dice(1)
  const finder = newFinder()
  for (let number = 0; number < CAMPAIGNS_MAX + 8; number++) {
    const from = (number + 1) << 16
    const addressOf = () => ipv4(from + dice.below(60))
    const fromMs = CRAWL_MS + number * 30_000
    const requests = crawl(dice, fromMs, crawlFrom(dice, 60, { addressOf, requests: 400 }))
    play(
      requests.map((each) => ({ ...each, host: number + 1 })),
      undefined,
      finder,
    )
  }
  assert.equal(finder.campaigns.length, CAMPAIGNS_MAX)
  const large = newFinder()
  const more = crawlFrom(dice, 8_000, { requests: 40_000, perSecond: 200 })
  play(crawl(dice, CRAWL_MS, more), undefined, large)
  assert.equal(large.campaigns[0]!.members.size, MEMBERS_MAX)
})

test('requests that are neither pages nor parts are not counted', async () => {
  const finder = newFinder()
  const { program, order } = browser(0)
  for (let i = 0; i < 2_000; i++) {
    const network = mixed(i % 200)
    const kind = REQUEST_KIND.other
    finder.note({ network, host: SITE, program, order, kind, target: PAGES + i, atMs: CRAWL_MS + i * 50 })
  }
  assert.deepEqual(finder.look(CRAWL_MS + 200_000).found, [])
})

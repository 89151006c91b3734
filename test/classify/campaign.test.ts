import assert from 'node:assert/strict'
import { test } from 'tap'
import { REQUEST_KIND } from '../../src/classify/campaign/seen-request.ts'
import { FOUND_MAX } from '../../src/classify/campaign/finder.ts'
import { CAMPAIGNS_MAX, MEMBERS_MAX } from '../../src/classify/campaign/members.ts'
import { networkHash } from '../../src/manage/intake/sighting-intake.ts'
import { mixed } from '../../src/wire/network-hash.ts'
import {
  browser,
  crawl,
  Dice,
  ipv4,
  joinedIn,
  newFinder,
  PAGES,
  play,
  SALT,
  SITE,
  USUAL,
  CRAWL_MS,
  CRAWLER,
  HOMES,
  people,
  crawlFrom,
  isOfCrawl,
  playCrawl,
  type Place,
} from './campaign-crowd.ts'

const SEEDS = [1, 2]

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

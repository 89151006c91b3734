import { CampaignFinder, LOOK_PAGES } from '../../src/classify/campaign/finder.ts'
import { REQUEST_KIND } from '../../src/classify/campaign/seen-request.ts'
import { textHash } from '../../src/classify/campaign/text-hash.ts'
import { packSeen, unpackSeen } from '../../src/manage/intake/campaign-signs.ts'
import { networkHash } from '../../src/manage/intake/sighting-intake.ts'
import { mixed } from '../../src/wire/network-hash.ts'
import { crawled } from '../../test/manage/crawled.ts'

/**
 * `npm run bench:campaigns`: the cost of finding campaigns for each request, with the table of visitors full:
 * the hashes of address and host and `note` for each request, and its share of `look`, which compares the crowds. The figure is the best round.
 */
function main(): void {
  const finder = new CampaignFinder({ salt: 1, newId: () => 'cmp_1' })
  const seen = { network: 0, host: 7, program: 0, order: 0, kind: 0, target: 0, atMs: START_MS }
  const addresses = Array.from({ length: VISITORS }, (_, i) => `198.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
  let address = ''
  let count = 0
  const request = () => {
    const i = count++
    const visitor = Math.floor(i / REQUESTS_OF_VISITOR) % VISITORS
    const nth = i % REQUESTS_OF_VISITOR
    seen.program = visitor % 9
    seen.order = visitor % 9
    seen.kind = nth === 0 ? REQUEST_KIND.page : nth % 8 === 0 ? REQUEST_KIND.followed : REQUEST_KIND.part
    seen.target = mixed(i)
    seen.atMs += 1
    address = addresses[visitor]!
    return seen
  }
  const note = () => {
    const of = request()
    of.network = networkHash(address, finder.salt)
    of.host = textHash(HOST)
    finder.note(of)
  }
  for (let i = 0; i < VISITORS * REQUESTS_OF_VISITOR; i++) note()
  const baseNs = best(() => {
    let sum = 0
    for (let i = 0; i < PER_ROUND; i++) sum += request().target & 1
    if (sum === 0) throw new Error('nothing was done')
  })
  const noteNs = best(() => {
    for (let i = 0; i < PER_ROUND; i++) note()
  })
  const lookNs = best(() => void finder.look(seen.atMs), 1)
  const ofLook = lookNs / (LOOK_PAGES * REQUESTS_OF_VISITOR)
  const batch = crawled(BATCH)
  const packNs = best(() => void packSeen(batch, finder.salt), BATCH)
  const packed = packSeen(batch, finder.salt)
  const names = { program: () => undefined, host: () => undefined }
  const unpackNs = best(() => unpackSeen(packed, names, () => undefined), BATCH)
  const row = (name: string, ns: number) =>
    process.stdout.write(`${name.padEnd(34)}${ns.toFixed(0).padStart(8)}\n`)
  process.stdout.write(`${'ns'.padStart(42)}\n`)
  row('note', noteNs - baseNs)
  row(`look, of ${LOOK_PAGES * REQUESTS_OF_VISITOR} requests`, ofLook)
  row('a request', noteNs - baseNs + ofLook)
  row('in a fleet: pack it for the leader', packNs)
  row('in a fleet: unpack it', unpackNs)
  process.stdout.write(
    `\nlook: ${(lookNs / 1e6).toFixed(2)} ms; memory of the visitors: ${(finder.bytes / 1e6).toFixed(1)} MB\n`,
  )
  process.stdout.write(`look, with ${CROWDS} invented crowds: ${floodedMs().toFixed(2)} ms\n`)
}

/** Milliseconds that `look` takes with as many crowds as the table can hold, each on a site of its own. */
function floodedMs(): number {
  const finder = new CampaignFinder({ salt: 1, newId: () => 'cmp_1' })
  let atMs = START_MS
  for (let i = 0; i < 2 * VISITORS; i++) {
    const visitor = i % VISITORS
    const crowd = visitor % CROWDS
    const of = { network: visitor, host: crowd, program: crowd, order: 1, kind: REQUEST_KIND.page }
    finder.note({ ...of, target: mixed(i), atMs: atMs++ })
  }
  atMs += 60_000
  const look = () => {
    atMs += 1_000
    finder.look(atMs)
  }
  return best(look, 1) / 1e6
}

/** Nanoseconds for each of `per`. */
function best(run: () => void, per = PER_ROUND): number {
  let ns = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const from = process.hrtime.bigint()
    run()
    ns = Math.min(ns, Number(process.hrtime.bigint() - from) / per)
  }
  return ns
}

const HOST = 'shop.example.test'
const START_MS = 1_795_424_600_000
const VISITORS = 60_000
const CROWDS = 2_000
const BATCH = 1_000
const REQUESTS_OF_VISITOR = 25
const PER_ROUND = 10_000
const ROUNDS = 200
main()

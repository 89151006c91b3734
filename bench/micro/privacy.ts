import { ClientPrivacy, FULL_PRIVACY, type PrivacySettings } from '../../src/plane/privacy/client-privacy.ts'
import type { Sighting } from '../../src/plane/sighting.ts'

// What the settings of `privacy` cost a request: the processor time of ClientPrivacy, which changes each Sighting that a
// worker records, beside that with the settings that keep everything. Both take turns with the same Sightings.

const KEY = 'the key of this benchmark'
const SETTINGS: Readonly<Record<string, PrivacySettings>> = {
  'addresses: network': { ...FULL_PRIVACY, addresses: 'network', key: KEY },
  'addresses: keyed_hash': { ...FULL_PRIVACY, addresses: 'keyed_hash', key: KEY },
  'user_agents: product': { ...FULL_PRIVACY, userAgents: 'product' },
  'paths: pattern': { ...FULL_PRIVACY, paths: 'pattern', key: KEY },
  'keyed_hash, product and pattern': {
    ...{ addresses: 'keyed_hash', userAgents: 'product', paths: 'pattern', key: KEY },
  },
}
/** Requests from so many addresses, for so many paths. */
const TRAFFIC = {
  'from 2,000 clients for 1,000 paths': { addresses: 2_000, paths: 1_000 },
  'each from a client and for a path of its own': { addresses: 16_777_216, paths: 16_777_216 },
}
const REQUESTS = 20_000
const WARMUPS = 4
const ROUNDS = 15
type Changed = { -readonly [Member in keyof Sighting]: Sighting[Member] }

let made = 0

function requests({ addresses, paths }: (typeof TRAFFIC)[keyof typeof TRAFFIC]): readonly Changed[] {
  return Array.from({ length: REQUESTS }, () => {
    const number = Math.imul(++made, 0x9e3779b1) >>> 8
    const address = number % addresses
    return {
      address: `10.${address >>> 16}.${(address >>> 8) & 255}.${address & 255}`,
      path: `/shop/orders/${number % paths}/items`,
      userAgent: `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/14${number % 10}.0.0.0 Safari/537.36`,
      target: 1 + (number % paths),
      visitor: null,
    } as Changed
  })
}

/** The processor time of a request in ns. */
function costOf(privacy: ClientPrivacy, sightings: readonly Changed[]): number {
  const before = process.threadCpuUsage()
  for (const sighting of sightings) privacy.apply(sighting)
  const { user, system } = process.threadCpuUsage(before)
  return ((user + system) * 1000) / sightings.length
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1]!
}

for (const [traffic, kind] of Object.entries(TRAFFIC)) {
  process.stdout.write(`${traffic}: ns of a request, and as much more than with everything kept\n`)
  for (const [name, settings] of Object.entries(SETTINGS)) {
    const [full, other] = [new ClientPrivacy(FULL_PRIVACY), new ClientPrivacy(settings)]
    const costs: number[] = []
    const more: number[] = []
    for (let round = -WARMUPS; round < ROUNDS; round++) {
      const sightings = requests(kind)
      const copies = sightings.map((each) => ({ ...each }))
      const isFirst = round % 2 === 0
      const one = costOf(isFirst ? full : other, sightings)
      const two = costOf(isFirst ? other : full, copies)
      const [kept, changed] = isFirst ? [one, two] : [two, one]
      if (round < 0) continue
      costs.push(changed)
      more.push(changed - kept)
    }
    process.stdout.write(`  ${name}: ${median(costs).toFixed(0)}, ${median(more).toFixed(0)} more\n`)
  }
}

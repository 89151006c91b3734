import assert from 'node:assert/strict'
import fc from 'fast-check'
import { ALL_APPS, reaches } from '../../src/apps/app-scope.ts'
import { REQUEST_KIND } from '../../src/classify/campaign/seen-request.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import type { RequestOrder } from '../../src/store/traffic/sighting-parts.ts'
import type { RequestFilter } from '../../src/store/traffic/request-filter.ts'
import type { SightingStore } from '../../src/store/traffic/sightings.ts'
import { addressKey, parseAddressRange, rangeKeys } from '../../src/wire/address-ranges.ts'
import { HOUR_MS, NOW_MS, seen } from './seen.ts'

// Sightings to search, and filters to search them with.

/** Whether a Sighting fits the filter, without a database. */
export function fits({ apps, ...filter }: RequestFilter): (sighting: Sighting) => boolean {
  const { sinceMs = 0, untilMs = Number.POSITIVE_INFINITY, addresses, profile = {}, purpose } = filter
  const { verified, httpVersion, campaign } = filter
  return (sighting) => {
    const key = addressKey(sighting.address)
    const { agent, verdict, ja4, done, rule } = sighting
    const common = { agent, verdict, ja4, done, rule, category: sighting.category, proxy: sighting.proxy }
    return (
      reaches(apps, sighting.app) &&
      sighting.seenAtMs >= sinceMs &&
      sighting.seenAtMs <= untilMs &&
      (filter.id === undefined || sighting.id === filter.id) &&
      (filter.host === undefined || sighting.host === filter.host) &&
      (filter.ja4h === undefined || sighting.ja4h === filter.ja4h) &&
      (filter.pathPrefix === undefined || sighting.path.startsWith(filter.pathPrefix)) &&
      (purpose === undefined || sighting.purposes.includes(purpose)) &&
      (verified === undefined ||
        (typeof verified === 'string'
          ? sighting.verified === verified
          : (sighting.verified !== null) === verified)) &&
      (httpVersion === undefined || sighting.ja4h?.slice(2, 4) === httpVersion) &&
      (campaign === undefined || mayBelong(sighting, campaign)) &&
      (addresses === undefined ||
        (key !== null && addresses.some(([first, last]) => key >= first && key <= last))) &&
      Object.entries(profile).every(
        ([name, value]) => value === undefined || common[name as keyof typeof common] === value,
      )
    )
  }
}

function mayBelong(
  { campaign, program, requestKind, host }: Sighting,
  { id, pages }: NonNullable<RequestFilter['campaign']>,
): boolean {
  if (pages === null) return campaign === id
  const isPage = requestKind === REQUEST_KIND.page && host === pages.host
  return program === pages.program && (campaign === id || isPage)
}

/** Of a few values each, some of them rare. */
export function made(number: number): Sighting {
  const pick = <Value>(values: readonly Value[], step: number) =>
    values[Math.floor(number / step) % values.length]!
  return seen(number, {
    seenAtMs: NOW_MS - (number % 97) * 60_000,
    app: number % 211 === 0 ? 'rare' : pick(APPS, 3),
    host: number % 199 === 0 ? 'rare.example' : pick(HOSTS, 5),
    address: pick(ADDRESSES, 7),
    path: pick(PATHS, 2),
    ja4h: pick(JA4H, 11),
    ja4: pick(['t1', 't2'], 13),
    agent: pick([null, 'gptbot'], 17),
    verdict: pick(['agent', 'human'], 17),
    purposes: pick([[], ['search'], ['training', 'search']], 19),
    done: pick(['tag', 'block'], 23),
    rule: pick(['otherwise', "it's % _ \\"], 29),
    verified: pick([null, 'ip-range', 'web-bot-auth'], 31),
    program: pick([0, 7, 8], 37),
    campaign: number % 43 === 0 ? 'cmp_a' : null,
    requestKind: pick(Object.values(REQUEST_KIND), 41),
  })
}

const APPS = ['one', 'two', 'default']
const HOSTS = [null, 'a.example', 'b.example']
const ADDRESSES = [
  '192.0.2.1',
  '192.0.2.200',
  '198.51.100.7',
  '2001:db8::1',
  '2001:db9::1',
  '::ffff:192.0.2.9',
  '',
]
const PATHS = ['/', '/a', '/a/b', '/a_b', '/a%', '/A', '/ä/ö']
const JA4H = [
  'ge11_b_000000000000',
  'ge20_b_111111111111',
  'ge_a_b_000000000000',
  'ge_a_b_111111111111',
  'ge_a_b_222222222222',
  'ge_a',
  'ge',
  null,
]
const RANGES = [
  '192.0.2.0/24',
  '192.0.2.1',
  '0.0.0.0/0',
  '2001:db8::/32',
  '::/0',
  '10.0.0.0/8',
  '::ffff:192.0.2.0/120',
]
export const filters: fc.Arbitrary<RequestFilter> = fc
  .record(
    {
      apps: fc.constantFrom<RequestFilter['apps'][]>(
        ALL_APPS,
        new Set(['rare']),
        new Set(['one', 'rare', 'other']),
        new Set<string>(),
      ),
      sinceMs: fc.integer({ min: NOW_MS - 2 * HOUR_MS, max: NOW_MS }),
      untilMs: fc.integer({ min: NOW_MS - 2 * HOUR_MS, max: NOW_MS }),
      id: fc.constantFrom(seen(5).id, seen(3_007).id, 'none', "'; drop table sightings"),
      host: fc.constantFrom('a.example', 'rare.example', 'none', "' or 1=1 --"),
      pathPrefix: fc.constantFrom('/', '/a', '/a_', '/a%', '/A', '/ä', "'"),
      addresses: fc.constantFrom(...RANGES).map((range) => rangeKeys(parseAddressRange(range)!)),
      ja4h: fc.constantFrom(...JA4H.filter((each) => each !== null), 'ge_a_b', 'none'),
      purpose: fc.constantFrom('search', 'training', 'arch'),
      verified: fc.constantFrom(true, false, 'ip-range', 'none'),
      httpVersion: fc.constantFrom('11', '20', '30'),
      campaign: fc.record({
        id: fc.constantFrom('cmp_a', 'cmp_none'),
        pages: fc.constantFrom(null, { program: 7, host: 'a.example' }, { program: 8, host: null }),
      }),
      profile: fc.record(
        {
          agent: fc.constantFrom('gptbot', 'none'),
          verdict: fc.constantFrom('agent', 'human'),
          ja4: fc.constantFrom('t1', 'none'),
          done: fc.constantFrom('tag', 'block'),
          rule: fc.constantFrom('otherwise', "it's % _ \\"),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ['apps'] },
  )
  // Rarely more than three filters at once: otherwise nothing is found.
  .chain((all) => {
    const names = Object.keys(all).filter((name) => name !== 'apps')
    return fc.subarray(names, { maxLength: Math.min(3, names.length) }).map((some) => ({
      apps: all.apps,
      ...Object.fromEntries(Object.entries(all).filter(([name]) => some.includes(name))),
    }))
  })

const text = fc
  .oneof(
    fc.constantFrom('', "it's", '\\N', '{}', '"', ',', 'NULL', 'a\nb', '%'),
    fc.string({ unit: 'grapheme', maxLength: 20 }),
  )
  .map((each) => each.replaceAll('\0', ''))
const textOrNull = fc.oneof(fc.constant(null), text)
const uint32 = fc.integer({ min: 0, max: 0xffff_ffff })
/** Any Sighting, without its id. */
export const anything = fc.record({
  seenAtMs: fc.integer({ min: 0, max: NOW_MS }),
  proxy: text,
  address: fc.oneof(text, fc.ipV4(), fc.ipV6()),
  method: text,
  host: textOrNull,
  app: fc.constantFrom('default', 'shop'),
  path: text,
  userAgent: textOrNull,
  ja4: textOrNull,
  ja4Source: fc.constantFrom('own', 'hop', null),
  noHello: fc.constantFrom('not-tls', 'malformed', null),
  stable: textOrNull,
  ja4s: textOrNull,
  ja4h: fc.oneof(textOrNull, fc.constantFrom(...JA4H, '_', '__', '_000000000000', 'a_')),
  ja4x: textOrNull,
  http2: textOrNull,
  verdict: fc.constantFrom('agent', 'automation', 'human', 'unknown'),
  agent: textOrNull,
  category: textOrNull,
  purposes: fc.array(text, { maxLength: 3 }),
  software: textOrNull,
  confidence: fc.double({ min: 0, max: 1, noNaN: true }).map(Math.abs),
  nameConfidence: fc.double({ min: 0, max: 1, noNaN: true }).map(Math.abs),
  verified: textOrNull,
  signer: textOrNull,
  key: textOrNull,
  signatureFault: textOrNull,
  allegedSigner: textOrNull,
  evidence: fc.array(text, { maxLength: 3 }),
  rule: text,
  layer: fc.constantFrom('first', 'app', 'last', null),
  action: text,
  dryRun: fc.boolean(),
  done: text,
  limited: fc.boolean(),
  forged: fc.array(text, { maxLength: 3 }),
  snapshot: fc.double({ min: 0, max: 1e308, noNaN: true }).map(Math.abs),
  requestKind: uint32,
  program: uint32,
  headerOrder: uint32,
  target: uint32,
  campaign: textOrNull,
})
export const RARE = {
  host: 'quiet.example',
  app: 'quiet',
  address: '198.51.100.9',
  agent: 'rarebot',
  verdict: 'agent',
  ja4: 't13d_rare',
  ja4h: 'ge30are_b_333333333333',
  purposes: ['training'],
  verified: 'ip-range',
  campaign: 'cmp_rare',
  program: 77,
}

/** All pages of a search, one after the other. */
export async function everything(
  store: Pick<SightingStore, 'search'>,
  filter: RequestFilter,
  limit: number,
  order: RequestOrder = 'newest',
): Promise<readonly Sighting[]> {
  const all: Sighting[] = []
  for (let from: number | null = null; ; ) {
    const { found, next } = await store.search(filter, () => true, from, limit, order)
    assert.ok(found.length <= limit)
    all.push(...found)
    if (next === null) return all
    const isOnward = from === null || (order === 'newest' ? next < from : next > from)
    assert.ok(isOnward, 'the search does not go on')
    from = next
  }
}

export function idsOf(sightings: readonly Sighting[]): readonly string[] {
  return sightings.map(({ id }) => id)
}

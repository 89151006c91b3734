import { setImmediate as nextTurn } from 'node:timers/promises'
import * as z from 'zod'
import { CONFLICTS } from '../../classify/verdict/proof-evidence.ts'
import type { AsnFile, PlacedNetwork } from '../../identity/address/asn-file.ts'
import { shownAddress } from '../../plane/privacy/address-form.ts'
import type { ScannedRow } from '../../store/traffic/request-search.ts'
import type { ProfileFacts } from '../../store/traffic/sighting-profiles.ts'
import { integerInQuery, severalInQuery, time, timeOf } from '../http/schemas.ts'
import { type Sight, sightOf } from '../intake/personal-data.ts'
import { shownPath } from '../../plane/privacy/shown-path.ts'
import { operation } from './operation.ts'
import { httpVersionOf, REQUEST_FILTERS, wantedRequests } from './request-filters.ts'

/** Values of the request itself. */
const ROW_FACETS = {
  app: ({ app }) => app,
  host: ({ host }) => host,
  path: ({ path }) => path,
  address: ({ address }) => address,
} satisfies Record<string, (row: ScannedRow) => string | null>

/** Values of the client, which many requests have in common. */
const PROFILE_FACETS = {
  agent_id: ({ agent }) => agent,
  category: ({ category }) => category,
  purpose: ({ purposes }) => purposes,
  verdict: ({ verdict }) => verdict,
  action: ({ done }) => done,
  rule: ({ rule }) => rule,
  verified: ({ verified }) => verified,
  conflict: ({ evidence }) => CONFLICTS.filter((each) => evidence.includes(each)),
  ja4: ({ ja4 }) => ja4,
  http_version: ({ ja4h }) => httpVersionOf(ja4h),
  proxy: ({ proxy }) => proxy,
} satisfies Record<string, (facts: ProfileFacts) => string | readonly string[] | null>

/** Values that a list of networks gives for the address. */
const NETWORK_FACETS = {
  asn: ({ asn }) => String(asn),
  country: ({ country }) => country,
} satisfies Record<string, (network: PlacedNetwork) => string | null>

const FACETS = [...keysOf(ROW_FACETS), ...keysOf(NETWORK_FACETS), ...keysOf(PROFILE_FACETS), 'ja4h'] as const
type Facet = (typeof FACETS)[number]

const count = z.int().min(0)
const estimated = count.meta({
  description:
    'How many requests these stand for, where only a share of them is recorded (`sampled`). The same number otherwise.',
})
const facet = z
  .strictObject({
    facet: z.enum(FACETS).meta({ description: 'Also the name of the filter that takes its values.' }),
    values: z
      .array(
        z.strictObject({
          value: z.string().nullable().meta({
            description: 'As the list of requests shows it. `null`: the requests without a value.',
            example: 'shop.example',
          }),
          name: z.string().nullable().meta({
            description:
              'Of `agent_id`: the name in the catalogue of today. Of `asn`: that of the list of networks. `null`: it has none.',
          }),
          requests: count,
          estimated,
        }),
      )
      .meta({ description: 'Those that stand for the most requests first.' }),
    others: count.meta({
      description: 'Requests with other values. A request with several purposes counts for each.',
    }),
  })
  .meta({ id: 'RequestFacet' })

export const getRequestFacets = operation({
  id: 'getRequestFacets',
  method: 'GET',
  path: '/requests/facets',
  tag: 'Statistics',
  summary: 'Count requests by their values',
  description:
    'The most frequent values of the recorded requests that fit the filters, with the number of requests of each. It begins with the newest requests and stops after about half a second: then `stopped_at` says how far back the counts go. For a shorter period, use `since` and `until`. `asn` and `country` are left out if no list of networks is set (`identity.asn_file`).',
  scopes: ['read'],
  reach: 'filtered',
  query: z.strictObject({
    ...REQUEST_FILTERS,
    facets: severalInQuery(FACETS, 'Only these facets, separated by commas. Default: all.'),
    limit: integerInQuery(1, 100, 10, 'Values of each facet.'),
  }),
  answer: z.strictObject({
    requests: count.meta({ description: 'The requests that were counted.' }),
    estimated,
    stopped_at: time.nullable().meta({
      description:
        'The requests before this time were not counted: there are more than there was time for. `null`: no matching request was left out.',
    }),
    facets: z.array(facet),
  }),
  run: async ({ query, principal }, management) => {
    const { facets = FACETS, limit, ...filters } = query
    const { store } = management
    const { filter, rest } = await wantedRequests(filters, principal, management)
    const sight = sightOf(principal)
    const networks = new NetworkCounts(facets, management.networks(), sight)
    const counts = new RequestCounts(facets)
    const stoppedAtMs = await store.sightings.scan(filter, (row) => {
      if (rest(row)) networks.add(row, counts.add(row))
    })
    const profiles = await store.sightings.profileFacts(counts.profiles)
    const found: (Most & { readonly name: Facet })[] = []
    for (const name of facets) {
      const tally = isOfNetwork(name) ? networks.of(name) : await counts.of(name, profiles, sight)
      if (tally !== null) found.push({ name, ...most(tally, limit) })
    }
    const agents = found.filter(({ name }) => name === 'agent_id').flatMap(({ values }) => values)
    const names = await store.agentsSeen.names(agents.flatMap(([id]) => id ?? []))
    const nameIn: Partial<Record<Facet, (value: string) => string | null | undefined>> = {
      agent_id: (id) => names.get(id)?.name,
      asn: (asn) => networks.nameOf(asn),
    }
    return {
      body: {
        requests: counts.requests,
        estimated: Math.round(counts.estimated),
        stopped_at: timeOf(stoppedAtMs),
        facets: found.map(({ name, values, others }) => ({
          facet: name,
          values: values.map(([value, { requests, estimated }]) => ({
            value,
            name: value === null ? null : (nameIn[name]?.(value) ?? null),
            requests,
            estimated: Math.round(estimated),
          })),
          others,
        })),
      },
    }
  },
})

/** Requests by value. Memory is bounded: beyond `VALUES_MAX`, new values count as others. */
class Tally {
  readonly #counts = new Map<string | null, WeighedCount>()
  others = 0

  add(value: string | null, { requests, estimated }: Readonly<WeighedCount>): void {
    const known = this.#counts.get(value)
    if (known !== undefined) {
      known.requests += requests
      known.estimated += estimated
    } else if (this.#counts.size === VALUES_MAX) this.others += requests
    else this.#counts.set(value, { requests, estimated })
  }

  get counts(): Iterable<readonly [value: string | null, counted: Readonly<WeighedCount>]> {
    return this.#counts
  }
}

interface WeighedCount {
  requests: number
  /** How many requests they stand for. */
  estimated: number
}

/** The requests of one answer, counted by each facet. */
class RequestCounts {
  requests = 0
  estimated = 0
  readonly #rows: readonly (readonly [read: (row: ScannedRow) => string | null, tally: Tally])[]
  readonly #byFacet: ReadonlyMap<Facet, Tally>
  readonly #byProfile = new Tally()
  /** By profile and the end of the JA4H. */
  readonly #byJa4h = new Tally()
  readonly #hasJa4h: boolean

  constructor(facets: readonly Facet[]) {
    const names = keysOf(ROW_FACETS).filter((name) => facets.includes(name))
    this.#byFacet = new Map(names.map((name) => [name, new Tally()]))
    this.#rows = names.map((name) => [ROW_FACETS[name], this.#byFacet.get(name)!])
    this.#hasJa4h = facets.includes('ja4h')
  }

  /** Returns the weight of the request. */
  add(row: ScannedRow): Readonly<WeighedCount> {
    const { profile, ja4h_cookies: cookies, sampled } = row
    const one = sampled === null || sampled <= 0 ? ONE : { requests: 1, estimated: 1 / sampled }
    this.requests++
    this.estimated += one.estimated
    for (const [read, tally] of this.#rows) tally.add(read(row), one)
    this.#byProfile.add(String(profile), one)
    if (this.#hasJa4h) this.#byJa4h.add(cookies === null ? String(profile) : `${profile}_${cookies}`, one)
    return one
  }

  get profiles(): readonly number[] {
    return [...this.#byProfile.counts].map(([id]) => Number(id))
  }

  async of(
    facet: Exclude<Facet, NetworkFacet>,
    profiles: ReadonlyMap<number, ProfileFacts>,
    sight: Sight,
  ): Promise<Tally> {
    const tally = this.#byFacet.get(facet)
    await nextTurn()
    return tally === undefined ? this.#ofProfiles(facet, profiles) : shown(facet, tally, sight)
  }

  #ofProfiles(facet: Facet, profiles: ReadonlyMap<number, ProfileFacts>): Tally {
    const tally = new Tally()
    const from = facet === 'ja4h' ? this.#byJa4h : this.#byProfile
    tally.others = from.others
    for (const [key, counted] of from.counts) {
      const [id, cookies] = key!.split('_')
      // A profile may have been deleted meanwhile.
      const facts = profiles.get(Number(id))
      if (facts === undefined) tally.others += counted.requests
      else for (const value of valuesOf(facet, facts, cookies)) tally.add(value, counted)
    }
    return tally
  }
}

/** The same by network and country. */
class NetworkCounts {
  readonly #file: AsnFile | null
  readonly #sight: Sight
  readonly #tallies: ReadonlyMap<NetworkFacet, Tally>
  readonly #names = new Map<string, string | null>()

  /** `file`: the list of networks; `null` without `identity.asn_file`. */
  constructor(facets: readonly Facet[], file: AsnFile | null, sight: Sight) {
    const wanted = file === null ? [] : keysOf(NETWORK_FACETS).filter((name) => facets.includes(name))
    this.#tallies = new Map(wanted.map((name) => [name, new Tally()]))
    this.#file = wanted.length === 0 ? null : file
    this.#sight = sight
  }

  add({ address }: ScannedRow, one: Readonly<WeighedCount>): void {
    if (this.#file === null) return
    const network = this.#file.ofRange(this.#sight === 'full' ? address : shownAddress(address))
    for (const [name, tally] of this.#tallies)
      tally.add(network === null ? null : NETWORK_FACETS[name](network), one)
    if (network !== null && this.#names.size < VALUES_MAX) this.#names.set(String(network.asn), network.name)
  }

  /** `null`: the facet is not known here. */
  of(name: NetworkFacet): Tally | null {
    return this.#tallies.get(name) ?? null
  }

  nameOf(asn: string): string | null {
    return this.#names.get(asn) ?? null
  }
}

type NetworkFacet = keyof typeof NETWORK_FACETS

function isOfNetwork(facet: Facet): facet is NetworkFacet {
  return facet in NETWORK_FACETS
}

function valuesOf(
  facet: Facet,
  facts: ProfileFacts,
  cookies: string | undefined,
): readonly (string | null)[] {
  if (facet === 'ja4h') return [cookies === undefined ? facts.ja4h : `${facts.ja4h}_${cookies}`]
  const value = PROFILE_FACETS[facet as keyof typeof PROFILE_FACETS](facts)
  if (value === null || typeof value === 'string') return [value]
  return value.length === 0 ? [null] : value
}

/** As the list of requests shows these values. */
async function shown(facet: Facet, tally: Tally, sight: Sight): Promise<Tally> {
  const show = sight === 'full' ? undefined : SHOWN.get(facet)
  if (show === undefined) return tally
  const merged = new Tally()
  merged.others = tally.others
  let values = 0
  for (const [value, counted] of tally.counts) {
    merged.add(value === null ? null : show(value), counted)
    // Other work of this process goes on meanwhile.
    if (++values % SHOWN_AT_ONCE === 0) await nextTurn()
  }
  return merged
}

interface Most {
  readonly values: readonly (readonly [value: string | null, counted: Readonly<WeighedCount>])[]
  readonly others: number
}

/** The most frequent values. */
function most(tally: Tally, limit: number): Most {
  const all = [...tally.counts].sort(
    ([one, few], [other, many]) => many.estimated - few.estimated || ((one ?? '') < (other ?? '') ? -1 : 1),
  )
  const others = all.slice(limit).reduce((sum, [, { requests }]) => sum + requests, tally.others)
  return { values: all.slice(0, limit), others }
}

function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(record) as Key[]
}

const ONE: Readonly<WeighedCount> = { requests: 1, estimated: 1 }
const SHOWN: ReadonlyMap<Facet, (value: string) => string> = new Map([
  ['path', shownPath],
  ['address', shownAddress],
])
/** Takes some milliseconds. */
const SHOWN_AT_ONCE = 500
/** Some megabytes for each facet. */
const VALUES_MAX = 20_000

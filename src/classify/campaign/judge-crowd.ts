import { CROWD_MIN, type Coverage, type Crowd } from './crowds.ts'
import { LEVELS } from './visitors.ts'

/** Visitors of crowds, added up. */
type Visited = Pick<Crowd, 'visitors' | 'withParts' | 'bare'>

/** All crowds of one site. */
export interface CrowdSite {
  /** The sums of those in which most visitors load parts or follow links. */
  readonly usual: Visited
  /** How many crowds are large and mostly bare. If they are many, the site itself looks like that. */
  readonly bareCrowds: number
}

export function sitesOf(crowds: ReadonlyMap<number, Crowd>): ReadonlyMap<number, CrowdSite> {
  const byHost = Map.groupBy(crowds.values(), ({ host }) => host)
  return new Map(
    [...byHost].map(([host, of]) => {
      const usual = of.filter(isUsual)
      return [host, { usual: usual.reduce<Visited>(together, NONE), bareCrowds: of.length - usual.length }]
    }),
  )
}

function together(one: Visited, other: Visited): Visited {
  return {
    visitors: one.visitors + other.visitors,
    withParts: one.withParts + other.withParts,
    bare: one.bare.map((count, k) => count + other.bare[k]!) as Crowd['bare'],
  }
}

/** The usual crowds of the site without this one. */
function others(crowd: Crowd, { usual }: CrowdSite): Visited {
  if (!isUsual(crowd)) return usual
  return {
    visitors: usual.visitors - crowd.visitors,
    withParts: usual.withParts - crowd.withParts,
    bare: usual.bare.map((count, k) => count - crowd.bare[k]!) as Crowd['bare'],
  }
}

export interface CrowdSigns {
  /** Whether the pages come in as evenly as from a machine. */
  readonly isEven: boolean
  coverage(level: number): Coverage
}

export interface CrowdJudgement {
  readonly isCampaign: boolean
  readonly addresses: number
  readonly people: number
  readonly pagesMin: number
  readonly coverage: Coverage
}

/**
 * Compares a crowd with the people on the same site. A person can look bare, with the parts in the cache of the
 * browser and a bookmark for each page, so only an excess over what the others do is a campaign.
 */
export function judgeCrowd(crowd: Crowd, site: CrowdSite, signs: CrowdSigns): CrowdJudgement {
  const { bareCrowds } = site
  const measure = others(crowd, site)
  const people = crowd.visitors - crowd.bare[0]
  const known = measure.visitors
  const rates = bareRates(crowd, measure)
  const isAlone = people + known < PEOPLE_MIN
  const addressesMin = signs.isEven ? CROWD_MIN : ADDRESSES_MIN
  const levelMin = known >= KNOWN_WELL ? 1 : 2
  let found = 0
  for (let level = levelMin; level <= LEVELS && found === 0; level++) {
    const count = crowd.bare[level - 1]!
    if (count < addressesMin) break
    const isExcess = isAlone
      ? bareCrowds < BARE_CROWDS_MAX && level === 2 && count >= ALONE_PART * crowd.visitors
      : count >= EXCESS * rates[level - 1]! * people
    if (isExcess && isCovering(signs.coverage(level), level)) found = level
  }
  let pagesMin = levelMin
  while (!isAlone && pagesMin < LEVELS && rates[pagesMin - 1]! > FALSE_JOINS_MAX) pagesMin++
  const level = found === 0 ? pagesMin : found
  const coverage = found === 0 ? NO_COVERAGE : signs.coverage(level)
  return { isCampaign: found !== 0, addresses: crowd.bare[level - 1]!, people, pagesMin, coverage }
}

/** How often people have at least 1, 2, 3 and 4 pages without parts and links. */
function bareRates(crowd: Crowd, measure: Visited): readonly number[] {
  const known = measure.visitors
  if (known < KNOWN) return showsParts(together(crowd, measure)) ? USUAL_RATES : RATES_WITHOUT_PARTS
  return USUAL_RATES.map((rate, k) => {
    const bare = measure.bare[k]!
    const seen = (bare + 1) / (known + 1)
    if (known >= KNOWN_WELL) return seen
    return bare === 0 ? rate : Math.max(rate, seen)
  })
}

/** Whether people load parts from this site, and not only from another host. */
function showsParts({ visitors, withParts, bare }: Visited): boolean {
  return withParts >= (visitors - bare[0]) / 2
}

function isUsual({ visitors, bare }: Visited): boolean {
  return bare[0] <= visitors / 2
}

/** A newsletter brings many people to a few pages. */
function isCovering({ targets, distinct }: Coverage, level: number): boolean {
  return distinct >= COVERED_PART * targets || (level > 1 && distinct >= COVERED_MIN)
}

const NONE: Visited = { visitors: 0, withParts: 0, bare: [0, 0, 0, 0] }
const NO_COVERAGE: Coverage = { targets: 0, distinct: 0 }
/** Fewer addresses are no campaign, unless their pages come in evenly. */
const ADDRESSES_MIN = 25
const EXCESS = 5
/** With fewer people on a site, it is not known how people behave there. */
const PEOPLE_MIN = 20
/** With this many visitors in other crowds, their behavior is a measure. */
const KNOWN = 100
const KNOWN_WELL = 1_000
/** One person in a thousand. */
const FALSE_JOINS_MAX = 0.001
const USUAL_RATES = [0.03, 0.001, 0.0003, 0.0001]
const RATES_WITHOUT_PARTS = [0.6, 0.05, 0.02, 0.01]
/** Without people, the share of networks that request two pages or more. */
const ALONE_PART = 0.25
const BARE_CROWDS_MAX = 3
const COVERED_PART = 0.5
const COVERED_MIN = 64

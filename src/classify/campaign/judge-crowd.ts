import { CROWD_MIN, type Coverage, type Crowd } from './crowds.ts'
import { LEVELS } from './visitors.ts'

/** All crowds of one site. */
export interface CrowdSite {
  /** Those in which most visitors load parts or follow links. */
  readonly usual: readonly Crowd[]
  /** How many crowds are large and mostly bare. If they are many, the site itself looks like that. */
  readonly bareCrowds: number
}

export function sitesOf(crowds: ReadonlyMap<number, Crowd>): ReadonlyMap<number, CrowdSite> {
  const byHost = Map.groupBy(crowds.values(), ({ host }) => host)
  return new Map(
    [...byHost].map(([host, of]) => [
      host,
      { usual: of.filter(isUsual), bareCrowds: of.filter((each) => !isUsual(each)).length },
    ]),
  )
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
export function judgeCrowd(
  crowd: Crowd,
  { usual, bareCrowds }: CrowdSite,
  signs: CrowdSigns,
): CrowdJudgement {
  const others = usual.filter((each) => each !== crowd)
  const people = crowd.visitors - crowd.bare[0]
  const known = sum(others.map(({ visitors }) => visitors))
  const rates = bareRates(crowd, others, known)
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
function bareRates(crowd: Crowd, others: readonly Crowd[], known: number): readonly number[] {
  if (known < KNOWN) return showsParts([crowd, ...others]) ? USUAL_RATES : RATES_WITHOUT_PARTS
  return USUAL_RATES.map((rate, k) => {
    const bare = sum(others.map((each) => each.bare[k]!))
    const seen = (bare + 1) / (known + 1)
    if (known >= KNOWN_WELL) return seen
    return bare === 0 ? rate : Math.max(rate, seen)
  })
}

/** Whether people load parts from this site, and not only from another host. */
function showsParts(crowds: readonly Crowd[]): boolean {
  const people = sum(crowds.map(({ visitors, bare }) => visitors - bare[0]))
  return sum(crowds.map(({ withParts }) => withParts)) >= people / 2
}

function isUsual({ visitors, bare }: Crowd): boolean {
  return bare[0] <= visitors / 2
}

/** A newsletter brings many people to a few pages. */
function isCovering({ targets, distinct }: Coverage, level: number): boolean {
  return distinct >= COVERED_PART * targets || (level > 1 && distinct >= COVERED_MIN)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

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

import {
  AWAY_TICKS,
  COHORT,
  FIRST_TARGET,
  FIRST_TICK,
  HAS_PARTS,
  LAST_TARGET,
  LAST_TICK,
  levelOf,
  PAGES,
  SIZES,
  STATE,
  type Visitors,
  WORDS,
} from './visitors.ts'

/** The visitors with the same program and header order on one site. */
export interface Crowd {
  readonly cohort: number
  readonly program: number
  readonly host: number
  /** Visitors that requested a page and had time to load its parts. */
  visitors: number
  /** Visitors that loaded parts. */
  withParts: number
  /** Bare visitors, with neither parts nor links, with at least 1, 2, 3 and 4 different pages. */
  readonly bare: [number, number, number, number]
  /** Where the words of its last bare visitor begin; -1: it has none. Each knows the one before it. */
  lastBare: number
}

/**
 * Counts visitors by cohort. Cohorts with few visitors are left out, so that a flood of invented ones costs
 * no more than the slots it takes.
 */
export function crowdsIn(visitors: Visitors, nowMs: number): ReadonlyMap<number, Crowd> {
  const { words, sizes, before } = visitors
  const settledTick = visitors.tickOf(nowMs - SETTLE_MS)
  const recentTick = visitors.tickOf(nowMs) - AWAY_TICKS
  const crowds = new Map<number, Crowd>()
  const list: (Crowd | null)[] = [null]
  /** By the low bits of the cohort: the number of its crowd, from 1 on. */
  const numbers = new Uint16Array(SIZES)
  for (let at = 0; at < words.length; at += WORDS) {
    const of = words[at + COHORT]!
    const size = of & (SIZES - 1)
    if (sizes[size]! < CROWD_MIN || of === 0 || words[at + LAST_TICK]! < recentTick) continue
    let crowd = list[numbers[size]!]!
    if (crowd === null || crowd.cohort !== of) {
      crowd = crowds.get(of) ?? begun(visitors, at, crowds)
      if (numbers[size] === 0) numbers[size] = list.push(crowd) - 1
    }
    const state = words[at + STATE]!
    if (state !== 0) {
      crowd.visitors++
      crowd.withParts += state & HAS_PARTS
      continue
    }
    before[at / WORDS] = crowd.lastBare
    crowd.lastBare = at
    if (words[at + FIRST_TICK]! <= settledTick) {
      crowd.visitors++
      const level = levelOf(words[at + PAGES]!)
      for (let k = 0; k < level; k++) crowd.bare[k]!++
    }
  }
  return crowds
}

function begun(visitors: Visitors, at: number, crowds: Map<number, Crowd>): Crowd {
  const crowd: Crowd = {
    cohort: visitors.words[at + COHORT]!,
    ...visitors.originAt(at),
    visitors: 0,
    withParts: 0,
    bare: [0, 0, 0, 0],
    lastBare: -1,
  }
  crowds.set(crowd.cohort, crowd)
  return crowd
}

/** How many different targets the bare visitors of a crowd requested, of those that the slots still name. */
export interface Coverage {
  readonly targets: number
  readonly distinct: number
}

export function coverageOf({ words, before }: Visitors, crowd: Crowd, level: number): Coverage {
  const bits = new Uint32Array(COVERED_BITS / 32)
  let [targets, set] = [0, 0]
  const add = (target: number) => {
    const hash = (Math.imul(target, 0x9e3779b1) >>> 0) % COVERED_BITS
    targets++
    const bit = 1 << (hash & 31)
    if ((bits[hash >>> 5]! & bit) !== 0) return
    bits[hash >>> 5]! |= bit
    set++
  }
  for (let at = crowd.lastBare; at !== -1; at = before[at / WORDS]!) {
    if (levelOf(words[at + PAGES]!) < level) continue
    add(words[at + FIRST_TARGET]!)
    if (words[at + LAST_TARGET] !== words[at + FIRST_TARGET]) add(words[at + LAST_TARGET]!)
  }
  // Linear counting: different targets can set the same bit.
  const free = Math.max(1, COVERED_BITS - set)
  return { targets, distinct: Math.min(targets, Math.round(-COVERED_BITS * Math.log(free / COVERED_BITS))) }
}

/** A smaller crowd is never a campaign. */
export const CROWD_MIN = 15
/** How long a page may take until its parts are requested. */
const SETTLE_MS = 2_000
const COVERED_BITS = 16_384

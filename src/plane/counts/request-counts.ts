import { isSlug } from '../../apps/app.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { VERDICT_KINDS } from '../../policy/vocabulary.ts'
import type { Sighting, SightingId } from '../sighting.ts'
import {
  ACTIONS,
  addTo,
  ALL,
  type BucketsDocument,
  bucketsIn,
  CONFIDENCES,
  type Dimension,
  documentOf,
  newBuckets,
  OTHER,
  UNNAMED,
  UNPUBLISHED,
} from './buckets.ts'
import { listed, minuteOf, RollupTally } from './rollup-tally.ts'

/**
 * The requests that a worker has counted since its last message, with or without a Sighting. They travel in the
 * batch of those Sightings. So a manager counts each request and stores its Sighting in one transaction.
 */
export interface RequestCounts {
  /** From the ids of Sightings, so that a repeated message is recognized in the same way. */
  readonly id: SightingId
  readonly counts: readonly MinuteOfApp[]
}

interface MinuteOfApp {
  readonly app: string
  readonly atMs: number
  readonly counts: BucketsDocument
}

/** What a batch contains, in order. */
export type Reported = Sighting | RequestCounts

export interface CountedRequests {
  readonly id: string
  readonly tally: RollupTally
}

export function requestCounts(id: SightingId, tally: RollupTally): RequestCounts {
  const counts = [...tally.minutes()].map(({ app, atMs, buckets }) => {
    return { app, atMs, counts: documentOf(buckets) }
  })
  return { id, counts }
}

/** Of items that may be untrusted: only those with this member are counts. */
export function isRequestCounts(item: unknown): item is RequestCounts {
  return typeof item === 'object' && item !== null && 'counts' in item
}

/** Separates the items of a batch. */
export function partedBatch<Item>(items: readonly Item[]): {
  readonly sightings: readonly Exclude<Item, RequestCounts>[]
  readonly counts: readonly RequestCounts[]
} {
  const counts = items.filter((item) => isRequestCounts(item))
  const sightings = counts.length === 0 ? items : items.filter((item) => !isRequestCounts(item))
  return { sightings: sightings as readonly Exclude<Item, RequestCounts>[], counts }
}

/** Reads counts from an untrusted value; otherwise returns what is wrong with it. */
export function readRequestCounts(value: unknown, nowMs: number): CountedRequests | string {
  if (!isRequestCounts(value)) return 'is not counts'
  const { id, counts } = value as { readonly id: unknown; readonly counts: unknown }
  if (typeof id !== 'string') return 'has no id'
  if (!Array.isArray(counts) || counts.length > MINUTES_MAX) return 'counts is not what it should be'
  const tally = new RollupTally()
  for (const minute of counts) {
    const { app, atMs, counts: document } = (minute ?? {}) as Partial<Record<keyof MinuteOfApp, unknown>>
    if (!isSlug(app) || !Number.isSafeInteger(atMs) || (atMs as number) < 0)
      return 'counts is not what it should be'
    // A sender whose clock is ahead must not count requests in future days.
    tally.addMinute(app, minuteOf(Math.min(atMs as number, nowMs)), knownKeys(document))
  }
  return tally.size > SIZE_MAX ? 'counts has too many keys' : { id, tally }
}

/** Other keys are counted as `other`, so that a sender cannot fill the database with its own. */
function knownKeys(document: unknown) {
  const found = bucketsIn(document)
  const buckets = newBuckets()
  for (const [dimension, known] of KEYS)
    for (const [key, counts] of found[dimension])
      addTo(buckets[dimension], typeof known === 'function' ? known(key) : listed(known, key), counts)
  return buckets
}

function softwareKey(key: string): string {
  return SOFTWARE_ID.test(key) ? key : OTHER
}

const KEYS: readonly (readonly [Dimension, readonly string[] | ((key: string) => string)])[] = [
  ['total', () => ALL],
  ['verdict', VERDICT_KINDS],
  ['action', ACTIONS],
  ['confidence', CONFIDENCES],
  ['verified', PROOF_METHODS],
  ['agent', softwareKey],
  ['verified_agent', softwareKey],
  ['tool', softwareKey],
  ['category', [...CATEGORIES, UNNAMED]],
  ['purpose', [...PURPOSES, UNPUBLISHED]],
]
const SOFTWARE_ID = /^[a-z0-9][a-z0-9-]{0,63}$/
const MINUTES_MAX = 20_000
const SIZE_MAX = 200_000

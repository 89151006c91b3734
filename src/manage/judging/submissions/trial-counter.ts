import { JA4_TYPES, type Ja4Type } from '../../../classify/known/fingerprint-form.ts'
import type { Sighting } from '../../../plane/sighting.ts'
import type { Queries } from '../../../store/engine/database.ts'
import type { Store } from '../../../store/store.ts'
import type { Trial } from '../../../store/catalogue/trials.ts'
import { networkHash } from '../../intake/sighting-intake.ts'
import { VerdictTally } from './verdict-tally.ts'

/**
 * Counts live traffic for fingerprints that were submitted and not decided yet; they affect no verdict in the
 * meantime. Call it once for each Sighting, in the transaction that stores it. Without pending fingerprints
 * it costs one query per `REMEMBERED_MS`.
 */
export function trialCounter(
  { trials }: Pick<Store, 'trials'>,
  nowMs: () => number = Date.now,
): (batch: readonly Sighting[], queries: Queries) => Promise<void> {
  let counted: ReadonlyMap<string, ReadonlySet<string>> = new Map()
  let readAtMs = Number.NEGATIVE_INFINITY
  let begun = 0
  return async (batch, queries) => {
    if (trials.begun !== begun || nowMs() - readAtMs >= REMEMBERED_MS) {
      begun = trials.begun
      counted = byType(await trials.counted(queries))
      readAtMs = nowMs()
    }
    for (const type of JA4_TYPES) {
      const hits = hitsIn(batch, type, counted.get(type))
      if (hits.size === 0) continue
      const values = [...hits.keys()]
      if (values.length > VALUES_MAX)
        values.sort((one, other) => hits.get(other)!.length - hits.get(one)!.length).splice(VALUES_MAX)
      const held = await trials.held(type, values, queries)
      await trials.put(
        held.map((trial) => counting(trial, hits.get(trial.value)!)),
        queries,
      )
    }
  }
}

function byType(
  fingerprints: readonly Pick<Trial, 'type' | 'value'>[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const counted = new Map<string, Set<string>>()
  for (const { type, value } of fingerprints) counted.set(type, (counted.get(type) ?? new Set()).add(value))
  return counted
}

function hitsIn(
  batch: readonly Sighting[],
  type: Ja4Type,
  counted: ReadonlySet<string> | undefined,
): ReadonlyMap<string, readonly Sighting[]> {
  const hits = new Map<string, Sighting[]>()
  if (counted === undefined) return hits
  for (const sighting of batch) {
    const value = sighting[type]
    if (value === null || !counted.has(value)) continue
    const list = hits.get(value)
    if (list === undefined) hits.set(value, [sighting])
    else list.push(sighting)
  }
  return hits
}

function counting(trial: Trial, sightings: readonly Sighting[]): Trial {
  const { addresses } = trial
  const tally = new VerdictTally(trial.verdicts)
  let { firstHitMs, lastHitMs } = trial
  for (const sighting of sightings) {
    const { seenAtMs, address } = sighting
    tally.add(sighting)
    addresses.add(networkHash(address))
    firstHitMs = Math.min(firstHitMs ?? seenAtMs, seenAtMs)
    lastHitMs = Math.max(lastHitMs ?? seenAtMs, seenAtMs)
  }
  return { ...trial, hits: trial.hits + sightings.length, firstHitMs, lastHitMs, verdicts: tally.counts }
}

/** The maximum delay until a submission to another process is counted. */
const REMEMBERED_MS = 1_000
/** Per type and transaction, which others wait for: the most frequent ones. Takes about 2 ms. */
const VALUES_MAX = 64

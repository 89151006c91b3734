import { type RequestCounts, requestCounts } from '../../src/plane/counts/request-counts.ts'
import { RollupTally } from '../../src/plane/counts/rollup-tally.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { idOf } from './seen.ts'

/** A batch as of a proxy that has counted its requests. The same Sightings give the same counts. */
export function countedBatch(batch: readonly Sighting[]): {
  readonly sightings: readonly Sighting[]
  readonly counts: readonly RequestCounts[]
} {
  const tally = new RollupTally()
  for (const each of batch) tally.add(each)
  const counts = requestCounts(idOf(batch[0]!.seenAtMs, 0, 'c'.repeat(12)), tally)
  return { sightings: batch.map((each) => ({ ...each, sampled: 1 })), counts: [counts] }
}

import { setImmediate as nextTurn } from 'node:timers/promises'
import { type PolicyFor, Replay, type ReplayReport } from '../../plane/replay.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { readSighting } from '../../plane/sighting-document.ts'

/** Reads some Sightings, newest first. `next` continues the list; `null`: at its end. */
export type ReadSightings = (
  next: number | null,
  limit: number,
) => Promise<{ readonly sightings: readonly Sighting[]; readonly next: number | null }>

export interface PolicyPreview {
  readonly report: ReplayReport
  /** Of the Sightings in the report; `null`: there are no Sightings. */
  readonly oldestMs: number | null
  readonly newestMs: number | null
  /** `false`: the window contains older Sightings that the limits did not allow to read. */
  readonly isComplete: boolean
  /** The number of stored values that are not valid Sightings. */
  readonly leftOut: number
}

/** Compares policies with others, or with the actions that were taken. */
interface WhatIf {
  readonly after: PolicyFor
  readonly before: PolicyFor | null
  /** The only app of the Sightings; `null`: any apps. */
  readonly app?: string | null
  /** Only Sightings from this time on count. */
  readonly sinceMs: number
  readonly nowMs: number
}

/**
 * What a policy would have changed for past requests. It yields to other work and stops after a limited time,
 * however costly the policy is. It starts with the newest requests.
 */
export async function tryPolicy(
  read: ReadSightings,
  { after, before, app = null, sinceMs, nowMs }: WhatIf,
  { sightingsMax = SIGHTINGS_MAX, timeMs = PREVIEW_MS_MAX } = {},
): Promise<PolicyPreview> {
  const replay = new Replay(after, before, nowMs, app)
  const seen = { oldestMs: null as number | null, newestMs: null as number | null, leftOut: 0 }
  const deadlineMs = performance.now() + timeMs
  let left = sightingsMax
  let next: number | null = null
  do {
    const slice = await read(next, Math.min(left, SLICE))
    let turnEndsMs = performance.now() + TURN_MS
    for (const each of slice.sightings) {
      left--
      // Another program may have written to the database.
      const sighting = readSighting(each)
      if (typeof sighting === 'string') seen.leftOut++
      else if (sighting.seenAtMs >= sinceMs) {
        replay.add(sighting)
        seen.oldestMs = Math.min(seen.oldestMs ?? Number.POSITIVE_INFINITY, sighting.seenAtMs)
        seen.newestMs = Math.max(seen.newestMs ?? 0, sighting.seenAtMs)
      }
      if (performance.now() < turnEndsMs) continue
      await nextTurn()
      if (performance.now() > deadlineMs) return { report: replay.report(), ...seen, isComplete: false }
      turnEndsMs = performance.now() + TURN_MS
    }
    next = slice.next
    await nextTurn()
  } while (next !== null && left > 0 && performance.now() < deadlineMs)
  return { report: replay.report(), ...seen, isComplete: next === null }
}

/** Takes some milliseconds to read and parse. */
const SLICE = 500
/** The longest time that other work waits. */
const TURN_MS = 10
/** More than there is time for with a typical policy. */
const SIGHTINGS_MAX = 200_000
/**
 * Limits the wait of the caller, and policies whose expressions are as slow as allowed: a person who makes a rule waits
 * two seconds at most. `isComplete` says that there are more.
 */
export const PREVIEW_MS_MAX = 1_000

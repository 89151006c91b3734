import { setImmediate as nextTurn } from 'node:timers/promises'
import { Replay, type ReplayReport } from '../../plane/replay.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { readSighting } from '../../plane/sighting-document.ts'
import type { Policy } from '../../policy/policy.ts'

/** Some Sightings, the newest first; `next` is what the following ones are asked for with, `null` at the end. */
export type ReadSightings = (
  next: number | null,
  limit: number,
) => Promise<{ readonly sightings: readonly Sighting[]; readonly next: number | null }>

export interface PolicyPreview {
  readonly report: ReplayReport
  /** Of those looked at; `null`: there are none. */
  readonly oldestMs: number | null
  readonly newestMs: number | null
  /** `false`: there are older ones in the window, for which the time did not suffice. */
  readonly isComplete: boolean
  /** What is in the place of a Sighting and is none. */
  readonly leftOut: number
}

/** What is tried: one policy after another one, or after what was done. */
export interface WhatIf {
  readonly after: Policy
  readonly before: Policy | null
  /** Those that were seen from here on. */
  readonly sinceMs: number
  readonly nowMs: number
}

/**
 * What a policy would have changed of requests that are over. Others get their turns in between, and it comes to an end,
 * however costly the policy is: with the newest ones.
 */
export async function tryPolicy(
  read: ReadSightings,
  { after, before, sinceMs, nowMs }: WhatIf,
  { sightingsMax = SIGHTINGS_MAX, timeMs = TIME_MS } = {},
): Promise<PolicyPreview> {
  const replay = new Replay(after, before, nowMs)
  const seen = { oldestMs: null as number | null, newestMs: null as number | null, leftOut: 0 }
  const deadlineMs = performance.now() + timeMs
  let left = sightingsMax
  let next: number | null = null
  do {
    const slice = await read(next, Math.min(left, SLICE))
    let turnEndsMs = performance.now() + TURN_MS
    for (const each of slice.sightings) {
      left--
      // The database may have been written by others.
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

/** Read and parsed in some milliseconds. */
const SLICE = 500
/** Whoever else is asked meanwhile waits no longer. */
const TURN_MS = 10
/** Some three seconds with a policy as most are. */
const SIGHTINGS_MAX = 200_000
/** For who waits, and against policies whose expressions take as long as they may. */
const TIME_MS = 5_000

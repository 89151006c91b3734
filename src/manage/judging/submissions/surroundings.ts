import { setImmediate as turn } from 'node:timers/promises'
import { JA4_TYPES, type Ja4Type } from '../../../classify/known/fingerprint-form.ts'
import { readSighting } from '../../../plane/sighting-document.ts'
import type { Sighting } from '../../../plane/sighting.ts'
import type { Store } from '../../../store/store.ts'
import type { Registered, FingerprintTraffic } from '../../../store/catalogue/submissions.ts'
import type { VerdictCount } from '../../../store/catalogue/trials.ts'
import { knowledgeOf } from '../detection.ts'
import type { JudgingContext } from '../context.ts'
import type { Live, Submitted, Surroundings, WaitingSubmission } from './analyse.ts'
import { namesIn } from './names.ts'
import { VerdictTally } from './verdict-tally.ts'

/** Everything that these submissions are compared with, read for all of them at once. */
export async function surroundingsOf(
  list: readonly Submitted[],
  management: JudgingContext,
): Promise<Surroundings> {
  const { store } = management
  const knowledge = knowledgeOf(management)
  const names = await namesIn(store, management.nowMs())
  const registered = new Map<string, Registered[]>()
  const waiting = new Map<string, WaitingSubmission[]>()
  const seen = new Map<string, FingerprintTraffic>()
  const counted = new Map<string, readonly VerdictCount[]>()
  for (const [type, values] of valuesOf(list)) {
    for (const each of await store.submissions.registered(type, values))
      add(registered, keyOf({ type, value: each.value }), each)
    for (const each of await store.submissions.waiting(type, values))
      add(waiting, keyOf({ type, value: each.value }), each)
    for (const each of await store.submissions.seen(type, values))
      seen.set(keyOf({ type, value: each.value }), each)
    for (const { value, verdicts } of await store.trials.of(type, values))
      counted.set(keyOf({ type, value }), verdicts)
  }
  const verdicts = await verdictsOn(seen, store)
  return {
    knowledge,
    names,
    registered: (submitted) => registered.get(keyOf(submitted)) ?? [],
    waiting: (submitted) => waiting.get(keyOf(submitted)) ?? [],
    live: (submitted) => {
      const key = keyOf(submitted)
      const found = seen.get(key)
      if (found === undefined) return null
      // The trial counts cover more than the Sightings that happen to be stored.
      const earlier = counted.get(key) ?? []
      return {
        ...found,
        verdicts: earlier.length > 0 ? earlier : (verdicts.get(key)?.counts ?? []),
      } satisfies Live
    },
  }
}

export function keyOf({ type, value }: Pick<Submitted, 'type' | 'value'>): string {
  return `${type} ${value}`
}

function valuesOf(list: readonly Submitted[]): ReadonlyMap<Ja4Type, readonly string[]> {
  const values = new Map<Ja4Type, Set<string>>()
  for (const { type, value } of list) values.set(type, (values.get(type) ?? new Set()).add(value))
  return new Map([...values].map(([type, each]) => [type, [...each]]))
}

/** The verdicts on the newest requests with these fingerprints. */
async function verdictsOn(
  wanted: ReadonlyMap<string, unknown>,
  { sightings }: Store,
): Promise<ReadonlyMap<string, VerdictTally>> {
  const tallies = new Map<string, VerdictTally>()
  let next: number | null = null
  for (let read = 0; wanted.size > 0 && read < SIGHTINGS_MAX; read += SIGHTINGS_AT_ONCE) {
    const some = await sightings.before(next, SIGHTINGS_AT_ONCE)
    tally(some.sightings, wanted, tallies)
    next = some.next
    if (next === null) break
    await turn()
  }
  return tallies
}

function tally(
  sightings: readonly Sighting[],
  wanted: ReadonlyMap<string, unknown>,
  tallies: Map<string, VerdictTally>,
): void {
  for (const each of sightings) {
    // Another program may have written to the database.
    const sighting = readSighting(each)
    if (typeof sighting === 'string') continue
    for (const type of JA4_TYPES) {
      const value = sighting[type]
      const key = value === null ? null : keyOf({ type, value })
      if (key === null || !wanted.has(key)) continue
      const counts = tallies.get(key) ?? new VerdictTally([])
      tallies.set(key, counts)
      counts.add(sighting)
    }
  }
}

function add<Item>(lists: Map<string, Item[]>, key: string, item: Item): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [item])
  else list.push(item)
}

/** Enough to show which clients use a frequent fingerprint. */
const SIGHTINGS_MAX = 2_000
/** Takes about 3 ms. */
const SIGHTINGS_AT_ONCE = 250

/** The Sightings that all processes took in within about a second. */
export interface TrafficSample {
  readonly requests: number
  readonly by_verdict: Readonly<Record<string, number>>
  /** By the action taken. */
  readonly by_action: Readonly<Record<string, number>>
  readonly by_category: Readonly<Record<string, number>>
  /** A request of an agent with several purposes counts for each. */
  readonly by_purpose: Readonly<Record<string, number>>
  /** The agents with the most requests. */
  readonly agents: readonly { readonly id: string; readonly requests: number }[]
}

/** The newest seconds, oldest first, in a fixed number of places. */
export interface Seconds {
  readonly at: readonly number[]
  readonly traffic: readonly (TrafficSample | null)[]
}

/** All places are empty, so that a chart has its full width from the start. */
export function emptySeconds(nowMs: number, places: number): Seconds {
  const nowS = Math.floor(nowMs / 1_000)
  return {
    at: Array.from({ length: places }, (_, place) => nowS - places + place),
    traffic: Array.from({ length: places }, () => null),
  }
}

/** Appends a second and drops the oldest one. Seconds without a report since the last one are unknown. */
export function withSecond({ at, traffic }: Seconds, nowMs: number, second: TrafficSample): Seconds {
  const places = at.length
  const last = at.at(-1) ?? 0
  // Two reports within one second get consecutive seconds.
  const next = Math.max(last + 1, Math.floor(nowMs / 1_000))
  const missed = next - last - 1
  // A report may be late and then covers more than a second.
  const unknown = missed <= LATE_S ? 0 : Math.min(missed, places)
  const gap = Array.from({ length: unknown }, (_, place) => next - unknown + place)
  return {
    at: [...at, ...gap, next].slice(-places),
    traffic: [...traffic, ...gap.map(() => null), second].slice(-places),
  }
}

/** The counts of a minute, or of the part of it that is over. */
export interface MinuteOfTraffic extends Pick<TrafficSample, 'requests' | 'by_verdict' | 'by_action'> {
  readonly atS: number
  readonly endS: number
}

/** Fills unknown seconds with the average of their minute, less what is known of that minute. */
export function withMinutes(seconds: Seconds, minutes: readonly MinuteOfTraffic[]): Seconds {
  const traffic = [...seconds.traffic]
  for (const { atS, endS, requests, by_verdict, by_action } of minutes) {
    const places = seconds.at.flatMap((at, place) => (at >= atS && at < endS ? [place] : []))
    const known = places.flatMap((place) => traffic[place] ?? [])
    const unknown = endS - atS - known.length
    if (unknown <= 0) continue
    const rest = (counts: Readonly<Record<string, number>>, of: 'by_verdict' | 'by_action') => {
      const less = added(known.map((second) => second[of]))
      return Object.fromEntries(
        Object.entries(counts).map(([name, count]) => [
          name,
          Math.max(0, count - (less[name] ?? 0)) / unknown,
        ]),
      )
    }
    const average: TrafficSample = {
      requests: Math.max(0, requests - sum(known.map((second) => second.requests))) / unknown,
      by_verdict: rest(by_verdict, 'by_verdict'),
      by_action: rest(by_action, 'by_action'),
      ...{ by_category: {}, by_purpose: {}, agents: [] },
    }
    for (const place of places) traffic[place] ??= average
  }
  return { at: seconds.at, traffic }
}

/** The sum of the last `length` seconds. */
export function sumOf({ traffic }: Seconds, length: number): TrafficSample {
  const heard = traffic.slice(-length).filter((each) => each !== null)
  const agents = new Map<string, number>()
  for (const { agents: some } of heard)
    for (const { id, requests } of some) agents.set(id, (agents.get(id) ?? 0) + requests)
  return {
    requests: sum(heard.map(({ requests }) => requests)),
    by_verdict: added(heard.map(({ by_verdict }) => by_verdict)),
    by_action: added(heard.map(({ by_action }) => by_action)),
    by_category: added(heard.map(({ by_category }) => by_category)),
    by_purpose: added(heard.map(({ by_purpose }) => by_purpose)),
    agents: [...agents]
      .map(([id, requests]) => ({ id, requests }))
      .sort((one, other) => other.requests - one.requests),
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

function added(counts: readonly Readonly<Record<string, number>>[]): Readonly<Record<string, number>> {
  const sums = new Map<string, number>()
  for (const some of counts)
    for (const [name, count] of Object.entries(some)) sums.set(name, (sums.get(name) ?? 0) + count)
  return Object.fromEntries(sums)
}

/** Beyond this, seconds without a report are unknown. */
const LATE_S = 3

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

/** Appends a second and drops the oldest one. */
export function withSecond({ at, traffic }: Seconds, nowMs: number, second: TrafficSample): Seconds {
  const last = at.at(-1) ?? 0
  // Two reports within one second get consecutive seconds.
  return {
    at: [...at.slice(1), Math.max(last + 1, Math.floor(nowMs / 1_000))],
    traffic: [...traffic.slice(1), second],
  }
}

/** The sum of the last `length` seconds. */
export function sumOf({ traffic }: Seconds, length: number): TrafficSample {
  const heard = traffic.slice(-length).filter((each) => each !== null)
  const agents = new Map<string, number>()
  for (const { agents: some } of heard)
    for (const { id, requests } of some) agents.set(id, (agents.get(id) ?? 0) + requests)
  return {
    requests: heard.reduce((sum, { requests }) => sum + requests, 0),
    by_verdict: added(heard.map(({ by_verdict }) => by_verdict)),
    by_action: added(heard.map(({ by_action }) => by_action)),
    by_category: added(heard.map(({ by_category }) => by_category)),
    by_purpose: added(heard.map(({ by_purpose }) => by_purpose)),
    agents: [...agents]
      .map(([id, requests]) => ({ id, requests }))
      .sort((one, other) => other.requests - one.requests),
  }
}

function added(counts: readonly Readonly<Record<string, number>>[]): Readonly<Record<string, number>> {
  const sum = new Map<string, number>()
  for (const some of counts)
    for (const [name, count] of Object.entries(some)) sum.set(name, (sum.get(name) ?? 0) + count)
  return Object.fromEntries(sum)
}

import { type Place, shown } from '../../shared/problem.ts'
import { parseDurationMs } from '../duration.ts'

export function readDuration(place: Place, minMs: number, maxMs: number): number | null {
  const { value } = place
  const milliseconds = typeof value === 'string' ? parseDurationMs(value) : null
  if (milliseconds === null)
    return place.refuse(`is ${shown(value)}; expected a duration, like 10s, 500ms or 2m`)
  if (milliseconds >= minMs && milliseconds <= maxMs) return milliseconds
  return place.refuse(`is ${shown(value)}; expected ${minMs}ms to ${maxMs / 1000}s`)
}

/** Reads a member that must be there. */
export function required<Value>(
  place: Place,
  members: ReadonlyMap<string, Place>,
  name: string,
  read: (member: Place) => Value | null,
): Value | null {
  const member = members.get(name)
  return member === undefined ? place.refuse(`needs ${name}`) : read(member)
}

/** Reads a member; without it, the fallback. */
export function optional<Value, Fallback>(
  member: Place | undefined,
  read: (member: Place) => Value | null,
  fallback: Fallback,
): Value | Fallback | null {
  return member === undefined ? fallback : read(member)
}

import { type AppScope, reaches } from '../../apps/app-scope.ts'
import type { EventRecord } from '../../store/events/events.ts'
import { type EventFilter, isWanted } from './event-filter.ts'
import type { EventTail } from './event-tail.ts'
import type { TrafficPulse } from '../intake/traffic-pulse.ts'
import type { Sight } from '../intake/personal-data.ts'
import { shownEvent } from './shown-event.ts'

/** Where a listener starts. */
export interface EventStart {
  /** The listener gets the events after this number. */
  readonly position: number
  /** Why this differs from the position that the listener asked for. */
  readonly reset: 'forgotten' | 'unknown' | null
}

/** Which events a listener gets, and how much personal data they contain. */
export interface EventView {
  readonly filter: EventFilter
  readonly apps: AppScope
  readonly sight: Sight
}

/**
 * Stored events as Server-Sent Events. The first one states the position, so that a client that disconnects
 * before its first event misses nothing. While no event passes the filter, the position is repeated now and
 * then.
 */
export async function* eventTexts(
  { position, reset }: EventStart,
  { filter, apps, sight }: EventView,
  tail: EventTail,
  stop: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const first = reset === null ? placeText(position) : resetText(position, reset)
  yield `${RETRY}${first}`
  let saidAtMs = performance.now()
  for await (const some of tail.follow(position, stop)) {
    const wanted = some.events.filter((event) => reaches(apps, event.app) && isWanted(event, filter))
    const text = wanted.map((event) => textOf(event, sight)).join('')
    if (text === '' && performance.now() - saidAtMs < SILENCE_MS) continue
    yield text === '' ? placeText(some.position) : text
    saidAtMs = performance.now()
  }
}

/** The traffic as Server-Sent Events. They have no id, because they are never sent again. */
export async function* trafficTexts(
  pulse: TrafficPulse,
  stop: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  yield `${RETRY}\n`
  for await (const data of pulse.follow(stop)) {
    const timestamp = new Date().toISOString()
    yield `event: traffic\ndata: ${JSON.stringify({ type: 'traffic', timestamp, data })}\n\n`
  }
}

/** The text is cached for all listeners of the same sight. */
function textOf(event: EventRecord, sight: Sight): string {
  const texts = TEXTS[sight]
  const text = texts.get(event) ?? sseText(event.number, event.type, shownEvent(event, sight))
  texts.set(event, text)
  return text
}

function placeText(position: number): string {
  return sseText(position, 'position', { last_event_id: String(position) })
}

function resetText(position: number, reason: NonNullable<EventStart['reset']>): string {
  return sseText(position, 'reset', { last_event_id: String(position), reason })
}

/** `JSON.stringify` without indentation contains no line breaks. */
function sseText(id: number, type: string, data: unknown): string {
  return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`
}

const TEXTS: Readonly<Record<Sight, WeakMap<EventRecord, string>>> = {
  full: new WeakMap(),
  reduced: new WeakMap(),
}
/** How long clients wait before they reconnect. */
const RETRY = 'retry: 2000\n'
const SILENCE_MS = 60_000

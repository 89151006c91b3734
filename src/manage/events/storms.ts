import { AddressSketch } from '../../store/engine/address-sketch.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { EventStorm, EventStormStore } from '../../store/events/event-storms.ts'
import type { NewEvent } from '../../store/events/events.ts'
import { storedJson } from '../../store/engine/stored.ts'
import { timeOf } from '../http/schemas.ts'
import { draftText, type EventDraft, eventOf, parseDraft } from './event-draft.ts'
import { networkHash } from '../intake/sighting-intake.ts'

/** An occurrence that exceeds the limit for separate events. */
export interface Occurrence {
  /** The number of requests, and the times of the first and the last one. */
  readonly count: number
  readonly sinceMs: number
  readonly untilMs: number
  readonly address: string | null
  readonly fingerprint: string | null
  readonly agent: string | null
  readonly category: string | null
  readonly confidence: number | null
  readonly app: string | null
  /** The entry in the list of examples. */
  readonly example: StormExample
}

export type StormExample = Readonly<Record<string, string | number | null>>

/**
 * Limits the number of separate events per topic and minute. The excess becomes one event at the end of the
 * minute, with the number of requests, addresses and fingerprints, and a few examples. One transaction uses
 * each instance; it has to hold the lock of Sightings.
 */
export class Storms {
  readonly #store: EventStormStore
  readonly #open = new Map<string, OpenStorm>()
  readonly #nowMs: number
  readonly #perMinute: number
  /** Summary events of minutes that have ended. */
  readonly over: NewEvent[] = []

  private constructor(store: EventStormStore, perMinute: number, nowMs: number) {
    this.#store = store
    this.#perMinute = perMinute
    this.#nowMs = nowMs
  }

  static async open(
    store: EventStormStore,
    topics: Iterable<string>,
    perMinute: number,
    nowMs: number,
    queries: Queries,
  ): Promise<Storms> {
    const storms = new Storms(store, perMinute, nowMs)
    const all = [...new Set(topics)]
    const known = await store.of(all, queries)
    for (const topic of all) storms.#begin(topic, known.get(topic) ?? null)
    return storms
  }

  /** Returns whether one more separate event is allowed, and counts it. */
  admit(topic: string): boolean {
    const storm = this.#open.get(topic)!
    if (storm.told >= this.#perMinute) return false
    storm.told++
    storm.isChanged = true
    return true
  }

  /** Returns `true` for the first excess occurrence: the caller then has to call `describe`. */
  add(topic: string, occurrence: Occurrence): boolean {
    return this.#open.get(topic)!.add(occurrence)
  }

  /**
   * Sets the draft of the summary event, which is the one that the first excess occurrence would have had.
   */
  describe(topic: string, draft: EventDraft): void {
    this.#open.get(topic)!.draft = draft
  }

  async save(queries: Queries): Promise<void> {
    const changed = [...this.#open.values()].filter(({ isChanged }) => isChanged)
    if (changed.length > 0)
      await this.#store.put(
        changed.map((storm) => storm.row),
        queries,
      )
  }

  #begin(topic: string, row: EventStorm | null): void {
    const minuteMs = minuteOf(this.#nowMs)
    // The clock of another process may be slightly ahead.
    if (row !== null && row.minuteMs >= minuteMs && row.minuteMs <= minuteMs + MINUTE_MS) {
      this.#open.set(topic, OpenStorm.parse(row))
      return
    }
    const storm = new OpenStorm(topic, minuteMs)
    this.#open.set(topic, storm)
    if (row === null || row.count === 0) return
    this.over.push(OpenStorm.parse(row).event(this.#nowMs))
    storm.isChanged = true
  }
}

/** The start of the minute that contains this time. */
export function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS) * MINUTE_MS
}

/** A topic beside the reasons of threats and the outcomes of payments, which may have an app behind them. */
export const NEW_SIGNATURES = 'new_signature'

class OpenStorm {
  readonly topic: string
  readonly #minuteMs: number
  readonly #addresses: AddressSketch
  readonly #fingerprints: AddressSketch
  readonly #examples: StormExample[]
  #count = 0
  #sinceMs = 0
  #untilMs = 0
  told = 0
  draft: EventDraft | null = null
  isChanged = false
  /** What all occurrences have in common, kept until a draft can hold it. */
  #common: Common | null = null

  constructor(
    topic: string,
    minuteMs: number,
    addresses = '',
    fingerprints = '',
    examples: StormExample[] = [],
  ) {
    this.topic = topic
    this.#minuteMs = minuteMs
    this.#addresses = addresses === '' ? new AddressSketch() : AddressSketch.parse(addresses)
    this.#fingerprints = fingerprints === '' ? new AddressSketch() : AddressSketch.parse(fingerprints)
    this.#examples = examples
  }

  static parse({ topic, minuteMs, addresses, fingerprints, ...row }: EventStorm): OpenStorm {
    const examples = storedJson(row.examples) as StormExample[]
    const storm = new OpenStorm(topic, minuteMs, addresses, fingerprints, examples)
    storm.told = row.told
    storm.#count = row.count
    storm.#sinceMs = row.sinceMs
    storm.#untilMs = row.untilMs
    storm.draft = row.event === '' ? null : parseDraft(row.event)
    storm.#common = storm.draft
    return storm
  }

  add(occurrence: Occurrence): boolean {
    const { count, sinceMs, untilMs, address, fingerprint } = occurrence
    const isFirst = this.#count === 0
    this.#sinceMs = isFirst ? sinceMs : Math.min(this.#sinceMs, sinceMs)
    this.#untilMs = Math.max(this.#untilMs, untilMs)
    this.#count += count
    if (address !== null) this.#addresses.add(networkHash(address))
    if (fingerprint !== null) this.#fingerprints.add(textHash(fingerprint))
    if (this.#examples.length < EXAMPLES_MAX) this.#examples.push(occurrence.example)
    this.#common = inCommon(this.#common, occurrence)
    this.isChanged = true
    return isFirst
  }

  get row(): EventStorm {
    const { topic, told, draft } = this
    return {
      topic,
      minuteMs: this.#minuteMs,
      told,
      count: this.#count,
      sinceMs: this.#sinceMs,
      untilMs: this.#untilMs,
      addresses: this.#addresses.text,
      fingerprints: this.#fingerprints.text,
      examples: JSON.stringify(this.#examples),
      event: draft === null ? '' : draftText({ ...draft, ...picked(this.#common ?? draft) }),
    }
  }

  event(nowMs: number): NewEvent {
    const draft = this.draft!
    const [addresses, fingerprints] = [this.#addresses.count, this.#fingerprints.count]
    const data = {
      ...draft.data,
      count: this.#count,
      since: timeOf(this.#sinceMs),
      until: timeOf(this.#untilMs),
      ...(addresses === 0 ? {} : { addresses }),
      ...(addresses + fingerprints === 0 ? {} : { fingerprints }),
      examples: this.#examples,
    }
    // The topic as subject: events about a single subject do not have to wait for this summary.
    return eventOf({ ...draft, subject: this.topic, data }, nowMs)
  }
}

type Common = Pick<Occurrence, 'agent' | 'category' | 'confidence' | 'app'>

function inCommon(before: Common | null, { agent, category, confidence, app }: Common): Common {
  if (before === null) return { agent, category, confidence, app }
  const isSure = before.confidence !== null && confidence !== null
  return {
    agent: before.agent === agent ? agent : null,
    category: before.category === category ? category : null,
    confidence: isSure ? Math.min(before.confidence, confidence) : null,
    app: before.app === app ? app : null,
  }
}

function picked({ agent, category, confidence, app }: Common): Common {
  return { agent, category, confidence, app }
}

/** FNV-1a, with the finalizer of MurmurHash3 to spread the bits. */
function textHash(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

const MINUTE_MS = 60_000
const EXAMPLES_MAX = 5

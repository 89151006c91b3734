import type { Heartbeat } from '../../plane/heartbeat.ts'

/** How a proxy was in a time. `away`: it sent no heartbeat. `stale`: it missed some. */
export const PAST_STATES = ['serving', 'unready', 'starting', 'stale', 'away'] as const

/** A time in which all reports of a proxy were alike. */
export interface PastRun {
  readonly fromMs: number
  readonly toMs: number
  readonly state: (typeof PAST_STATES)[number]
  /** At the end of five minutes it did not use the newest Snapshot. */
  readonly isBehind: boolean
  /** It could not use a newer Snapshot. */
  readonly isRefusing: boolean
  /** It lost Sightings. */
  readonly isLosing: boolean
}

/** A heartbeat, judged. */
export interface JudgedBeat {
  readonly heartbeat: Heartbeat
  readonly state: 'serving' | 'unready' | 'starting'
  readonly isCurrent: boolean
  /** The longest time between two heartbeats of a proxy that is not stale. */
  readonly silentMsMax: number
}

/** How a proxy was in the last 24 hours: a byte for each five minutes. */
export class ProxyHistory {
  readonly #slots = new Uint8Array(SLOTS)
  readonly #firstSlot: number
  #lastSlot: number
  /** Of the last heartbeat; `null`: it has stopped, or there was none. */
  #heardAtMs: number | null = null
  #dropped: number | null = null

  constructor(nowMs: number) {
    this.#firstSlot = slotOf(nowMs)
    this.#lastSlot = this.#firstSlot
  }

  hear({ heartbeat, state, isCurrent, silentMsMax }: JudgedBeat, nowMs: number): void {
    const slot = this.#reach(nowMs)
    const before = this.#slots[slot % SLOTS]!
    // The most recent one decides: all proxies are behind for a moment.
    let bits = (before & ~BEHIND) | STATE_BITS[state] | (isCurrent ? 0 : BEHIND)
    if (heartbeat.refused !== null) bits |= REFUSING
    const { dropped } = heartbeat.sightings
    // After a start, it counts from zero.
    if (this.#dropped !== null && dropped > (dropped < this.#dropped ? 0 : this.#dropped)) bits |= LOSING
    if (this.#heardAtMs !== null && nowMs - this.#heardAtMs > silentMsMax) bits |= STALE
    this.#slots[slot % SLOTS] = bits
    this.#dropped = dropped
    this.#heardAtMs = nowMs
  }

  /** It has sent its last heartbeat. */
  stop(): void {
    this.#heardAtMs = null
  }

  isOver(nowMs: number): boolean {
    return slotOf(nowMs) - this.#lastSlot >= SLOTS
  }

  /** Oldest first, until now. Each begins where the one before ends. */
  runs(nowMs: number): readonly PastRun[] {
    const now = slotOf(nowMs)
    const runs: { bits: number; from: number; to: number }[] = []
    for (let slot = Math.max(this.#firstSlot, now - SLOTS + 1); slot <= now; slot++) {
      const bits = slot > this.#lastSlot ? 0 : this.#slots[slot % SLOTS]!
      const run = runs.at(-1)
      // Its next heartbeat is due.
      const isOpen = slot === now && bits === 0 && run !== undefined
      if (run !== undefined && (run.bits === bits || isOpen)) run.to = slot + 1
      else runs.push({ bits, from: slot, to: slot + 1 })
    }
    return runs.map(({ bits, from, to }) => ({
      fromMs: from * SLOT_MS,
      toMs: Math.min(to * SLOT_MS, nowMs),
      state: stateIn(bits),
      isBehind: (bits & BEHIND) !== 0,
      isRefusing: (bits & REFUSING) !== 0,
      isLosing: (bits & LOSING) !== 0,
    }))
  }

  /** Nothing was heard in the slots between. */
  #reach(nowMs: number): number {
    const slot = Math.max(slotOf(nowMs), this.#lastSlot)
    for (let next = Math.max(this.#lastSlot + 1, slot - SLOTS + 1); next <= slot; next++)
      this.#slots[next % SLOTS] = 0
    this.#lastSlot = slot
    return slot
  }
}

/** The worst state of a slot. */
function stateIn(bits: number): PastRun['state'] {
  if ((bits & STALE) !== 0) return 'stale'
  if ((bits & STATE_BITS.unready) !== 0) return 'unready'
  if ((bits & STATE_BITS.starting) !== 0) return 'starting'
  return (bits & STATE_BITS.serving) === 0 ? 'away' : 'serving'
}

function slotOf(ms: number): number {
  return Math.floor(ms / SLOT_MS)
}

const SLOT_MS = 300_000
const SLOTS = 288
const STATE_BITS = { serving: 1, starting: 2, unready: 4 } as const
const [STALE, BEHIND, REFUSING, LOSING] = [8, 16, 32, 64]

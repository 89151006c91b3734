import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import type { Ja4Type } from '../../classify/known/fingerprint-form.ts'
import type { DetectionStore } from '../../store/traffic/detections.ts'
import { storedJson } from '../../store/engine/stored.ts'

/** What somebody was held for, and by which fingerprints, where they are known. */
export interface Judged extends Readonly<Record<Ja4Type, string | null>> {
  readonly verdict: string
  readonly agentId: string | null
}

/**
 * The newest answers of `/detect`, by the id of the request: an operator may say that one was wrong. In memory, and
 * nothing of it but what was held of whom and by which fingerprints. Where several processes may be asked, each writes
 * its own down a moment later, for the others.
 */
export class RecentDetections {
  readonly #shared: DetectionStore | null
  readonly #nowMs: () => number
  #newest = new Map<string, Judged>()
  #older = new Map<string, Judged>()
  #unwritten = new Map<string, Judged>()

  /** `shared`: `null` where there is no other process. */
  constructor(shared: DetectionStore | null, nowMs: () => number = Date.now) {
    this.#shared = shared
    this.#nowMs = nowMs
  }

  /** Callers choose the ids of their requests: of two that have chosen one the later is remembered. */
  keep(requestId: string, judged: Judged): void {
    if (this.#newest.size >= KEPT_MIN) {
      this.#older = this.#newest
      this.#newest = new Map()
    }
    this.#newest.set(requestId, judged)
    if (this.#shared === null) return
    if (this.#unwritten.size >= KEPT_MIN) this.#unwritten.delete(this.#unwritten.keys().next().value!)
    this.#unwritten.set(requestId, judged)
  }

  async find(requestId: string): Promise<Judged | null> {
    const known = this.#newest.get(requestId) ?? this.#older.get(requestId)
    if (known !== undefined || this.#shared === null) return known ?? null
    const document = await this.#shared.find(requestId)
    return document === null ? null : judgedSchema.parse(storedJson(document))
  }

  /** The same, of one that another process may be about to write down. */
  async findLater(requestId: string): Promise<Judged | null> {
    if (this.#shared === null) return null
    await wait(WRITTEN_EVERY_MS * 2)
    return this.find(requestId)
  }

  /** For the other processes. */
  async write(): Promise<void> {
    if (this.#shared === null || this.#unwritten.size === 0) return
    const unwritten = this.#unwritten
    this.#unwritten = new Map()
    const atMs = this.#nowMs()
    const records = [...unwritten].map(([id, judged]) => ({ id, atMs, document: JSON.stringify(judged) }))
    try {
      await this.#shared.put(records)
    } catch (error) {
      for (const [id, judged] of this.#unwritten) unwritten.set(id, judged)
      this.#unwritten = new Map([...unwritten].slice(-KEPT_MIN))
      throw error
    }
  }
}

const text = z.string().nullable()
const judgedSchema = z.object({
  ...{ verdict: z.string(), agentId: text, ja4: text, ja4s: text, ja4h: text, ja4x: text },
})
/** And twice as many at most: some ten megabytes. */
export const KEPT_MIN = 10_000
export const WRITTEN_EVERY_MS = 500

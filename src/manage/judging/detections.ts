import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import type { Ja4Type } from '../../classify/known/fingerprint-form.ts'
import type { DetectionStore } from '../../store/traffic/detections.ts'
import { storedJson } from '../../store/engine/stored.ts'

/** The verdict on a request and the fingerprints that are known of it. */
export interface JudgedDetection extends Readonly<Record<Ja4Type, string | null>> {
  readonly verdict: string
  readonly agentId: string | null
}

/**
 * The newest answers of `/detect` by request id, so that an operator can report a wrong one. Only the
 * verdict, the agent and the fingerprints are kept, in memory. If several processes serve the API, each
 * process writes its answers to the database shortly afterwards, for the other processes.
 */
export class RecentDetections {
  readonly #shared: DetectionStore | null
  readonly #nowMs: () => number
  #newest = new Map<string, JudgedDetection>()
  #older = new Map<string, JudgedDetection>()
  #unwritten = new Map<string, JudgedDetection>()

  /** `shared` is `null` if there is only one process. */
  constructor(shared: DetectionStore | null, nowMs: () => number = Date.now) {
    this.#shared = shared
    this.#nowMs = nowMs
  }

  /** Callers choose their request ids: if two callers choose the same one, the later answer wins. */
  keep(requestId: string, judged: JudgedDetection): void {
    if (this.#newest.size >= KEPT_MIN) {
      this.#older = this.#newest
      this.#newest = new Map()
    }
    this.#newest.set(requestId, judged)
    if (this.#shared === null) return
    if (this.#unwritten.size >= KEPT_MIN) this.#unwritten.delete(this.#unwritten.keys().next().value!)
    this.#unwritten.set(requestId, judged)
  }

  async find(requestId: string): Promise<JudgedDetection | null> {
    const known = this.#newest.get(requestId) ?? this.#older.get(requestId)
    if (known !== undefined || this.#shared === null) return known ?? null
    const document = await this.#shared.find(requestId)
    return document === null ? null : judgedSchema.parse(storedJson(document))
  }

  /** The same for an answer that another process may not have written yet: waits for the next write. */
  async findLater(requestId: string): Promise<JudgedDetection | null> {
    if (this.#shared === null) return null
    await wait(WRITTEN_EVERY_MS * 2)
    return this.find(requestId)
  }

  /** Writes the new answers for the other processes. */
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
  verdict: z.string(),
  agentId: text,
  ja4: text,
  ja4s: text,
  ja4h: text,
  ja4x: text,
})
/** Up to twice as many are kept, about 10 MB. */
export const KEPT_MIN = 10_000
export const WRITTEN_EVERY_MS = 500

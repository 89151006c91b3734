import { PolicyCompiler } from './snapshot-policies.ts'
import { KnowledgeReader } from './signature-set.ts'
import { parseParts, type Snapshot, type SnapshotDocument } from './snapshot.ts'

/**
 * Turns documents into Snapshots, in order. Compiling new signatures takes time, during which requests use
 * the previous Snapshot. Skips documents that a newer one has replaced meanwhile.
 */
export class SnapshotReader {
  readonly #knowledge = new KnowledgeReader()
  readonly #policies: PolicyCompiler
  readonly #use: (snapshot: Snapshot) => void
  #inUse: Snapshot | null = null
  #newest: SnapshotDocument | null = null
  #reading: Promise<void> = Promise.resolve()

  /** When `use` returns, the Snapshot is in use. `hasSources`: see PolicyCompiler. */
  constructor(use: (snapshot: Snapshot) => void, hasSources = false) {
    this.#use = use
    this.#policies = new PolicyCompiler(hasSources)
  }

  /** Rejects with a Fault if the document is unusable; the previous Snapshot stays in use. */
  read(document: SnapshotDocument): Promise<void> {
    this.#newest = document
    const reading = this.#reading.then(() => this.#read(document))
    this.#reading = reading.catch(() => undefined)
    return reading
  }

  async #read(document: SnapshotDocument): Promise<void> {
    if (this.#newest !== document && this.#inUse !== null) return
    const before = this.#inUse?.knowledge ?? null
    const parts = parseParts(document)
    // Check the policies first: if one is invalid, the rest is not needed. Most signatures are the same as before.
    await this.#policies.compile(document, before?.names ?? null)
    const { signatures } = document
    const knowledge = signatures === null ? null : await this.#knowledge.read(signatures)
    const policies = await this.#policies.compile(document, knowledge?.names ?? null)
    this.#inUse = Object.freeze({ ...parts, ...policies, knowledge })
    this.#use(this.#inUse)
    if (before !== null && before !== knowledge) this.#knowledge.retire(before)
  }
}

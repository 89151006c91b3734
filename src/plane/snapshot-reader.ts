import { KnowledgeReader } from './signature-set.ts'
import { parseSnapshot, type Snapshot, type SnapshotDocument } from './snapshot.ts'

/**
 * Turns documents into Snapshots, in order. Compiling new signatures takes time, during which requests use
 * the previous Snapshot. Skips documents that a newer one has replaced meanwhile.
 */
export class SnapshotReader {
  readonly #knowledge = new KnowledgeReader()
  readonly #use: (snapshot: Snapshot) => void
  #inUse: Snapshot | null = null
  #newest: SnapshotDocument | null = null
  #reading: Promise<void> = Promise.resolve()

  /** When `use` returns, the Snapshot is in use. */
  constructor(use: (snapshot: Snapshot) => void) {
    this.#use = use
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
    parseSnapshot(document) // check the policy first: if it is invalid, the rest is not needed
    const { signatures } = document
    const knowledge = signatures === null ? null : await this.#knowledge.read(signatures)
    const before = this.#inUse?.knowledge ?? null
    this.#inUse = parseSnapshot(document, knowledge)
    this.#use(this.#inUse)
    if (before !== null && before !== knowledge) this.#knowledge.retire(before)
  }
}

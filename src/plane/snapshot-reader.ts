import { KnowledgeReader } from './signature-set.ts'
import { parseSnapshot, type Snapshot, type SnapshotDocument } from './snapshot.ts'

/**
 * Makes Snapshots of documents as they come, in their order. One with signatures that are new takes its time, in which
 * requests are judged by the one before; what has been overtaken meanwhile is left out.
 */
export class SnapshotReader {
  readonly #knowledge = new KnowledgeReader()
  readonly #use: (snapshot: Snapshot) => void
  #inUse: Snapshot | null = null
  #newest: SnapshotDocument | null = null
  #reading: Promise<void> = Promise.resolve()

  /** `use` has the Snapshot in use when it returns. */
  constructor(use: (snapshot: Snapshot) => void) {
    this.#use = use
  }

  /** Rejects with a Fault where the document cannot be used; the Snapshot before stays in use. */
  read(document: SnapshotDocument): Promise<void> {
    this.#newest = document
    const reading = this.#reading.then(() => this.#read(document))
    this.#reading = reading.catch(() => undefined)
    return reading
  }

  async #read(document: SnapshotDocument): Promise<void> {
    if (this.#newest !== document && this.#inUse !== null) return
    parseSnapshot(document) // its policy first: a bad one is not worth the rest
    const { signatures } = document
    const knowledge = signatures === null ? null : await this.#knowledge.read(signatures)
    const before = this.#inUse?.knowledge ?? null
    this.#inUse = parseSnapshot(document, knowledge)
    this.#use(this.#inUse)
    if (before !== null && before !== knowledge) this.#knowledge.retire(before)
  }
}

import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { IndexedSignature } from '../classify/index-builder.ts'
import { buildSignatureIndex } from '../classify/index-builder.ts'
import { compileKnowledge, fingerprintsOf, type Knowledge } from '../classify/knowledge.ts'
import { parseSoftwareList, type Software } from '../classify/software.ts'
import { softwareDocument } from '../classify/software-document.ts'
import { parseWeights } from '../classify/weights.ts'
import { Fault } from '../fault.ts'
import { type IndexFile, IndexLoader, writeIndexFile } from './index-file.ts'

/** What knowledge is made from, in the form that travels. */
export interface SignatureSet {
  /** SHA-256, in hexadecimal. */
  readonly hash: string
  /** JSON, each a list of some Software as files of signatures have it: read piece by piece, it holds nobody up. */
  readonly pieces: readonly string[]
  readonly weights: unknown
  /** Of all fingerprints in it. */
  readonly index: IndexFile
}

/** Makes sets, and keeps the files of the newest ones in a folder. */
export class SignatureSets {
  readonly #folder: string
  #newest: SignatureSet | null = null

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Throws a Fault at weights that are none, and where the file of the index cannot be written. */
  async make(list: readonly Software[], weights: unknown): Promise<SignatureSet> {
    parseWeights(weights)
    const hash = createHash('sha256').update(JSON.stringify(weights))
    const pieces: string[] = []
    for (let at = 0; at < list.length; at += PIECE) {
      const piece = JSON.stringify(list.slice(at, at + PIECE).map(softwareDocument))
      hash.update(piece)
      pieces.push(piece)
      await turn()
    }
    const name = hash.digest('hex')
    if (this.#newest?.hash === name) return this.#newest
    const bytes = await this.#build(list)
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const index = await writeIndexFile(join(this.#folder, `${name}${SUFFIX}`), bytes)
    await this.#forget(name)
    this.#newest = { hash: name, pieces, weights, index }
    return this.#newest
  }

  /** The first is waited for; while the process may have requests to answer, another thread does it. */
  async #build(list: readonly Software[]): Promise<Uint8Array> {
    const signatures = [...fingerprintsOf(list)]
    const random = randomBytes(8)
    const seed = [random.readInt32LE(0), random.readInt32LE(4)] as const
    return this.#newest === null ? buildSignatureIndex(signatures, seed) : inThread(signatures, seed)
  }

  /** A proxy may still be reading the one before the newest. */
  async #forget(newest: string): Promise<void> {
    const kept = new Set([newest, this.#newest?.hash].map((name) => `${name}${SUFFIX}`))
    const files = (await readdir(this.#folder)).filter((name) => name.endsWith(SUFFIX) && !kept.has(name))
    await Promise.all(files.map((name) => rm(join(this.#folder, name), { force: true })))
  }
}

/** Makes knowledge from sets as they come: in pieces, so that requests are answered in between. */
export class KnowledgeReader {
  readonly #loader = new IndexLoader()
  #newest: { readonly hash: string; readonly knowledge: Knowledge } | null = null

  /** Throws a Fault at what cannot be used. What is made of the same set is made once. */
  async read(set: SignatureSet): Promise<Knowledge> {
    if (this.#newest?.hash === set.hash) return this.#newest.knowledge
    const hash = createHash('sha256').update(JSON.stringify(set.weights))
    const list: Software[] = []
    for (const piece of set.pieces) {
      hash.update(piece)
      list.push(...parseSoftwareList(JSON.parse(piece)))
      await turn()
    }
    if (hash.digest('hex') !== set.hash) throw new Fault('SNAPSHOT_INVALID', 'the signatures are not whole')
    const index = await this.#loader.load(set.index)
    if (index.softwareCount > list.length)
      throw new Fault('SNAPSHOT_INVALID', 'the index is of more software than there is')
    const knowledge = compileKnowledge(list, parseWeights(set.weights), index)
    this.#newest = { hash: set.hash, knowledge }
    return knowledge
  }

  /** Nobody judges by it any more: its memory serves for the next. */
  retire(knowledge: Knowledge): void {
    if (knowledge !== this.#newest?.knowledge) this.#loader.retire(knowledge.fingerprints)
  }
}

export function isSignatureSet(value: unknown): value is SignatureSet {
  if (typeof value !== 'object' || value === null) return false
  const { hash, pieces, weights, index } = value as Partial<Record<keyof SignatureSet, unknown>>
  return (
    typeof hash === 'string' &&
    Array.isArray(pieces) &&
    pieces.every((piece) => typeof piece === 'string') &&
    weights !== undefined &&
    typeof index === 'object' &&
    index !== null
  )
}

function inThread(
  signatures: readonly IndexedSignature[],
  seed: readonly [number, number],
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(INDEX_THREAD, { workerData: { signatures, seed } })
    thread.once('message', resolve)
    thread.once('error', reject)
    thread.once('exit', () =>
      reject(new Fault('INDEX_NOT_BUILT', 'the thread that builds the index has ended')),
    )
  })
}

/** Some two milliseconds of parsing. */
const PIECE = 64
const SUFFIX = '.index'
const INDEX_THREAD = new URL(
  `./index-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url,
)

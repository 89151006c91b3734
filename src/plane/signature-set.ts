import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { IndexBuilder } from '../classify/index-builder.ts'
import { compilingKnowledge, type Knowledge } from '../classify/knowledge.ts'
import { isDecisive } from '../classify/signature.ts'
import { parseSoftwareList, type Software } from '../classify/software.ts'
import { softwareDocument } from '../classify/software-document.ts'
import { isSeenAnswer } from '../classify/stack.ts'
import { parseWeights } from '../classify/weights.ts'
import { Fault } from '../fault.ts'
import { type IndexFile, IndexLoader, writeIndexFile } from './index-file.ts'

/** What knowledge is made from, in the form that travels. */
export interface SignatureSet {
  /** SHA-256 of all the rest, in hexadecimal. */
  readonly hash: string
  /**
   * JSON, each a list of some Software as files of signatures have it, less what nobody is judged by: read piece by
   * piece, it holds nobody up.
   */
  readonly pieces: readonly string[]
  readonly weights: unknown
  /** SHA-256 of the fingerprints in the index: its own is another each time it is built. */
  readonly fingerprints: string
  readonly index: IndexFile
}

/** What a set is made from. */
export interface SetContent {
  readonly list: readonly Software[]
  /** All there are of this list, with the numbers of the Software in it. */
  readonly fingerprints: IndexBuilder
  readonly weights: unknown
}

/**
 * Makes a set, and keeps its file in a folder, with that of the `newest` one before, which a proxy may still be reading;
 * `null`: it is the same as that. Takes seconds for a million signatures. Throws a Fault at weights that are none, and
 * where the file of the index cannot be written.
 */
export async function makeSignatureSet(
  { list, fingerprints, weights }: SetContent,
  folder: string,
  newest: string | null,
): Promise<SignatureSet | null> {
  parseWeights(weights)
  const judgedBy = list.map(judged)
  const pieces: string[] = []
  for (let at = 0; at < judgedBy.length; at += PIECE)
    pieces.push(JSON.stringify(judgedBy.slice(at, at + PIECE).map(softwareDocument)))
  MADE_HERE.set(pieces, judgedBy)
  const inIndex = createHash('sha256')
  for (const memory of fingerprints.memory()) inIndex.update(memory)
  const said = { pieces, weights, fingerprints: inIndex.digest('hex') }
  const hash = hashOf(said)
  if (hash === newest) return null
  const random = randomBytes(8)
  const bytes = fingerprints.build([random.readInt32LE(0), random.readInt32LE(4)])
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const index = await writeIndexFile(join(folder, indexFileName(hash)), bytes)
  await keepIndexFiles([hash, newest], folder)
  return { hash, ...said, index }
}

/** Of the set with that hash. */
export function indexFileName(hash: string): string {
  return `${hash}${SUFFIX}`
}

/** Removes the files of all other sets. */
export async function keepIndexFiles(hashes: readonly (string | null)[], folder: string): Promise<void> {
  const kept = new Set(hashes.map((hash) => `${hash}${SUFFIX}`))
  const files = (await readdir(folder)).filter((name) => name.endsWith(SUFFIX) && !kept.has(name))
  await Promise.all(files.map((name) => rm(join(folder, name), { force: true })))
}

/** Makes knowledge from sets as they come: in pieces, so that requests are answered in between. */
export class KnowledgeReader {
  readonly #loader = new IndexLoader()
  #newest: { readonly hash: string; readonly knowledge: Knowledge } | null = null

  /** Throws a Fault at what cannot be used. What is made of the same set is made once. */
  async read(set: SignatureSet): Promise<Knowledge> {
    if (this.#newest?.hash === set.hash) return this.#newest.knowledge
    if (hashOf(set) !== set.hash) throw new Fault('SNAPSHOT_INVALID', 'the signatures are not whole')
    await turn()
    const list = MADE_HERE.get(set.pieces) ?? (await readPieces(set.pieces))
    const index = await this.#loader.load(set.index)
    if (index.softwareCount > list.length)
      throw new Fault('SNAPSHOT_INVALID', 'the index is of more software than there is')
    const compiling = compilingKnowledge(list, parseWeights(set.weights), index)
    let step = compiling.next()
    for (; !step.done; step = compiling.next()) await turn()
    const knowledge = step.value
    this.#newest = { hash: set.hash, knowledge }
    return knowledge
  }

  /** Nobody judges by it any more: its memory serves for the next. */
  retire(knowledge: Knowledge): void {
    if (knowledge !== this.#newest?.knowledge) this.#loader.retire(knowledge.fingerprints)
  }
}

async function readPieces(pieces: readonly string[]): Promise<readonly Software[]> {
  const list: Software[] = []
  for (const piece of pieces) {
    // A manager may be of a version that says more of software than this one knows of.
    list.push(...parseSoftwareList(jsonIn(piece), true))
    await turn()
  }
  return list
}

export function isSignatureSet(value: unknown): value is SignatureSet {
  if (typeof value !== 'object' || value === null) return false
  const { hash, pieces, weights, fingerprints, index } = value as Partial<Record<keyof SignatureSet, unknown>>
  return (
    typeof hash === 'string' &&
    Array.isArray(pieces) &&
    pieces.every((piece) => typeof piece === 'string') &&
    weights !== undefined &&
    typeof fingerprints === 'string' &&
    typeof index === 'object' &&
    index !== null
  )
}

/**
 * Fingerprints are in the index, but for those asked for by Software (what is foreign to who signs, hangs on its own) and
 * those that decide; the rest is for people to read.
 */
function judged(software: Software): Software {
  const isSigning = software.verification.signatureAgent !== null
  const signatures = software.signatures.filter(
    (signature) =>
      signature.type === 'user-agent' ||
      signature.type === 'header' ||
      signature.type === 'header-order' ||
      (signature.type === 'ja4' && isSigning) ||
      isDecisive(signature) ||
      isSeenAnswer(signature),
  )
  // By its other names a client may name itself. With a key of its vendor another agent of his may sign.
  const vendor = software.kind === 'agent' ? software.vendor : null
  return { ...software, description: null, homepage: null, vendor, signatures }
}

function jsonIn(piece: string): unknown {
  try {
    return JSON.parse(piece)
  } catch (error) {
    throw new Fault('SNAPSHOT_INVALID', 'a piece of the signatures is no JSON', { cause: error })
  }
}

function hashOf({ pieces, weights, fingerprints }: Omit<SignatureSet, 'hash' | 'index'>): string {
  const hash = createHash('sha256').update(JSON.stringify(weights)).update(fingerprints)
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}

/** What the pieces of sets say that were made in this process, which need not be read for it. */
const MADE_HERE = new WeakMap<readonly string[], readonly Software[]>()
/** A millisecond of parsing. */
const PIECE = 32
const SUFFIX = '.index'

import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { IndexBuilder } from '../classify/known/index/index-builder.ts'
import { compilingKnowledge, type Knowledge } from '../classify/known/knowledge.ts'
import { isDecisive } from '../classify/known/signature.ts'
import { parseSoftwareList, type Software } from '../classify/known/software.ts'
import { softwareDocument } from '../classify/known/software-document.ts'
import { isSeenAnswer } from '../classify/known/stack.ts'
import { parseWeights } from '../classify/known/weights.ts'
import { Fault } from '../shared/fault.ts'
import { type IndexFile, IndexLoader, writeIndexFile } from './index-file.ts'

/** Signatures in the form that travels. Knowledge is compiled from them. */
export interface SignatureSet {
  /** SHA-256 of everything else, in hexadecimal. */
  readonly hash: string
  /**
   * JSON texts, each a list of Software as in signature files, without what no verdict uses. Reading one
   * piece at a time does not block the process.
   */
  readonly pieces: readonly string[]
  readonly weights: unknown
  /** SHA-256 of the fingerprints in the index: the hash of the index itself differs with each build. */
  readonly fingerprints: string
  readonly index: IndexFile
}

/** Input of a set. */
export interface SetContent {
  readonly list: readonly Software[]
  /** All fingerprints of this list, with indexes into it. */
  readonly fingerprints: IndexBuilder
  readonly weights: unknown
}

/** A set whose index is not stored yet. */
export interface SetDraft extends Omit<SignatureSet, 'index'> {
  /** The software in the pieces. */
  readonly list: readonly Software[]
}

/** Throws a Fault for invalid weights. */
export function draftSet({ list, fingerprints, weights }: SetContent): SetDraft {
  parseWeights(weights)
  const judgedBy = list.map(judged)
  const pieces: string[] = []
  for (let at = 0; at < judgedBy.length; at += PIECE)
    pieces.push(JSON.stringify(judgedBy.slice(at, at + PIECE).map(softwareDocument)))
  const inIndex = createHash('sha256')
  for (const memory of fingerprints.memory()) inIndex.update(memory)
  const said = { pieces, weights, fingerprints: inIndex.digest('hex') }
  return { hash: hashOf(said), ...said, list: judgedBy }
}

export function placedSet({ list, ...said }: SetDraft, index: IndexFile): SignatureSet {
  MADE_HERE.set(said.pieces, list)
  return { ...said, index }
}

/**
 * Makes a set and stores its index in a folder. Keeps the index of the `newest` set, which a proxy may still
 * read; `null`: the set is unchanged. Takes seconds for a million signatures. Throws a Fault for invalid
 * weights, and if the index file cannot be written.
 */
export async function makeSignatureSet(
  content: SetContent,
  folder: string,
  newest: string | null,
): Promise<SignatureSet | null> {
  const draft = draftSet(content)
  const { hash } = draft
  if (hash === newest) return null
  const random = randomBytes(8)
  const bytes = content.fingerprints.build([random.readInt32LE(0), random.readInt32LE(4)])
  const index = await placeIndex(hash, bytes, { folder, isFirst: newest === null, isLasting: true })
  await keepIndexFiles([hash, newest], folder)
  return placedSet(draft, index)
}

export interface IndexPlace {
  readonly folder: string
  /** First use in this process: existing files belong to an earlier process, and no process reads them. */
  readonly isFirst: boolean
  /** See writeIndexFile. */
  readonly isLasting: boolean
}

/**
 * Writes the index of the set with that hash. If the disk is full, it deletes indexes of an earlier process
 * first, so that a gateway that ran on this disk can start on it again.
 */
export async function placeIndex(
  hash: string,
  bytes: Uint8Array,
  { folder, isFirst, isLasting }: IndexPlace,
): Promise<IndexFile> {
  const write = () => writeIndexFile(join(folder, `${hash}${SUFFIX}`), bytes, isLasting)
  await prepareFolder(folder, isFirst)
  if (!isFirst) return write()
  try {
    return await write()
  } catch (error) {
    if (!NO_ROOM.has((error as { readonly cause?: NodeJS.ErrnoException }).cause?.code)) throw error
    await keepIndexFiles([], folder)
    return write()
  }
}

/** `isFirst`: see IndexPlace. Throws a Fault if the folder cannot be created. */
export async function prepareFolder(folder: string, isFirst: boolean): Promise<void> {
  await makeFolder(folder)
  if (isFirst) await removeAll(folder, (name) => name.endsWith('.tmp')) // left by a killed process
}

/** Removes the files of all other sets. */
export async function keepIndexFiles(hashes: readonly (string | null)[], folder: string): Promise<void> {
  const kept = new Set(hashes.map((hash) => `${hash}${SUFFIX}`))
  await removeAll(folder, (name) => name.endsWith(SUFFIX) && !kept.has(name))
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    const why = `the index of signatures cannot be kept in ${folder} (${(error as Error).message})`
    const cause = { cause: error }
    throw new Fault('INDEX_FILE_UNWRITABLE', `${why}; give --data a folder that can be written`, cause)
  }
}

async function removeAll(folder: string, isMeant: (name: string) => boolean): Promise<void> {
  const names = (await readdir(folder)).filter(isMeant)
  await Promise.all(names.map((name) => rm(join(folder, name), { force: true })))
}

/** Compiles Knowledge from sets, in steps, so that requests are answered in between. */
export class KnowledgeReader {
  readonly #loader = new IndexLoader()
  #newest: { readonly hash: string; readonly knowledge: Knowledge } | null = null

  /** Throws a Fault for an unusable set. The same set is compiled once. */
  async read(set: SignatureSet): Promise<Knowledge> {
    if (this.#newest?.hash === set.hash) return this.#newest.knowledge
    if (hashOf(set) !== set.hash) throw new Fault('SNAPSHOT_INVALID', 'the signatures are not whole')
    await turn()
    const list = await softwareOf(set)
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

  /** Call this when no verdict uses the knowledge: its memory is reused for the next. */
  retire(knowledge: Knowledge): void {
    if (knowledge !== this.#newest?.knowledge) this.#loader.retire(knowledge.fingerprints)
  }
}

/** Parses in steps, because requests may be served meanwhile. `isWanted`: which pieces to parse. */
export async function softwareOf(
  { pieces }: Pick<SignatureSet, 'pieces'>,
  isWanted: (piece: string) => boolean = () => true,
): Promise<readonly Software[]> {
  const made = MADE_HERE.get(pieces)
  if (made !== undefined) return made
  const list: Software[] = []
  for (const piece of pieces) {
    // A newer manager may send members that this version does not know.
    if (isWanted(piece)) list.push(...parseSoftwareList(jsonIn(piece), true))
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
 * Removes what no verdict uses. Most fingerprints are in the index. Those that a Software needs itself stay:
 * to detect a foreign client behind a signature, and decisive ones.
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
  // Aliases stay, because a client may name itself by one. An agent's vendor stays, because the vendor's key
  // may sign for its other agents.
  const vendor = software.kind === 'agent' ? software.vendor : null
  return { ...software, description: null, homepage: null, vendor, signatures }
}

function jsonIn(piece: string): unknown {
  try {
    return JSON.parse(piece)
  } catch (error) {
    throw new Fault('SNAPSHOT_INVALID', 'a piece of the signatures is not valid JSON', { cause: error })
  }
}

function hashOf({ pieces, weights, fingerprints }: Omit<SignatureSet, 'hash' | 'index'>): string {
  const hash = createHash('sha256').update(JSON.stringify(weights)).update(fingerprints)
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}

/** The software of pieces made in this process, which need not be parsed. */
const MADE_HERE = new WeakMap<readonly string[], readonly Software[]>()
/** Software per piece: about a millisecond of parsing. */
const PIECE = 32
const SUFFIX = '.index'
/** The disk is full, or the quota is used up. */
const NO_ROOM: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT'])

import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { Fault } from '../../shared/fault.ts'
import { HelperProcess } from '../../shared/helper-process.ts'
import {
  keepIndexFiles,
  makeSignatureSet,
  prepareFolder,
  type SignatureSet,
} from '../../plane/signature-set.ts'
import type { MergeCounts } from '../../store/catalogue/catalogue-merge.ts'
import { builtSet } from './built-set.ts'
import { ListCopies, type ListCopy } from '../list-copies.ts'
import { isBuiltinAlone, loadContent, type SignatureSources } from './signature-content.ts'

/** A request to the helper process. */
export type CompilerWork = CompileWork | MergeWork

interface CompileWork {
  readonly kind: 'compile'
  readonly sources: SignatureSources
  readonly folder: string
  /** The hash of the newest set, whose file is kept. */
  readonly newest: string
  /** Copies of the lists that were read for it. */
  readonly copies: readonly ListCopy[]
}

/** Makes the catalogue in the database equal to the sources. */
export interface MergeWork {
  readonly kind: 'merge'
  readonly sources: SignatureSources
  readonly storeUrl: string
  readonly storePassword: string | null
  /** The hash of the sources. */
  readonly hash: string
}

interface CompiledSet {
  /** `null`: nothing has changed. */
  readonly set: SignatureSet | null
  readonly copies: readonly ListCopy[]
}

export type CompilerAnswer =
  | ({ readonly kind: 'set' } & CompiledSet)
  | { readonly kind: 'merged'; readonly counts: MergeCounts }
  | { readonly kind: 'fault'; readonly code: string; readonly message: string }

/**
 * Makes signature sets and merges them into a database. The first set is made in this process, because
 * startup waits for it. Later work runs in a helper process that reads the files itself, so that this process
 * can answer requests; of a million signatures it gets only the description of their index. (A thread would
 * keep hundreds of MiB, and page faults would slow this process while the thread allocates them.)
 */
export class SignatureCompiler {
  readonly #folder: string
  #newest: SignatureSet | null = null
  #copies: readonly ListCopy[] = []
  readonly #helpers = new Set<HelperProcess>()
  /** A helper process that waits for work; `null`: not started yet, or busy. */
  #idle: HelperProcess | null = null
  #isReady = false
  #isClosed = false

  /** `folder`: where the files of the newest two sets are kept. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** Throws a Fault with all problems. */
  async make(sources: SignatureSources): Promise<SignatureSet> {
    const newest = this.#newest
    const folder = this.#folder
    const { set, copies } =
      newest === null
        ? await compiled({ sources, folder, newest: null, copies: [] })
        : await this.#compile({ kind: 'compile', sources, folder, newest: newest.hash, copies: this.#copies })
    this.#copies = copies
    this.#newest = set ?? newest
    return this.#newest!
  }

  /** Keeps a helper process waiting from now on, because starting one takes longer than most work. */
  stayReady(): void {
    if (this.#isReady || this.#isClosed) return
    this.#isReady = true
    this.#idle = this.#helper()
  }

  /** Throws a Fault if the sources are invalid or the database is unusable. */
  async merge(work: Omit<MergeWork, 'kind'>): Promise<MergeCounts> {
    const answer = await this.#inProcess({ kind: 'merge', ...work })
    assert(answer.kind === 'merged')
    return answer.counts
  }

  /** Abandons all work. Pending promises never settle. */
  close(): void {
    this.#isClosed = true
    for (const helper of this.#helpers) helper.giveUp()
  }

  async #compile(work: CompileWork): Promise<CompiledSet> {
    const answer = await this.#inProcess(work)
    assert(answer.kind === 'set')
    return answer
  }

  async #inProcess(work: CompilerWork): Promise<CompilerAnswer> {
    if (this.#isClosed) return new Promise(() => undefined)
    // A merge is slow and not urgent, so it does not take the waiting process.
    const waiting = work.kind === 'compile' ? this.#idle : null
    if (waiting !== null) this.#idle = null
    const helper = waiting ?? this.#helper()
    let answer: CompilerAnswer | null = null
    try {
      answer = await helper.ask<CompilerAnswer>(work)
    } finally {
      this.#release(helper, answer)
    }
    if (answer.kind === 'fault') throw new Fault(answer.code, answer.message)
    return answer
  }

  #helper(): HelperProcess {
    const helper = new HelperProcess(PROGRAM, 'the process that compiles signatures', {}, () => {
      this.#helpers.delete(helper)
      if (this.#idle === helper) this.#idle = null
    })
    this.#helpers.add(helper)
    return helper
  }

  /** Ends a helper after large work, because it would keep the memory. */
  #release(helper: HelperProcess, answer: CompilerAnswer | null): void {
    const isSmall = answer?.kind === 'set' && (answer.set?.index.bytes ?? 0) < KEPT_BYTES_MAX
    if (this.#isReady && !this.#isClosed && isSmall && helper.isThere) this.#idle ??= helper
    if (this.#idle === helper) return
    helper.leave()
    if (this.#isReady && !this.#isClosed) this.#idle ??= this.#helper()
  }
}

/** Throws a ConfigFault with all problems in the files. */
export async function compiled({
  sources,
  folder,
  newest,
  copies,
}: Omit<CompileWork, 'kind' | 'newest'> & { readonly newest: string | null }): Promise<CompiledSet> {
  const built = isBuiltinAlone(sources) ? await builtSet() : null
  if (built !== null) {
    await prepareFolder(folder, newest === null)
    await keepIndexFiles([newest], folder)
    return { set: built.hash === newest ? null : built, copies: [] }
  }
  const read = new ListCopies(copies)
  const set = await makeSignatureSet(await loadContent(sources, read), folder, newest)
  return { set, copies: read.used }
}

const KEPT_BYTES_MAX = 8 * 1024 ** 2
const PROGRAM = fileURLToPath(
  new URL(`./signature-process${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

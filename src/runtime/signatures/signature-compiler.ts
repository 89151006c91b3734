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

/** What the other process is given. */
export type CompilerWork = CompileWork | MergeWork

export interface CompileWork {
  readonly kind: 'compile'
  readonly sources: SignatureSources
  readonly folder: string
  /** The hash of the newest set, whose file stays. */
  readonly newest: string
  /** Of what was read for it. */
  readonly copies: readonly ListCopy[]
}

/** To make the catalogue in a database the same as the sources. */
export interface MergeWork {
  readonly kind: 'merge'
  readonly sources: SignatureSources
  readonly storeUrl: string
  readonly storePassword: string | null
  /** Of the sources. */
  readonly hash: string
}

export interface CompiledSet {
  /** `null`: nothing has changed. */
  readonly set: SignatureSet | null
  readonly copies: readonly ListCopy[]
}

export type CompilerAnswer =
  | ({ readonly kind: 'set' } & CompiledSet)
  | { readonly kind: 'merged'; readonly counts: MergeCounts }
  | { readonly kind: 'fault'; readonly code: string; readonly message: string }

/**
 * Makes sets, and merges what is in them into a database. The first is waited for; while this process may have requests to answer, another one does it, from the
 * files on: nothing of a million signatures comes here but what is said of their index. (A thread would leave hundreds of
 * MiB that are not given back, and make this one wait for pages while it takes them.)
 */
export class SignatureCompiler {
  readonly #folder: string
  #newest: SignatureSet | null = null
  #copies: readonly ListCopy[] = []
  readonly #helpers = new Set<HelperProcess>()
  /** Waits for work; `null`: there is none, or it has some. */
  #idle: HelperProcess | null = null
  #isReady = false
  #isClosed = false

  /** `folder`: where the files of the newest two are kept. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** Throws a Fault with everything that is wrong. */
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

  /** From now on a process waits for work: to start one takes longer than most of the work does. */
  stayReady(): void {
    if (this.#isReady || this.#isClosed) return
    this.#isReady = true
    this.#idle = this.#helper()
  }

  /** Throws a Fault where the sources are no good, or the database cannot be used. */
  async merge(work: Omit<MergeWork, 'kind'>): Promise<MergeCounts> {
    const answer = await this.#inProcess({ kind: 'merge', ...work })
    assert(answer.kind === 'merged')
    return answer.counts
  }

  /** Nobody waits for a set any more: what is under way is given up, and never settled. */
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
    // A merge takes its time, and nobody waits for it as they do for a set.
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

  /** One that has had large work ends: its memory would stay with it. */
  #release(helper: HelperProcess, answer: CompilerAnswer | null): void {
    const isSmall = answer?.kind === 'set' && (answer.set?.index.bytes ?? 0) < KEPT_BYTES_MAX
    if (this.#isReady && !this.#isClosed && isSmall && helper.isThere) this.#idle ??= helper
    if (this.#idle === helper) return
    helper.leave()
    if (this.#isReady && !this.#isClosed) this.#idle ??= this.#helper()
  }
}

/** Throws a ConfigFault with everything that is wrong in the files. */
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

import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Fault } from '../fault.ts'
import { keepIndexFiles, makeSignatureSet, prepareFolder, type SignatureSet } from '../plane/signature-set.ts'
import type { MergeCounts } from '../store/catalogue-merge.ts'
import { builtSet } from './built-set.ts'
import { ListCopies, type ListCopy } from './list-copies.ts'
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
  readonly #children = new Set<ChildProcess>()
  /** Waits for work; `null`: there is none, or it has some. */
  #idle: ChildProcess | null = null
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
    this.#idle = this.#fork()
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
    for (const child of this.#children) child.removeAllListeners('exit').kill('SIGKILL')
  }

  async #compile(work: CompileWork): Promise<CompiledSet> {
    const answer = await this.#inProcess(work)
    assert(answer.kind === 'set')
    return answer
  }

  async #inProcess(work: CompilerWork): Promise<CompilerAnswer> {
    await turn() // to start it takes long enough by itself
    if (this.#isClosed) return new Promise(() => undefined)
    // A merge takes its time, and nobody waits for it as they do for a set.
    const waiting = work.kind === 'compile' ? this.#idle : null
    if (waiting !== null) this.#idle = null
    const child = waiting ?? this.#fork()
    let answer: CompilerAnswer | null = null
    try {
      answer = await answerOf(child, work)
      return answer
    } finally {
      this.#release(child, answer)
    }
  }

  #fork(): ChildProcess {
    const child = fork(PROGRAM, { serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#children.add(child)
    endWithThis(child)
    child.once('exit', () => {
      this.#children.delete(child)
      if (this.#idle === child) this.#idle = null
    })
    child.on('error', () => undefined) // whoever waits for it hears of it
    return child
  }

  /** One that has had large work ends: its memory would stay with it. */
  #release(child: ChildProcess, answer: CompilerAnswer | null): void {
    const isSmall = answer?.kind === 'set' && (answer.set?.index.bytes ?? 0) < KEPT_BYTES_MAX
    if (this.#isReady && !this.#isClosed && isSmall && child.connected) this.#idle ??= child
    if (this.#idle === child) return
    if (child.connected) child.disconnect()
    if (this.#isReady && !this.#isClosed) this.#idle ??= this.#fork()
  }
}

/** However this process ends, but by SIGKILL: what it has written into may be gone with it. */
function endWithThis(child: ChildProcess): void {
  if (!isEndHeard) {
    isEndHeard = true
    process.prependOnceListener('exit', () => {
      for (const each of ALIVE) each.kill('SIGKILL')
    })
  }
  ALIVE.add(child)
  child.once('close', () => ALIVE.delete(child))
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

async function answerOf(child: ChildProcess, work: CompilerWork): Promise<CompilerAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<CompilerAnswer>()
  const answered = (message: unknown) => resolve(message as CompilerAnswer)
  const failed = (error: Error) => reject(notCompiled(`cannot be started: ${error.message}`, error))
  const ended = () => reject(notCompiled('has ended'))
  child.once('message', answered).once('error', failed).once('exit', ended)
  setImmediate(() => {
    if (child.killed) return
    child.send(work, (error) => error !== null && reject(notCompiled('cannot be reached', error)))
  })
  try {
    const answer = await promise
    if (answer.kind === 'fault') throw new Fault(answer.code, answer.message)
    return answer
  } finally {
    child.off('message', answered).off('error', failed).off('exit', ended)
  }
}

function notCompiled(what: string, cause?: Error): Fault {
  return new Fault('SIGNATURES_NOT_COMPILED', `the process that compiles signatures ${what}`, { cause })
}

const KEPT_BYTES_MAX = 8 * 1024 ** 2
const PROGRAM = fileURLToPath(
  new URL(`./signature-process${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)
/** Of all compilers. */
const ALIVE = new Set<ChildProcess>()
let isEndHeard = false

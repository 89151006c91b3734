import { type ChildProcess, fork } from 'node:child_process'
import { setImmediate as turn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Fault } from '../fault.ts'
import { makeSignatureSet, type SignatureSet } from '../plane/signature-set.ts'
import { loadContent, type SignatureSources } from './signature-content.ts'

/** What the other process is given. */
export interface CompilerWork {
  readonly sources: SignatureSources
  readonly folder: string
  /** The hash of the newest set, whose file stays. */
  readonly newest: string
}

export type CompilerAnswer =
  /** `null`: nothing has changed. */
  | { readonly kind: 'set'; readonly set: SignatureSet | null }
  | { readonly kind: 'fault'; readonly code: string; readonly message: string }

/**
 * Makes sets. The first is waited for; while this process may have requests to answer, another one does it, from the
 * files on: nothing of a million signatures comes here but what is said of their index. (A thread would leave hundreds of
 * MiB that are not given back, and make this one wait for pages while it takes them.)
 */
export class SignatureCompiler {
  readonly #folder: string
  #newest: SignatureSet | null = null
  #child: ChildProcess | null = null
  #isClosed = false

  /** `folder`: where the files of the newest two are kept. */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** Throws a Fault with everything that is wrong. */
  async make(sources: SignatureSources): Promise<SignatureSet> {
    const newest = this.#newest
    const folder = this.#folder
    const set =
      newest === null
        ? await makeSignatureSet(await loadContent(sources), folder, null)
        : await this.#inProcess({ sources, folder, newest: newest.hash })
    this.#newest = set ?? newest
    return this.#newest!
  }

  /** Nobody waits for a set any more: what is under way is given up, and never settled. */
  close(): void {
    this.#isClosed = true
    this.#child?.removeAllListeners('exit').kill('SIGKILL')
  }

  async #inProcess(work: CompilerWork): Promise<SignatureSet | null> {
    await turn() // to start it takes long enough by itself
    if (this.#isClosed) return new Promise(() => undefined)
    const child = fork(PROGRAM, { serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#child = child
    return answerOf(child, work)
  }
}

function answerOf(child: ChildProcess, work: CompilerWork): Promise<SignatureSet | null> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => {
      const answer = message as CompilerAnswer
      if (answer.kind === 'set') resolve(answer.set)
      else reject(new Fault(answer.code, answer.message))
    })
    child.once('error', (error) => reject(notCompiled(`cannot be started: ${error.message}`, error)))
    child.once('exit', () => reject(notCompiled('has ended')))
    setImmediate(() => {
      if (child.killed) return
      child.send(work, (error) => error !== null && reject(notCompiled('cannot be reached', error)))
    })
  })
}

function notCompiled(what: string, cause?: Error): Fault {
  return new Fault('SIGNATURES_NOT_COMPILED', `the process that compiles signatures ${what}`, { cause })
}

const PROGRAM = fileURLToPath(
  new URL(`./signature-process${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

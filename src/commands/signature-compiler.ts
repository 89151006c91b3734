import { Worker } from 'node:worker_threads'
import { Fault } from '../fault.ts'
import { makeSignatureSet, type SignatureSet } from '../plane/signature-set.ts'
import { loadContent, type SignatureSources } from './signature-content.ts'

/** What the thread is given. */
export interface ThreadWork {
  readonly sources: SignatureSources
  readonly folder: string
  /** The hash of the newest set, whose file stays. */
  readonly newest: string
}

export type ThreadAnswer =
  /** `null`: nothing has changed. */
  | { readonly kind: 'set'; readonly set: SignatureSet | null }
  | { readonly kind: 'fault'; readonly code: string; readonly message: string }

/**
 * Makes sets. The first is waited for; while the process may have requests to answer, another thread does it, from the
 * files on: nothing of a million signatures comes here but what is said of their index.
 */
export class SignatureCompiler {
  readonly #folder: string
  #newest: SignatureSet | null = null

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
        : await inThread({ sources, folder, newest: newest.hash })
    this.#newest = set ?? newest
    return this.#newest!
  }
}

function inThread(work: ThreadWork): Promise<SignatureSet | null> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(THREAD, { workerData: work, resourceLimits: LIMITS })
    thread.unref() // who is told to stop does not wait for signatures
    thread.once('message', (answer: ThreadAnswer) => {
      if (answer.kind === 'set') resolve(answer.set)
      else reject(new Fault(answer.code, answer.message))
    })
    thread.once('error', reject)
    thread.once('exit', () =>
      reject(new Fault('SIGNATURES_NOT_COMPILED', 'the thread that compiles signatures has ended')),
    )
  })
}

const THREAD = new URL(
  `./signature-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url,
)
/** What it throws away is short-lived: lines. */
const LIMITS = { maxYoungGenerationSizeMb: 8 }

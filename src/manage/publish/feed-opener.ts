import { fileURLToPath } from 'node:url'
import { HelperProcess } from '../../shared/helper-process.ts'
import { type FeedFacts, FeedFault, type FeedKey, type FeedReason, openFeed } from '../../plane/feed.ts'

/** The input of the helper process. */
export interface FeedWork {
  readonly envelope: Uint8Array
  readonly name: string
  /** In the format of the configuration. */
  readonly keys: readonly string[]
}

export type FeedAnswer =
  | { readonly kind: 'feed'; readonly feed: FeedFacts }
  | { readonly kind: 'fault'; readonly reason: FeedReason; readonly message: string }

/**
 * Verifies and parses feeds, which takes 0.1 s or more per MiB. Once this process serves requests, helper
 * processes do it, one feed at a time.
 */
export class FeedOpener {
  #isServing = false
  #turn: Promise<unknown> = Promise.resolve()
  #helper: HelperProcess | null = null

  /** From now on, feeds are opened in a helper process. */
  leave(): void {
    this.#isServing = true
  }

  /** Throws a FeedFault unless one of the keys has signed the complete feed under this name. */
  async open(envelope: Uint8Array, name: string, keys: readonly FeedKey[]): Promise<FeedFacts> {
    if (!this.#isServing) return openFeed(envelope, name, keys)
    const work = { envelope, name, keys: keys.map(({ text }) => text) }
    const turn = this.#turn.then(() => this.#inProcess(work))
    this.#turn = turn
    const answer = await turn
    // The helper process failed. That is not the feed's fault, so it is opened here.
    if (answer === null) return openFeed(envelope, name, keys)
    if (answer.kind === 'fault') throw new FeedFault(answer.reason, answer.message)
    return answer.feed
  }

  /** Abandons the current feed. Its promise never settles. */
  close(): void {
    this.#turn = new Promise(() => undefined)
    this.#helper?.giveUp()
  }

  /** `null`: the process ended without an answer. */
  #inProcess(work: FeedWork): Promise<FeedAnswer | null> {
    this.#helper = new HelperProcess(PROGRAM, 'the process that opens feeds')
    return this.#helper.ask<FeedAnswer>(work).catch(() => null)
  }
}

const PROGRAM = fileURLToPath(
  new URL(`./feed-process${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

import { fileURLToPath } from 'node:url'
import { HelperProcess } from '../../shared/helper-process.ts'
import { type FeedFacts, FeedFault, type FeedKey, type FeedReason, openFeed } from '../../plane/feed.ts'

/** What the other process is given. */
export interface FeedWork {
  readonly envelope: Uint8Array
  readonly name: string
  /** As configurations have them. */
  readonly keys: readonly string[]
}

export type FeedAnswer =
  | { readonly kind: 'feed'; readonly feed: FeedFacts }
  | { readonly kind: 'fault'; readonly reason: FeedReason; readonly message: string }

/**
 * Verifies and reads feeds: a tenth of a second or more for each MiB. So while this process may have requests to answer,
 * another one does it, one feed after the other.
 */
export class FeedOpener {
  #isServing = false
  #turn: Promise<unknown> = Promise.resolve()
  #helper: HelperProcess | null = null

  /** From now on nothing may take long here. */
  leave(): void {
    this.#isServing = true
  }

  /** Throws a FeedFault unless one of the keys has signed it, whole, for this name. */
  async open(envelope: Uint8Array, name: string, keys: readonly FeedKey[]): Promise<FeedFacts> {
    if (!this.#isServing) return openFeed(envelope, name, keys)
    const work = { envelope, name, keys: keys.map(({ text }) => text) }
    const turn = this.#turn.then(() => this.#inProcess(work))
    this.#turn = turn
    const answer = await turn
    // Whatever became of the process, the feed is no worse for it.
    if (answer === null) return openFeed(envelope, name, keys)
    if (answer.kind === 'fault') throw new FeedFault(answer.reason, answer.message)
    return answer.feed
  }

  /** Nobody waits for a feed any more: what is under way is given up, and never settled. */
  close(): void {
    this.#turn = new Promise(() => undefined)
    this.#helper?.giveUp()
  }

  /** `null`: it ended without an answer. */
  #inProcess(work: FeedWork): Promise<FeedAnswer | null> {
    this.#helper = new HelperProcess(PROGRAM, 'the process that opens feeds')
    return this.#helper.ask<FeedAnswer>(work).catch(() => null)
  }
}

const PROGRAM = fileURLToPath(
  new URL(`./feed-process${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

import type { InquiryResult, Inquiry, Investigator, SignatureUse } from '../../identity/keys/inquiry.ts'
import type { Channel, ChannelMessage } from '../../plane/local-bus.ts'

type LineMessage =
  | { readonly kind: 'find:ask'; readonly inquiry: Inquiry }
  | { readonly kind: 'find:claim'; readonly number: number; readonly use: SignatureUse }
  | { readonly kind: 'find:answer'; readonly number: number; readonly isTaken: boolean | null }
  | { readonly kind: 'find:found'; readonly findings: readonly InquiryResult[] }

/** An investigator that also returns its known findings. */
export interface Finder extends Investigator {
  known(): readonly InquiryResult[]
}

/** The investigator's end of the line, which serves any number of workers. */
export class InvestigationDesk {
  readonly #finder: Finder
  readonly #channels = new Set<Channel>()

  constructor(finder: Finder) {
    this.#finder = finder
    finder.onFinding((finding) => {
      for (const channel of this.#channels) say(channel, { kind: 'find:found', findings: [finding] })
    })
  }

  attach(channel: Channel): void {
    this.#channels.add(channel)
    channel.onClose(() => this.#channels.delete(channel))
    channel.onMessage((message) => this.#receive(channel, message as LineMessage))
    say(channel, { kind: 'find:found', findings: this.#finder.known() })
  }

  #receive(channel: Channel, message: LineMessage): void {
    if (message.kind === 'find:ask') this.#finder.ask(message.inquiry)
    if (message.kind === 'find:claim') void this.#answer(channel, message.number, message.use)
  }

  async #answer(channel: Channel, number: number, use: SignatureUse): Promise<void> {
    const isTaken = await this.#finder.claim(use)
    if (this.#channels.has(channel)) say(channel, { kind: 'find:answer', number, isTaken })
  }
}

/** The worker's end of the line. */
export class RemoteInvestigator implements Investigator {
  readonly #channel: Channel
  readonly #claims = new Map<number, (isTaken: boolean | null) => void>()
  readonly #answerMs: number
  /** Findings that arrived before there was a listener. */
  #early: InquiryResult[] = []
  #listener: ((finding: InquiryResult) => void) | null = null
  #number = 0
  #isClosed = false

  constructor(channel: Channel, answerMs = ANSWER_MS) {
    this.#channel = channel
    this.#answerMs = answerMs
    channel.onMessage((message) => this.#receive(message as LineMessage))
    channel.onClose(() => this.#close())
  }

  onFinding(listener: (finding: InquiryResult) => void): void {
    this.#listener = listener
    for (const finding of this.#early) listener(finding)
    this.#early = []
  }

  ask(inquiry: Inquiry): void {
    say(this.#channel, { kind: 'find:ask', inquiry })
  }

  claim(use: SignatureUse): Promise<boolean | null> {
    const number = ++this.#number
    if (this.#isClosed || !say(this.#channel, { kind: 'find:claim', number, use }))
      return Promise.resolve(null)
    const { promise, resolve } = Promise.withResolvers<boolean | null>()
    const timer = setTimeout(() => this.#answered(number, null), this.#answerMs)
    this.#claims.set(number, (isTaken) => {
      clearTimeout(timer)
      resolve(isTaken)
    })
    return promise
  }

  #receive(message: LineMessage): void {
    if (message.kind === 'find:answer') this.#answered(message.number, message.isTaken)
    if (message.kind === 'find:found')
      for (const finding of message.findings) {
        if (this.#listener === null) this.#early.push(finding)
        else this.#listener(finding)
      }
  }

  #answered(number: number, isTaken: boolean | null): void {
    const answer = this.#claims.get(number)
    this.#claims.delete(number)
    answer?.(isTaken)
  }

  #close(): void {
    this.#isClosed = true
    for (const number of [...this.#claims.keys()]) this.#answered(number, null)
  }
}

function say(channel: Channel, message: LineMessage & ChannelMessage): boolean {
  return channel.send(message)
}

/** Far longer than an answer takes, unless the other end hangs. */
const ANSWER_MS = 250

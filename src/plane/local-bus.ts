import assert from 'node:assert/strict'
import { Fault } from '../shared/fault.ts'
import { type PaymentAnswer, type PaymentMessage, UNAVAILABLE } from '../payment/claim.ts'
import {
  type ManageBus,
  PAYMENT_ANSWER_MS,
  type PaymentListener,
  type ProxyBus,
  type SightingListener,
} from './bus.ts'
import type { RequestCounts } from './counts/request-counts.ts'
import type { Sighting } from './sighting.ts'
import { fromColumns, type SightingColumns, toColumns } from './sighting-columns.ts'
import type { SnapshotDocument } from './snapshot.ts'
import { changedPolicies, wholePolicies } from './snapshot-policies.ts'

/**
 * One end of a line that delivers messages in order until it breaks: the IPC channel between the primary and
 * a worker, or plain function calls. Others may use the same line: each end ignores kinds it does not know.
 */
export interface Channel {
  /** Messages are serialized, so large batches use a compact form. */
  readonly isWire: boolean
  /** `false` if the line is broken. */
  send(message: ChannelMessage): boolean
  onMessage(listener: (message: ChannelMessage) => void): void
  onClose(listener: () => void): void
}

export interface ChannelMessage {
  readonly kind: string
}

type LocalBusMessage =
  | { readonly kind: 'bus:snapshot'; readonly document: SnapshotDocument }
  | (Numbered & { readonly kind: 'bus:sightings'; readonly batch: readonly Sighting[] })
  /** The same in compact form, for a wire. */
  | (Numbered & { readonly kind: 'bus:columns'; readonly columns: SightingColumns })
  | { readonly kind: 'bus:answer'; readonly number: number; readonly taken: boolean }
  | { readonly kind: 'bus:payment'; readonly number: number; readonly message: PaymentMessage }
  | { readonly kind: 'bus:paid'; readonly number: number; readonly answer: PaymentAnswer }

interface Numbered {
  readonly number: number
  readonly counts: readonly RequestCounts[]
}

/** The management plane's end. Any number of proxies can attach. */
export class LocalManageBus implements ManageBus {
  readonly #channels = new Set<Channel>()
  #newest: SnapshotDocument | null = null
  #take: SightingListener = () => undefined
  #pay: PaymentListener = () => undefined

  attach(channel: Channel): void {
    this.#channels.add(channel)
    channel.onClose(() => this.#channels.delete(channel))
    channel.onMessage((message) => {
      const known = message as LocalBusMessage
      if (known.kind === 'bus:sightings') this.#answer(channel, known, known.batch)
      if (known.kind === 'bus:columns') this.#answer(channel, known, fromColumns(known.columns))
      if (known.kind === 'bus:payment') void this.#answerPayment(channel, known.number, known.message)
    })
    if (this.#newest !== null) send(channel, { kind: 'bus:snapshot', document: this.#newest })
  }

  publish(document: SnapshotDocument): void {
    assert(this.#newest === null || document.number > this.#newest.number, 'the numbers of Snapshots rise')
    const sent = reduced(document, this.#newest)
    this.#newest = document
    // Each channel has had all Snapshots before, or the newest when it was attached.
    for (const channel of this.#channels) send(channel, { kind: 'bus:snapshot', document: sent })
  }

  onSightings(listener: SightingListener): void {
    this.#take = listener
  }

  onPayment(listener: PaymentListener): void {
    this.#pay = listener
  }

  close(): void {
    this.#channels.clear()
  }

  async #answerPayment(channel: Channel, number: number, message: PaymentMessage): Promise<void> {
    const answer = (await this.#pay(message)) ?? UNAVAILABLE
    if (this.#channels.has(channel)) send(channel, { kind: 'bus:paid', number, answer })
  }

  async #answer(channel: Channel, { number, counts }: Numbered, batch: readonly Sighting[]): Promise<void> {
    let taken = false
    try {
      // The workers keep what is too much, so nothing waits behind this batch.
      await this.#take(batch, 'none', counts)
      taken = true
    } catch {
      // The proxy keeps the batch, and the listener has logged why.
    }
    if (this.#channels.has(channel)) send(channel, { kind: 'bus:answer', number, taken })
  }
}

/** A proxy's end. */
export class LocalProxyBus implements ProxyBus {
  readonly batchMax: number
  readonly #channel: Channel
  readonly #underWay = new Map<number, PromiseWithResolvers<void>>()
  readonly #payments = new Map<number, (answer: PaymentAnswer) => void>()
  #newest: SnapshotDocument | null = null
  #listener: ((document: SnapshotDocument) => void) | null = null
  #batches = 0
  #closed = false

  constructor(channel: Channel) {
    this.#channel = channel
    this.batchMax = channel.isWire ? ON_WIRE_MAX : HERE_MAX
    channel.onMessage((message) => this.#receive(message as LocalBusMessage))
    channel.onClose(() => this.close())
  }

  onSnapshot(listener: (document: SnapshotDocument) => void): void {
    assert(this.#listener === null, 'one listener')
    this.#listener = listener
    if (this.#newest !== null) listener(this.#newest)
  }

  async sendSightings(batch: readonly Sighting[], counts: readonly RequestCounts[] = []): Promise<void> {
    if (this.#closed) throw closed()
    const number = ++this.#batches
    const underWay = Promise.withResolvers<void>()
    this.#underWay.set(number, underWay)
    const message: LocalBusMessage = this.#channel.isWire
      ? { kind: 'bus:columns', number, columns: toColumns(batch), counts }
      : { kind: 'bus:sightings', number, batch, counts }
    if (!send(this.#channel, message)) this.close()
    return underWay.promise
  }

  pay(message: PaymentMessage): Promise<PaymentAnswer> {
    if (this.#closed) return Promise.resolve(UNAVAILABLE)
    const number = ++this.#batches
    const { promise, resolve } = Promise.withResolvers<PaymentAnswer>()
    const timer = setTimeout(() => this.#paid(number, UNAVAILABLE), PAYMENT_ANSWER_MS).unref()
    this.#payments.set(number, (answer) => {
      clearTimeout(timer)
      resolve(answer)
    })
    if (!send(this.#channel, { kind: 'bus:payment', number, message })) this.close()
    return promise
  }

  close(): void {
    this.#closed = true
    for (const { reject } of this.#underWay.values()) reject(closed())
    this.#underWay.clear()
    for (const number of this.#payments.keys()) this.#paid(number, UNAVAILABLE)
  }

  #paid(number: number, answer: PaymentAnswer): void {
    this.#payments.get(number)?.(answer)
    this.#payments.delete(number)
  }

  #receive(message: LocalBusMessage): void {
    if (this.#closed) return
    switch (message.kind) {
      case 'bus:snapshot':
        if (this.#newest !== null && message.document.number <= this.#newest.number) return
        this.#newest = whole(message.document, this.#newest)
        return this.#listener?.(this.#newest)
      case 'bus:answer': {
        const underWay = this.#underWay.get(message.number)
        this.#underWay.delete(message.number)
        if (message.taken) underWay?.resolve()
        else underWay?.reject(new Fault('BUS_REFUSED', 'the management plane could not take the Sightings'))
        return
      }
      case 'bus:paid':
        return this.#paid(message.number, message.answer)
      case 'bus:sightings':
      case 'bus:columns':
      case 'bus:payment':
        return assert.fail('a proxy takes neither Sightings nor payments')
    }
  }
}

/** Both ends of a line within this process. Messages arrive asynchronously, as over a wire. */
export function channelPair(): [Channel, Channel] {
  const left = new LocalChannel()
  const right = new LocalChannel()
  left.other = right
  right.other = left
  return [left, right]
}

class LocalChannel implements Channel {
  readonly isWire = false
  other: LocalChannel | null = null
  readonly #listeners: ((message: ChannelMessage) => void)[] = []

  send(message: ChannelMessage): boolean {
    const { other } = this
    assert(other !== null)
    setImmediate(() => {
      for (const listener of other.#listeners) listener(message)
    })
    return true
  }

  onMessage(listener: (message: ChannelMessage) => void): void {
    this.#listeners.push(listener)
  }

  onClose(): void {
    // Nothing to do: it lasts as long as the process.
  }
}

function send(channel: Channel, message: LocalBusMessage): boolean {
  return channel.send(message)
}

/** Policies of apps are sent as a difference. */
function reduced(document: SnapshotDocument, before: SnapshotDocument | null): SnapshotDocument {
  if (document.appPolicies === undefined) return document
  return { ...document, appPolicies: changedPolicies(document.appPolicies, before?.appPolicies ?? []) }
}

function whole(document: SnapshotDocument, before: SnapshotDocument | null): SnapshotDocument {
  if (document.appPolicies === undefined) return document
  return { ...document, appPolicies: wholePolicies(document.appPolicies, before?.appPolicies ?? []) }
}

function closed(): Fault {
  return new Fault('BUS_CLOSED', 'the management plane cannot be reached')
}

/**
 * Encoding takes 0.5 ms for some 70 ms of requests. The primary wakes up for each message, which takes 0.2
 * ms.
 */
const ON_WIRE_MAX = 2048
/** Processing takes well under a millisecond, which delays requests. */
const HERE_MAX = 512

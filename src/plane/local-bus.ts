import assert from 'node:assert/strict'
import { Fault } from '../shared/fault.ts'
import type { ManageBus, ProxyBus } from './bus.ts'
import type { Sighting } from './sighting.ts'
import { fromColumns, type SightingColumns, toColumns } from './sighting-columns.ts'
import type { SnapshotDocument } from './snapshot.ts'

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
  | { readonly kind: 'bus:sightings'; readonly number: number; readonly batch: readonly Sighting[] }
  /** The same in compact form, for a wire. */
  | { readonly kind: 'bus:columns'; readonly number: number; readonly columns: SightingColumns }
  | { readonly kind: 'bus:answer'; readonly number: number; readonly taken: boolean }

/** The management plane's end. Any number of proxies can attach. */
export class LocalManageBus implements ManageBus {
  readonly #channels = new Set<Channel>()
  #newest: SnapshotDocument | null = null
  #take: (batch: readonly Sighting[]) => void | Promise<void> = () => undefined

  attach(channel: Channel): void {
    this.#channels.add(channel)
    channel.onClose(() => this.#channels.delete(channel))
    channel.onMessage((message) => {
      const known = message as LocalBusMessage
      if (known.kind === 'bus:sightings') this.#answer(channel, known.number, known.batch)
      if (known.kind === 'bus:columns') this.#answer(channel, known.number, fromColumns(known.columns))
    })
    if (this.#newest !== null) send(channel, { kind: 'bus:snapshot', document: this.#newest })
  }

  publish(document: SnapshotDocument): void {
    assert(this.#newest === null || document.number > this.#newest.number, 'the numbers of Snapshots rise')
    this.#newest = document
    for (const channel of this.#channels) send(channel, { kind: 'bus:snapshot', document })
  }

  onSightings(listener: (batch: readonly Sighting[]) => void | Promise<void>): void {
    this.#take = listener
  }

  close(): void {
    this.#channels.clear()
  }

  async #answer(channel: Channel, number: number, batch: readonly Sighting[]): Promise<void> {
    let taken = false
    try {
      await this.#take(batch)
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

  async sendSightings(batch: readonly Sighting[]): Promise<void> {
    if (this.#closed) throw closed()
    const number = ++this.#batches
    const underWay = Promise.withResolvers<void>()
    this.#underWay.set(number, underWay)
    const message: LocalBusMessage = this.#channel.isWire
      ? { kind: 'bus:columns', number, columns: toColumns(batch) }
      : { kind: 'bus:sightings', number, batch }
    if (!send(this.#channel, message)) this.close()
    return underWay.promise
  }

  close(): void {
    this.#closed = true
    for (const { reject } of this.#underWay.values()) reject(closed())
    this.#underWay.clear()
  }

  #receive(message: LocalBusMessage): void {
    if (this.#closed) return
    switch (message.kind) {
      case 'bus:snapshot':
        if (this.#newest !== null && message.document.number <= this.#newest.number) return
        this.#newest = message.document
        return this.#listener?.(message.document)
      case 'bus:answer': {
        const underWay = this.#underWay.get(message.number)
        this.#underWay.delete(message.number)
        if (message.taken) underWay?.resolve()
        else underWay?.reject(new Fault('BUS_REFUSED', 'the management plane could not take the Sightings'))
        return
      }
      case 'bus:sightings':
      case 'bus:columns':
        return assert.fail('a proxy takes no Sightings')
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

import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { type ConsumerMessages, DeliverPolicy, jetstream, type JsMsg } from '@nats-io/jetstream'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { ManageBus, ProxyBus } from '../bus.ts'
import { type Heartbeat, readHeartbeat, writeHeartbeat } from '../heartbeat.ts'
import { type BusRole, type BusSettings, busClosed, JetStreamConnection } from './jetstream-connection.ts'
import { SnapshotLine, type SnapshotLineOptions, SnapshotPress } from './jetstream-snapshots.ts'
import {
  ANSWER_MS,
  CONSUMER,
  makeStreams,
  type StreamLimits,
  type StreamNames,
  streamNames,
} from './jetstream-streams.ts'
import type { Sighting } from '../sighting.ts'
import { packSightings, unpackSightings } from '../sighting-batch.ts'
import type { SnapshotDocument } from '../snapshot.ts'
import type { FollowerStatus } from '../snapshot-follower.ts'
import type { SnapshotFile } from '../snapshot-file.ts'
import { digestOf } from '../snapshot-package.ts'

/** A proxy's end. It asks NATS for little, so that there may be thousands of them. */
export class JetStreamProxyBus implements ProxyBus {
  readonly batchMax = 512
  readonly connection: JetStreamConnection
  readonly #names: StreamNames
  readonly #snapshots: SnapshotLine
  readonly #shard: number
  #sending: Promise<unknown> = Promise.resolve()
  #isClosed = false

  /** `id`: which proxy this is. */
  constructor(settings: BusSettings, id: string, options: ProxyBusOptions, log: Log) {
    this.#names = streamNames(settings.name)
    this.#shard = Number.parseInt(digestOf(Buffer.from(id)).slice(0, 8), 16) % SHARDS
    this.connection = new JetStreamConnection(settings, options.role ?? 'proxy', log)
    this.#snapshots = new SnapshotLine(this.connection, this.#names, options, log)
  }

  get followed(): FollowerStatus {
    return this.#snapshots.status
  }

  /** Takes what was in use last into use again; `false`: there is none. */
  restore(): Promise<boolean> {
    return this.#snapshots.restore()
  }

  /** See SnapshotFollower. */
  bootstrap(file: SnapshotFile): Promise<boolean> {
    return this.#snapshots.bootstrap(file)
  }

  onSnapshot(listener: (document: SnapshotDocument) => void): void {
    this.#snapshots.listen(listener)
  }

  /** Resolves when NATS has them. */
  sendSightings(batch: readonly Sighting[]): Promise<void> {
    const sending = this.#sending.then(() => this.#send(batch))
    this.#sending = sending.catch(() => undefined)
    return sending
  }

  /** Nobody waits for it, and the next one comes soon. */
  sendHeartbeat(heartbeat: Heartbeat): void {
    if (!this.connection.isUp) return
    this.connection.client.publish(`${this.#names.heartbeat}.${heartbeat.id}`, writeHeartbeat(heartbeat))
  }

  close(): void {
    void this.closed()
  }

  /** Resolves when nothing is under way. */
  async closed(): Promise<void> {
    this.#isClosed = true
    await inTime(this.#snapshots.close()) // else what asks for one is left behind, and keeps the process
    await this.connection.close()
  }

  async #send(batch: readonly Sighting[]): Promise<void> {
    if (this.#isClosed) throw busClosed()
    const { client } = this.connection
    const room = Math.floor((client.info?.max_payload ?? PAYLOAD_BYTES) * PAYLOAD_SHARE)
    const packed = await packSightings(batch, room)
    try {
      const js = jetstream(client, { timeout: ANSWER_MS })
      for (const { sightings, bytes } of packed) {
        // What is sent again because no answer came is known by it.
        const msgID = `${sightings[0]!.id} ${sightings.length}`
        const sending = js.publish(`${this.#names.sightings}.${this.#shard}`, bytes, { msgID })
        await this.connection.whileUp(sending)
      }
    } catch (error) {
      if (this.#isClosed || !this.connection.isUp) throw busClosed(error)
      throw new Fault('BUS_REFUSED', 'NATS could not take the Sightings', { cause: error })
    }
  }
}

export interface ProxyBusOptions extends SnapshotLineOptions {
  /** Whose login the settings have: NATS lets each read the answers to its own questions only. */
  readonly role?: BusRole
}

export interface ManageBusOptions extends SnapshotLineOptions, StreamLimits {
  /** Whether this process still is the one that publishes; asked each time. */
  mayPublish(): Promise<boolean>
}

/** A manager's end. Of several, one at a time publishes; all take Sightings, each batch one of them. */
export class JetStreamManageBus implements ManageBus {
  readonly connection: JetStreamConnection
  readonly counts = { taken: 0, returned: 0, unreadable: 0 }
  readonly #names: StreamNames
  readonly #limits: StreamLimits
  readonly #log: Log
  readonly #snapshots: SnapshotLine
  readonly #press: SnapshotPress
  readonly #underWay = new Set<Promise<void>>()
  #take: (batch: readonly Sighting[]) => void | Promise<void> = () => undefined
  #heard: (heartbeat: Heartbeat) => void = () => undefined
  #nudged: () => void = () => undefined
  #newest = 0
  readonly #open = new Set<ConsumerMessages>()
  #reading: Promise<unknown> | null = null
  #isClosed = false

  constructor(settings: BusSettings, { mayPublish, ...options }: ManageBusOptions, log: Log) {
    this.#names = streamNames(settings.name)
    this.#limits = options
    this.#log = log
    this.connection = new JetStreamConnection(settings, 'manage', log)
    this.#snapshots = new SnapshotLine(this.connection, this.#names, options, log)
    this.#press = new SnapshotPress(this.connection, this.#names, this.#snapshots, mayPublish, log)
    this.connection.onUp(() => this.#up())
  }

  get followed(): FollowerStatus {
    return this.#snapshots.status
  }

  get published(): number {
    return this.#press.count
  }

  restore(): Promise<boolean> {
    return this.#snapshots.restore()
  }

  /** What proxies get, whoever has published it. One listener. */
  onSnapshot(listener: (document: SnapshotDocument) => void): void {
    this.#snapshots.listen(listener)
  }

  /** As soon as NATS takes it, unless a newer one has taken its place by then. */
  publish(document: SnapshotDocument): void {
    assert(document.number > this.#newest, 'the numbers of Snapshots rise')
    this.#newest = document.number
    this.#press.publish(document)
  }

  onSightings(listener: (batch: readonly Sighting[]) => void | Promise<void>): void {
    this.#take = listener
  }

  /** What proxies say of themselves: first the last word of each. One listener. */
  onHeartbeat(listener: (heartbeat: Heartbeat) => void): void {
    this.#heard = listener
  }

  /** Tells whoever publishes that there is something new in the database. */
  nudge(): void {
    if (this.connection.isUp) this.connection.client.publish(this.#names.nudge)
  }

  /** Is called at each connection, too: what was said before was not heard. One listener. */
  onNudge(listener: () => void): void {
    this.#nudged = listener
  }

  close(): void {
    void this.closed()
  }

  /** Resolves when nothing is under way. */
  async closed(): Promise<void> {
    this.#isClosed = true
    for (const messages of this.#open) messages.stop()
    await inTime(Promise.allSettled(this.#underWay)) // what is stored is acknowledged
    await inTime(Promise.all([this.#snapshots.close(), this.#press.close()]))
    await this.connection.close()
    await this.#reading
  }

  #up(): void {
    if (this.#reading === null) {
      this.connection.client.subscribe(this.#names.nudge, { callback: () => this.#nudged() })
      this.#reading = this.#read()
    }
    this.#nudged()
    this.#press.run()
  }

  async #readSightings(): Promise<void> {
    const { consumers } = jetstream(this.connection.client)
    const consumer = await consumers.get(this.#names.sightingsStream, CONSUMER)
    const messages = await consumer.consume({ max_messages: BATCHES_AHEAD })
    for await (const message of this.#opened(messages)) {
      if (this.#isClosed) message.nak()
      else await this.#receive(message)
    }
  }

  async #readHeartbeats(): Promise<void> {
    const { consumers } = jetstream(this.connection.client)
    const options = { deliver_policy: DeliverPolicy.LastPerSubject }
    const messages = await (await consumers.get(this.#names.heartbeats, options)).consume()
    for await (const message of this.#opened(messages)) this.#hear(message)
  }

  /** A batch at a time is read, and some are being stored. */
  async #receive(message: JsMsg): Promise<void> {
    let batch: readonly unknown[]
    try {
      batch = await unpackSightings(message.data)
    } catch (error) {
      message.ack() // nobody else could read it either
      if (this.counts.unreadable++ === 0)
        this.#log.warn('a message is thrown away', { error: error as Error })
      return
    }
    const storing = this.#store(message, batch).finally(() => this.#underWay.delete(storing))
    this.#underWay.add(storing)
    if (this.#underWay.size >= BATCHES_UNDER_WAY) await Promise.race(this.#underWay)
  }

  async #store(message: JsMsg, batch: readonly unknown[]): Promise<void> {
    try {
      await this.#take(batch as readonly Sighting[])
      message.ack()
      this.counts.taken++
    } catch {
      // Whoever threw has said why. It comes again, to whoever can store it then.
      message.nak(Math.round(RETURNED_MS * (0.5 + Math.random())))
      this.counts.returned++
    }
  }

  #hear(message: JsMsg): void {
    try {
      this.#heard(readHeartbeat(message.data))
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      if (this.counts.unreadable++ === 0) this.#log.warn('a message is thrown away', { error })
    }
  }

  #opened(messages: ConsumerMessages): ConsumerMessages {
    this.#open.add(messages)
    if (this.#isClosed) messages.stop()
    return messages
  }

  /** Reads while there is a connection, and again when there is one anew. What fails is said once, until it works. */
  async #read(): Promise<void> {
    let failure = ''
    while (!this.#isClosed) {
      try {
        await this.connection.whileUp(this.#readAll())
      } catch (error) {
        const { message } = error as Error
        if (this.connection.isUp && message !== failure)
          this.#log.warn('NATS cannot be read from; it is tried again', { error: error as Error })
        failure = message
      }
      for (const messages of this.#open) messages.stop()
      this.#open.clear()
      if (!this.#isClosed) await wait(AGAIN_MS, undefined, { ref: false })
    }
  }

  async #readAll(): Promise<void> {
    await makeStreams(this.connection.client, this.#names, this.#limits)
    this.#press.start()
    await Promise.all([this.#readSightings(), this.#readHeartbeats()])
  }
}

/** What NATS does not answer is not waited for. */
async function inTime(work: Promise<unknown>): Promise<void> {
  await Promise.race([work, wait(CLOSE_MS, undefined, { ref: false })])
}

/** Subjects that Sightings come on: should one stream be too slow for all, another can have some of them. */
const SHARDS = 16
const PAYLOAD_BYTES = 1024 ** 2
/** The rest is for headers. */
const PAYLOAD_SHARE = 0.9
const BATCHES_AHEAD = 64
/** As many as the database takes in one transaction, and the next one meanwhile. */
const BATCHES_UNDER_WAY = 16
const RETURNED_MS = 2_000
const CLOSE_MS = 3_000
const AGAIN_MS = 1_000

import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { type ConsumerMessages, DeliverPolicy, jetstream, type JsMsg } from '@nats-io/jetstream'
import type { Msg } from '@nats-io/transport-node'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import { type PaymentAnswer, type PaymentMessage, UNAVAILABLE } from '../../payment/claim.ts'
import {
  type ManageBus,
  PAYMENT_ANSWER_MS,
  type PaymentListener,
  type ProxyBus,
  type SightingListener,
} from '../bus.ts'
import { readPaymentAnswer, readPaymentMessage, writePaymentMessage } from '../payment-messages.ts'
import { Backlog } from './backlog.ts'
import { type Heartbeat, readHeartbeat, writeHeartbeat } from '../heartbeat.ts'
import { AppLine } from './app-line.ts'
import {
  type BusRole,
  type BusSettings,
  busClosed,
  JetStreamConnection,
  roleOf,
} from './jetstream-connection.ts'
import { SnapshotLine, type SnapshotLineOptions, SnapshotPress } from './jetstream-snapshots.ts'
import {
  ANSWER_MS,
  CONSUMER,
  makeStreams,
  type StreamLimits,
  type StreamNames,
  streamNames,
} from './jetstream-streams.ts'
import { PartsPress } from './parts-press.ts'
import { partedBatch, type Reported, type RequestCounts } from '../counts/request-counts.ts'
import type { Sighting } from '../sighting.ts'
import { packSightings, unpackSightings } from '../sighting-batch.ts'
import type { SnapshotDocument } from '../snapshot.ts'
import type { FollowerStatus } from '../snapshot-follower.ts'
import type { SnapshotFile } from '../snapshot-file.ts'
import { digestOf } from '../snapshot-package.ts'

/** A proxy's end. It makes few requests to NATS, so that thousands of proxies are possible. */
export class JetStreamProxyBus implements ProxyBus {
  readonly batchMax = 512
  readonly connection: JetStreamConnection
  readonly #names: StreamNames
  readonly #snapshots: SnapshotLine | AppLine
  readonly #shard: number
  #sending: Promise<unknown> = Promise.resolve()
  #isClosed = false

  /** `id`: the id of this proxy. */
  constructor(settings: BusSettings, id: string, options: ProxyBusOptions, log: Log) {
    this.#names = streamNames(settings.name)
    this.#shard = Number.parseInt(digestOf(Buffer.from(id)).slice(0, 8), 16) % SHARDS
    const { app = null } = options
    this.connection = new JetStreamConnection(settings, options.role ?? roleOf(app), log)
    this.#snapshots =
      app === null
        ? new SnapshotLine(this.connection, this.#names, options, log)
        : new AppLine(this.connection, this.#names, { ...options, app }, log)
  }

  get followed(): FollowerStatus {
    return this.#snapshots.status
  }

  /** Uses the Snapshot that was last in use; `false`: no copy exists. */
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

  /** Resolves when NATS has stored the batch. */
  sendSightings(batch: readonly Sighting[], counts: readonly RequestCounts[] = []): Promise<void> {
    const sending = this.#sending.then(() => this.#send([...batch, ...counts]))
    this.#sending = sending.catch(() => undefined)
    return sending
  }

  /** Any manager answers: the ledger is in their database. */
  async pay(message: PaymentMessage): Promise<PaymentAnswer> {
    try {
      const { client } = this.connection
      const options = { timeout: PAYMENT_ANSWER_MS }
      const asking = client.request(this.#names.payments, writePaymentMessage(message), options)
      return readPaymentAnswer((await this.connection.whileUp(asking)).data)
    } catch {
      return UNAVAILABLE
    }
  }

  /** Drops the heartbeat while disconnected: the next one comes soon. */
  sendHeartbeat(heartbeat: Heartbeat): void {
    if (!this.connection.isUp) return
    this.connection.client.publish(`${this.#names.heartbeat}.${heartbeat.id}`, writeHeartbeat(heartbeat))
  }

  close(): void {
    void this.closed()
  }

  /** Resolves when nothing is in progress. */
  async closed(): Promise<void> {
    this.#isClosed = true
    await inTime(this.#snapshots.close()) // otherwise an open request would keep the process alive
    await this.connection.close()
  }

  async #send(batch: readonly Reported[]): Promise<void> {
    if (this.#isClosed) throw busClosed()
    const { client } = this.connection
    const room = Math.floor((client.info?.max_payload ?? PAYLOAD_BYTES) * PAYLOAD_SHARE)
    const packed = await packSightings(batch, room)
    try {
      const js = jetstream(client, { timeout: ANSWER_MS })
      for (const { items, bytes } of packed) {
        // JetStream detects a batch that is sent again because no answer came.
        const msgID = `${items[0]!.id} ${items.length}`
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
  /** The role of the login in the settings: NATS lets each role read only its own answers. */
  readonly role?: BusRole
}

export interface ManageBusOptions extends SnapshotLineOptions, StreamLimits {
  /** Whether this process is still the publisher; asked each time. */
  mayPublish(): Promise<boolean>
}

/**
 * A manager's end. Of several managers, one at a time publishes. All receive Sightings; each batch goes to
 * one of them.
 */
export class JetStreamManageBus implements ManageBus {
  readonly connection: JetStreamConnection
  readonly counts = { taken: 0, returned: 0, unreadable: 0 }
  readonly #names: StreamNames
  readonly #limits: StreamLimits
  readonly #log: Log
  readonly #snapshots: SnapshotLine
  readonly #press: SnapshotPress
  readonly #parts: PartsPress
  readonly #underWay = new Set<Promise<void>>()
  readonly #backlog = new Backlog()
  /** Sightings of the batches under way. */
  #sightings = 0
  #take: SightingListener = () => undefined
  #pay: PaymentListener = () => undefined
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
    this.#parts = new PartsPress(this.connection, this.#names, { ...options, mayPublish }, log)
    this.onSnapshot(() => undefined)
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

  /** Receives each Snapshot that proxies get, from any publisher. One listener. */
  onSnapshot(listener: (document: SnapshotDocument) => void): void {
    this.#snapshots.listen((document) => {
      this.#parts.take(document)
      listener(document)
    })
  }

  /** Publishes as soon as NATS accepts it, unless a newer Snapshot replaces it first. */
  publish(document: SnapshotDocument): void {
    assert(document.number > this.#newest, 'the numbers of Snapshots rise')
    this.#newest = document.number
    this.#press.publish(document)
  }

  onSightings(listener: SightingListener): void {
    this.#take = listener
  }

  onPayment(listener: PaymentListener): void {
    this.#pay = listener
  }

  /** Receives heartbeats of proxies, starting with the last one of each. One listener. */
  onHeartbeat(listener: (heartbeat: Heartbeat) => void): void {
    this.#heard = listener
  }

  /** Tells the publishing manager that the database has changed. */
  nudge(): void {
    if (this.connection.isUp) this.connection.client.publish(this.#names.nudge)
  }

  /** Also called after each connect, because earlier nudges were missed. One listener. */
  onNudge(listener: () => void): void {
    this.#nudged = listener
  }

  close(): void {
    void this.closed()
  }

  /** Resolves when nothing is in progress. */
  async closed(): Promise<void> {
    this.#isClosed = true
    for (const messages of this.#open) messages.stop()
    await inTime(Promise.allSettled(this.#underWay)) // stored batches are acknowledged
    await inTime(Promise.all([this.#snapshots.close(), this.#press.close(), this.#parts.close()]))
    await this.connection.close()
    await this.#reading
  }

  #up(): void {
    if (this.#reading === null) {
      this.connection.client.subscribe(this.#names.nudge, { callback: () => this.#nudged() })
      this.connection.client.subscribe(this.#names.payments, {
        queue: PAYMENT_QUEUE,
        callback: (_, message) => void this.#answerPayment(message),
      })
      this.#reading = this.#read()
    }
    this.#nudged()
    this.#press.run()
    this.#parts.up()
  }

  async #answerPayment(message: Msg): Promise<void> {
    try {
      const answer = await this.#pay(readPaymentMessage(message.data))
      message.respond(writePaymentMessage(answer ?? UNAVAILABLE))
    } catch (error) {
      if (this.counts.unreadable++ === 0)
        this.#log.warn('a message is thrown away', { error: error as Error })
    }
  }

  async #readSightings(): Promise<void> {
    const { consumers } = jetstream(this.connection.client)
    const consumer = await consumers.get(this.#names.sightingsStream, CONSUMER)
    const messages = await consumer.consume({ max_messages: BATCHES_AHEAD })
    for await (const message of this.#opened(messages)) {
      if (this.#isClosed) message.nak()
      else await this.#receive(message, messages)
    }
  }

  async #readHeartbeats(): Promise<void> {
    const { consumers } = jetstream(this.connection.client)
    const options = { deliver_policy: DeliverPolicy.LastPerSubject }
    const messages = await (await consumers.get(this.#names.heartbeats, options)).consume()
    for await (const message of this.#opened(messages)) this.#hear(message)
  }

  /** Parses one batch at a time, while several are being stored. */
  async #receive(message: JsMsg, messages: ConsumerMessages): Promise<void> {
    let batch: readonly unknown[]
    try {
      batch = await unpackSightings(message.data)
    } catch (error) {
      message.ack() // no other manager could parse it either
      if (this.counts.unreadable++ === 0)
        this.#log.warn('a message is thrown away', { error: error as Error })
      return
    }
    this.#sightings += batch.length
    const storing = this.#store(message, batch).then((isStored) => {
      this.#underWay.delete(storing)
      this.#sightings -= batch.length
      const waiting = message.info.pending + messages.getPending() + this.#underWay.size
      if (isStored) this.#backlog.stored(waiting, Date.now())
    })
    this.#underWay.add(storing)
    while (this.#underWay.size >= BATCHES_UNDER_WAY || this.#sightings >= SIGHTINGS_UNDER_WAY)
      await Promise.race(this.#underWay)
  }

  async #store(message: JsMsg, batch: readonly unknown[]): Promise<boolean> {
    try {
      const { sightings, counts } = partedBatch(batch)
      await this.#take(sightings as readonly Sighting[], this.#backlog.pressure, counts)
      message.ack()
      this.counts.taken++
      return true
    } catch {
      // The listener has logged why. The batch comes again, to any manager.
      message.nak(Math.round(RETURNED_MS * (0.5 + Math.random())))
      this.counts.returned++
      return false
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

  /** Reads while connected, and again after a reconnect. Logs a failure once until reading works again. */
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

/** Stops waiting if NATS does not answer in time. */
async function inTime(work: Promise<unknown>): Promise<void> {
  await Promise.race([work, wait(CLOSE_MS, undefined, { ref: false })])
}

/** Each message about a payment goes to one manager. */
const PAYMENT_QUEUE = 'managers'
/** Number of Sighting subjects: if one stream is too slow for all, another can take some of them. */
const SHARDS = 16
const PAYLOAD_BYTES = 1024 ** 2
/** The rest is for headers. */
const PAYLOAD_SHARE = 0.9
const BATCHES_AHEAD = 64
/** JetStream delivers at most 1,024 before the first is acknowledged, to all managers together. */
const BATCHES_UNDER_WAY = 256
/** As many as one transaction counts, plus those of the next one. */
const SIGHTINGS_UNDER_WAY = 16_384
const RETURNED_MS = 2_000
const CLOSE_MS = 3_000
const AGAIN_MS = 1_000

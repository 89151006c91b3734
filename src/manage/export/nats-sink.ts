import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { jetstream, JetStreamApiError, type JetStreamClient } from '@nats-io/jetstream'
import { headers, type NatsConnection, type Status, TimeoutError } from '@nats-io/transport-node'
import {
  type BusCredentialSettings,
  type BusCredentials,
  readBusCredentials,
} from '../../plane/bus-credentials.ts'
import { connectOnce } from '../../plane/jetstream/jetstream-connection.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { NumberedSighting } from '../../store/traffic/sightings.ts'
import type { Sink } from '../events/sinks/sink.ts'
import type { SinkCounts } from '../events/sinks/sink-metrics.ts'
import { RefusedRequests } from './refused-requests.ts'
import { requestMessage } from './request-message.ts'

export interface NatsSinkSettings {
  readonly urls: readonly string[]
  /** `{app}` stands for the app of a request. */
  readonly subject: string
  /** Whether a stream of JetStream acknowledges each message. */
  readonly isStream: boolean
  readonly login: BusCredentialSettings
}

/**
 * Publishes requests on a subject of NATS, each as one message, whose id is that of the request. With JetStream, a write
 * resolves when a stream has stored all of them. Otherwise it resolves when a server has received them.
 */
export class NatsSink implements Sink<NumberedSighting> {
  readonly confirmMs = 0
  readonly #settings: NatsSinkSettings
  readonly #counts: SinkCounts
  readonly #refusals: RefusedRequests
  #link: NatsLink | null = null

  constructor(settings: NatsSinkSettings, log: Log, counts: SinkCounts) {
    this.#settings = settings
    this.#counts = counts
    this.#refusals = new RefusedRequests(log, counts)
  }

  async write(items: readonly NumberedSighting[]): Promise<void> {
    try {
      await this.#useNewCredentials()
      this.#link ??= await NatsLink.open(this.#settings)
      const refused = await this.#link.publish(items.map(({ document }) => this.#messageOf(document)))
      this.#counts.sent += items.length - refused
      this.#refusals.add(refused, 'too long for NATS')
    } catch (error) {
      await this.close()
      throw error instanceof Fault ? error : away((error as Error).message, error)
    }
  }

  broken(): null {
    return null
  }

  async close(): Promise<void> {
    const link = this.#link
    this.#link = null
    await link?.close()
  }

  async #useNewCredentials(): Promise<void> {
    const link = this.#link
    if (link === null || performance.now() - link.checkedAtMs < CHECK_MS) return
    link.checkedAtMs = performance.now()
    const inFiles = readBusCredentials(this.#settings.login)
    if (!isDeepStrictEqual(inFiles, link.credentials)) await this.close()
  }

  #messageOf(sighting: Sighting): NatsMessage {
    return {
      id: sighting.id,
      subject: this.#settings.subject.replaceAll('{app}', sighting.app),
      bytes: Buffer.from(JSON.stringify(requestMessage(sighting))),
    }
  }
}

interface NatsMessage {
  readonly id: string
  readonly subject: string
  readonly bytes: Uint8Array
}

/** One connection, until it breaks. */
class NatsLink {
  readonly credentials: BusCredentials
  checkedAtMs = performance.now()
  readonly #client: NatsConnection
  /** `null`: the subject is in no stream. */
  readonly #stream: JetStreamClient | null
  /** What has ended the connection, or what the server has refused. */
  #failure: Error | null = null
  #fail: (error: Error) => void = () => undefined

  static async open({ urls, isStream, login }: NatsSinkSettings): Promise<NatsLink> {
    const credentials = readBusCredentials(login)
    const settings = { ...login, urls, name: NAME }
    return new NatsLink(await connectOnce(settings, 'sink', credentials), credentials, isStream)
  }

  private constructor(client: NatsConnection, credentials: BusCredentials, isStream: boolean) {
    this.#client = client
    this.credentials = credentials
    this.#stream = isStream ? jetstream(client, { timeout: ACK_MS }) : null
    void this.#watch(client.status())
    void client.closed().then((error) => this.#failed(error instanceof Error ? error : away('it is closed')))
  }

  /** Resolves to the number of messages that NATS refuses for good. */
  async publish(messages: readonly NatsMessage[]): Promise<number> {
    if (this.#failure !== null) throw this.#failure
    const failed = Promise.withResolvers<never>()
    this.#fail = failed.reject
    const sending = this.#stream === null ? this.#sendAll(messages) : this.#storeAll(this.#stream, messages)
    return Promise.race([sending, failed.promise])
  }

  async close(): Promise<void> {
    // A server may be gone without a word.
    await Promise.race([this.#client.close(), wait(CLOSE_MS, undefined, { ref: false })])
  }

  async #storeAll(stream: JetStreamClient, messages: readonly NatsMessage[]): Promise<number> {
    const stored = await Promise.all(messages.map((message) => this.#store(stream, message)))
    return stored.filter((each) => !each).length
  }

  /** `false`: it is too long for the server or for the stream. */
  async #store(stream: JetStreamClient, { id, subject, bytes }: NatsMessage): Promise<boolean> {
    if (!this.#hasRoomFor(bytes)) return false
    try {
      await stream.publish(subject, bytes, { msgID: id })
      return true
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === TOO_LONG_FOR_STREAM) return false
      if ((error as Error).name === 'JetStreamNotEnabled')
        throw away(`no stream has the subject ${subject}`, error)
      if (error instanceof TimeoutError) throw away(`no stream has acknowledged on ${subject} in time`, error)
      throw error
    }
  }

  async #sendAll(messages: readonly NatsMessage[]): Promise<number> {
    const fitting = messages.filter(({ bytes }) => this.#hasRoomFor(bytes))
    for (const { id, subject, bytes } of fitting) {
      const head = headers()
      head.set('Nats-Msg-Id', id)
      this.#client.publish(subject, bytes, { headers: head })
    }
    await this.#client.flush()
    // A server that refuses a message says so before it answers the flush.
    await nextTurn()
    if (this.#failure !== null) throw this.#failure
    return messages.length - fitting.length
  }

  #hasRoomFor(bytes: Uint8Array): boolean {
    return bytes.length + HEAD_BYTES <= (this.#client.info?.max_payload ?? Number.POSITIVE_INFINITY)
  }

  async #watch(statuses: AsyncIterable<Status>): Promise<void> {
    for await (const status of statuses) if (status.type === 'error') this.#failed(status.error)
  }

  #failed(error: Error): void {
    this.#failure ??= error
    this.#fail(error)
  }
}

function away(what: string, cause?: unknown): Fault {
  return new Fault('SINK_AWAY', `NATS cannot take requests: ${what}`, { cause })
}

/** Of the client, in lists of connections and in the subjects of its answers. */
const NAME = 'gatehouse'
const ACK_MS = 5_000
const CLOSE_MS = 1_000
/** How often the files of the login are read. */
const CHECK_MS = 10_000
/** The header with the id. */
const HEAD_BYTES = 128
/** The code of NATS for a message that is longer than `max_msg_size` of its stream. */
const TOO_LONG_FOR_STREAM = 10054

import {
  AckPolicy,
  type ConsumerInfo,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  type StreamConfig,
  type StreamState,
  StorageType,
} from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { Objm, type ObjectStore } from '@nats-io/obj'

/** The names of subjects, streams and stores. */
export interface StreamNames {
  /** Subject on which managers announce Snapshots. */
  readonly snapshot: string
  /** Subject on which all processes receive announcements after they are stored. */
  readonly announced: string
  readonly snapshots: string
  /** Object Store for packages, by digest. */
  readonly packages: string
  /** Prefix of the subjects of the parts that proxies of one app get. */
  readonly parts: string
  /** The same after they are stored. */
  readonly parted: string
  readonly partsStream: string
  /** Object Store for packages of what all apps share, by digest. */
  readonly shared: string
  readonly sightings: string
  readonly sightingsStream: string
  readonly heartbeat: string
  readonly heartbeats: string
  readonly nudge: string
  /** Subject on which managers answer about payments. */
  readonly payments: string
}

export function streamNames(name: string): StreamNames {
  return {
    snapshot: `${name}.snapshot`,
    announced: `${name}.announced`,
    snapshots: `${name}_snapshots`,
    packages: `${name}_packages`,
    parts: `${name}.parts`,
    parted: `${name}.parted`,
    partsStream: `${name}_parts`,
    shared: `${name}_shared`,
    sightings: `${name}.sightings`,
    sightingsStream: `${name}_sightings`,
    heartbeat: `${name}.heartbeat`,
    heartbeats: `${name}_heartbeats`,
    nudge: `${name}.nudge`,
    payments: `${name}.payments`,
  }
}

export interface StreamLimits {
  readonly sightingsBytesMax: number
  readonly replicas: number
}

/** Skips the check of account permissions, which the login may not be allowed to do. */
export function managerOf(client: NatsConnection): Promise<JetStreamManager> {
  return jetstreamManager(client, { checkAPI: false, timeout: ANSWER_MS })
}

/** The streams that do not exist or are not visible with this login. */
export async function missingStreams(client: NatsConnection, names: StreamNames): Promise<readonly string[]> {
  const { streams } = await managerOf(client)
  const wanted = [names.snapshots, names.sightingsStream, names.heartbeats]
  const found = await Promise.all(
    wanted.map((name) =>
      streams.info(name).then(
        () => true,
        (error: unknown) => {
          if (error instanceof JetStreamApiError) return false
          throw error
        },
      ),
    ),
  )
  return wanted.filter((_, index) => !found[index])
}

/** Creates missing streams. Existing ones stay unchanged: the operator of NATS may have created them. */
export async function makeStreams(
  client: NatsConnection,
  names: StreamNames,
  { sightingsBytesMax, replicas }: StreamLimits,
): Promise<void> {
  const streams = await managerOf(client)
  await make(streams, {
    name: names.snapshots,
    subjects: [names.snapshot],
    max_msgs_per_subject: 1,
    allow_direct: true,
    // Only stored announcements are republished. One that is rejected (from a former leader) reaches no
    // proxy.
    republish: { src: names.snapshot, dest: names.announced },
    storage: StorageType.File,
    num_replicas: replicas,
  })
  await make(streams, {
    name: names.sightingsStream,
    subjects: [`${names.sightings}.*`],
    retention: RetentionPolicy.Workqueue,
    discard: DiscardPolicy.New,
    max_bytes: sightingsBytesMax,
    duplicate_window: DUPLICATES_NS,
    storage: StorageType.File,
    num_replicas: replicas,
  })
  await make(streams, {
    name: names.heartbeats,
    subjects: [`${names.heartbeat}.*`],
    max_msgs_per_subject: 1,
    max_age: HEARTBEATS_NS,
    storage: StorageType.Memory,
    num_replicas: replicas,
  })
  await new Objm(client).create(names.packages, { storage: StorageType.File, replicas })
  await makeConsumer(streams, names)
}

/** What proxies of one app read. Each app has a subject, so that NATS can keep a proxy from those of other apps. */
export async function makePartsStream(
  client: NatsConnection,
  { parts, parted, partsStream, shared }: StreamNames,
  { replicas }: Pick<StreamLimits, 'replicas'>,
): Promise<void> {
  await make(await managerOf(client), {
    name: partsStream,
    subjects: [`${parts}.>`],
    max_msgs_per_subject: 1,
    allow_direct: true,
    republish: { src: `${parts}.>`, dest: `${parted}.>` },
    storage: StorageType.File,
    num_replicas: replicas,
  })
  await new Objm(client).create(shared, { storage: StorageType.File, replicas })
}

/** `store`: an Object Store of these names. */
export function packagesIn(client: NatsConnection, store: string): Promise<ObjectStore> {
  return new Objm(client).open(store, false)
}

/** The subject of one part, after `parts` or `parted`. */
export function partSubject(prefix: string, app: string): string {
  return `${prefix}.app.${app}`
}

async function make(
  { streams }: JetStreamManager,
  config: Partial<StreamConfig> & Pick<StreamConfig, 'name'>,
): Promise<void> {
  try {
    await streams.add(config)
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== NAME_IN_USE) throw error
  }
}

async function makeConsumer({ consumers, streams }: JetStreamManager, names: StreamNames): Promise<void> {
  const stream = names.sightingsStream
  try {
    const consumer = await consumers.info(stream, CONSUMER)
    const { state } = await streams.info(stream)
    if (!hasLostNumbers(state, consumer)) return
    // It would skip all batches up to the number it knows. Those that it gets twice are counted once.
    await consumers.delete(stream, CONSUMER)
  } catch (error) {
    if (!(error instanceof JetStreamApiError)) throw error
  }
  await consumers.add(stream, {
    durable_name: CONSUMER,
    ack_policy: AckPolicy.Explicit,
    ack_wait: ACK_WAIT_NS,
    max_ack_pending: ACKS_PENDING,
  })
}

/**
 * Whether the stream counts from 1 again and its consumer does not. NATS 2.9 does so when it starts again after its disk
 * was full. Otherwise, a work queue holds no batch that is acknowledged.
 */
function hasLostNumbers(state: StreamState, { delivered, ack_floor: acknowledged }: ConsumerInfo): boolean {
  const { first_seq, last_seq, messages } = state
  return delivered.stream_seq > last_seq || (messages > 0 && acknowledged.stream_seq >= first_seq)
}

/** The one consumer that all managers share. */
export const CONSUMER = 'ingest'
export const ANSWER_MS = 5_000
const NAME_IN_USE = 10_058
const SECOND_NS = 1_000_000_000
/**
 * How long JetStream detects a repeated batch. Its Sightings are deduplicated for longer, where they are
 * counted.
 */
const DUPLICATES_NS = 120 * SECOND_NS
/** A proxy without a heartbeat for this long is no longer reported as missing. */
const HEARTBEATS_NS = 3_600 * SECOND_NS
/** A manager that has not stored a batch by then is dead or stuck: another one gets the batch. */
const ACK_WAIT_NS = 60 * SECOND_NS
const ACKS_PENDING = 1_024

import { createHash } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { JetStreamApiError, jetstream } from '@nats-io/jetstream'
import type { Log } from '../../shared/log.ts'
import { type Announcement, readAnnouncement, writeAnnouncement } from '../announcement.ts'
import {
  type PartOfApp,
  emptyPart,
  type PartsHead,
  partsOf,
  readHead,
  writeHead,
  writePart,
} from '../app/app-part.ts'
import type { SnapshotDocument } from '../snapshot.ts'
import { grow, makeDelta, shrink } from '../snapshot-delta.ts'
import { digestOf, packSnapshot } from '../snapshot-package.ts'
import type { JetStreamConnection } from './jetstream-connection.ts'
import { DELTA_BYTES_MAX, lastMessage, packageIn, WRONG_LAST_SEQUENCE } from './jetstream-snapshots.ts'
import {
  ANSWER_MS,
  makePartsStream,
  managerOf,
  packagesIn,
  partSubject,
  type StreamLimits,
  type StreamNames,
} from './jetstream-streams.ts'

interface PressOptions extends Pick<StreamLimits, 'replicas'> {
  /** For the newest package of what all apps share. */
  readonly folder: string
  mayPublish(): Promise<boolean>
}

/**
 * Sends announced Snapshots again in parts, for proxies of one app: what all apps share, each changed app, and then the
 * head. Each message names the one before it in the stream, so of two managers only one sends.
 */
export class PartsPress {
  readonly #connection: JetStreamConnection
  readonly #names: StreamNames
  readonly #options: PressOptions
  readonly #log: Log
  #newest: SnapshotDocument | null = null
  #last: SnapshotDocument | null = null
  #running: Promise<void> | null = null
  #retry: NodeJS.Timeout | null = null
  #hasStream = false
  #isClosed = false
  #failure = ''
  /** What the stream has, if only this process has written to it since; `null`: unknown. */
  #sent: Sent | null = null

  constructor(connection: JetStreamConnection, names: StreamNames, options: PressOptions, log: Log) {
    this.#connection = connection
    this.#names = names
    this.#options = options
    this.#log = log
  }

  /** Takes a Snapshot that was announced, by any manager. */
  take(document: SnapshotDocument): void {
    this.#newest = document
    this.#last = document
    this.#run()
  }

  /** Call this at each connect: NATS may have lost what was sent. */
  up(): void {
    this.#sent = null
    this.#hasStream = false
    this.#newest ??= this.#last
    this.#run()
  }

  #run(): void {
    if (this.#isClosed || this.#newest === null || !this.#connection.isUp) return
    this.#running ??= this.#sendAll().finally(() => {
      this.#running = null
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#running
  }

  async #sendAll(): Promise<void> {
    while (this.#newest !== null && !this.#isClosed) {
      const document = this.#newest
      try {
        // The manager that leads may end before it has sent them.
        if (!(await this.#options.mayPublish())) return this.#again(RETRY_MS)
        await this.#send(document)
        if (this.#newest === document) this.#newest = null
        this.#failure = ''
      } catch (error) {
        this.#failed(error as Error)
        return
      }
    }
  }

  async #send(document: SnapshotDocument): Promise<void> {
    if (!this.#hasStream) await makePartsStream(this.#connection.client, this.#names, this.#options)
    this.#hasStream = true
    const sent = this.#sent ?? (await this.#found())
    const { head } = sent
    if (head !== null && head.number >= document.number) return
    // Until the head is sent, another process may have written.
    this.#sent = null
    const { apps: _, appPolicies: _policies, ...shared } = document
    const hash = baseHash(shared)
    const isSameBase = head?.base.hash === hash
    if (!isSameBase) await this.#sendBase({ ...shared, hash }, sent)
    const parts = partsOf(document)
    const isSame = head?.hash === document.hash
    const changes = isSame ? [] : [...changedParts(parts, sent.parts, document.number)]
    for (const part of changes) await this.#publish(`app.${part.app}`, await writePart(part), sent)
    const { number, madeAtMs } = document
    const base = isSameBase ? head!.base : { number, hash }
    const next = { number, hash: document.hash, madeAtMs, before: head?.number ?? 0, base }
    await this.#publish('head', writeHead(next), sent)
    this.#sent = { ...sent, head: next, parts: isSame ? sent.parts : parts }
    await this.#forget(changes)
  }

  /** What other processes have sent. Each app is taken for changed. */
  async #found(): Promise<Sent> {
    const { client } = this.#connection
    const { parts, partsStream } = this.#names
    const { streams } = await managerOf(client)
    const { state } = await streams.info(partsStream, { subjects_filter: `${parts}.app.>` })
    const message = await lastMessage(this.#connection, partsStream, `${parts}.head`)
    const apps = Object.keys(state.subjects ?? {}).map((subject) => subject.slice(`${parts}.app.`.length))
    const unknown = new Map(apps.map((app) => [app, null]))
    return { sequence: state.last_seq, head: headIn(message), parts: unknown }
  }

  async #sendBase(base: SnapshotDocument, sent: Sent): Promise<void> {
    const { number, hash, madeAtMs } = base
    const bytes = await packSnapshot(base)
    const whole = await shrink(bytes)
    const digest = digestOf(bytes)
    const store = await packagesIn(this.#connection.client, this.#names.shared)
    await store.putBlob({ name: digest }, whole)
    const message = await lastMessage(this.#connection, this.#names.partsStream, `${this.#names.parts}.base`)
    const before = announcementIn(message)
    const delta = before === null ? null : await this.#deltaFrom(before, bytes, whole.length)
    const said = { number, hash, madeAtMs, digest, bytes: bytes.length, delta }
    await this.#publish('base', writeAnnouncement(said), sent)
    await this.#keep(bytes)
    const needed = [digest, before?.digest]
    for (const { name, deleted } of await store.list())
      if (!deleted && !needed.includes(name)) await store.delete(name)
  }

  async #deltaFrom(before: Announcement, bytes: Buffer, shrunkBytes: number): Promise<Announcement['delta']> {
    const kept = await this.#package(before)
    if (kept === null) return null
    const delta = await makeDelta(kept, bytes)
    if (delta.length > Math.min(DELTA_BYTES_MAX, shrunkBytes / 2)) return null
    return { from: before.digest, bytes: delta }
  }

  /** The package of that announcement: from this disk, or as another manager has stored it. */
  async #package({ digest, bytes }: Announcement): Promise<Buffer | null> {
    const kept = await readFile(this.#file).catch(() => null)
    if (kept !== null && digestOf(kept) === digest) return kept
    const stored = await packageIn(this.#connection, this.#names.shared, digest)
    const whole = stored === null ? null : await grow(stored, bytes).catch(() => null)
    return whole !== null && digestOf(whole) === digest ? whole : null
  }

  async #keep(bytes: Buffer): Promise<void> {
    try {
      await writeFile(`${this.#file}.tmp`, bytes, { mode: 0o600 })
      await rename(`${this.#file}.tmp`, this.#file)
    } catch (error) {
      this.#log.warn('the shared part of the Snapshot cannot be kept', { error: error as Error })
    }
  }

  get #file(): string {
    return join(this.#options.folder, 'shared.package')
  }

  async #publish(name: string, message: Buffer, sent: Sent): Promise<void> {
    const js = jetstream(this.#connection.client, { timeout: ANSWER_MS })
    const expect = { lastSequence: sent.sequence }
    const publishing = js.publish(`${this.#names.parts}.${name}`, message, { expect })
    sent.sequence = (await this.#connection.whileUp(publishing)).seq
  }

  /** Proxies of deleted apps have heard of it. */
  async #forget(changes: readonly PartOfApp[]): Promise<void> {
    const { parts, partsStream } = this.#names
    const { streams } = await managerOf(this.#connection.client)
    for (const { app, definition, policy } of changes)
      if (definition === null && policy === null)
        await streams.purge(partsStream, { filter: partSubject(parts, app) })
  }

  #failed(error: Error): void {
    if (this.#isClosed) return
    this.#sent = null
    const isOvertaken = error instanceof JetStreamApiError && error.code === WRONG_LAST_SEQUENCE
    if (!isOvertaken && error.message !== this.#failure)
      this.#log.warn(
        'the parts of a Snapshot cannot be sent, so proxies of one app get whole Snapshots, or keep theirs; it is tried again. Compare the rights of the user with config/nats.conf',
        { error },
      )
    this.#failure = error.message
    this.#again(isOvertaken ? 0 : RETRY_MS)
  }

  #again(delayMs: number): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#retry = this.#isClosed ? null : setTimeout(() => this.#run(), delayMs).unref()
  }
}

interface Sent {
  /** Of the last message in the stream. */
  sequence: number
  readonly head: PartsHead | null
  /** By app; `null`: sent by another process. */
  readonly parts: ReadonlyMap<string, PartOfApp | null>
}

/** With an empty part for each app that is gone. */
function* changedParts(
  parts: ReadonlyMap<string, PartOfApp>,
  before: Sent['parts'],
  number: number,
): Generator<PartOfApp> {
  for (const part of parts.values()) {
    const known = before.get(part.app) ?? null
    const isSame = known?.policy === part.policy && isDeepStrictEqual(known.definition, part.definition)
    if (!isSame) yield part
  }
  for (const app of before.keys()) if (!parts.has(app)) yield emptyPart(app, number)
}

/** Equal for Snapshots that differ only by apps. */
function baseHash({
  number: _,
  hash: _hash,
  madeAtMs: _time,
  signatures,
  ...rest
}: SnapshotDocument): string {
  const compared = { ...rest, signatures: signatures && [signatures.hash, signatures.index.sha256] }
  return createHash('sha256').update(JSON.stringify(compared)).digest('hex')
}

/** `null`: none, or one that is not readable here, which is replaced. */
function headIn(message: Buffer | null): PartsHead | null {
  try {
    return message === null ? null : readHead(message)
  } catch {
    return null
  }
}

function announcementIn(message: Buffer | null): Announcement | null {
  try {
    return message === null ? null : readAnnouncement(message)
  } catch {
    return null
  }
}

const RETRY_MS = 2_000

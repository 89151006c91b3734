import { JetStreamApiError, jetstream } from '@nats-io/jetstream'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import { type Announcement, readAnnouncement, writeAnnouncement } from '../announcement.ts'
import type { JetStreamConnection } from './jetstream-connection.ts'
import { ANSWER_MS, managerOf, packagesIn, type StreamNames } from './jetstream-streams.ts'
import type { SnapshotDocument } from '../snapshot.ts'
import { makeDelta, shrink } from '../snapshot-delta.ts'
import { CLOCKS_APART_MS, type FollowerStatus, SnapshotFollower } from '../snapshot-follower.ts'
import type { SnapshotFile } from '../snapshot-file.ts'
import { digestOf, packSnapshot } from '../snapshot-package.ts'

export interface SnapshotLineOptions {
  /** The folder that keeps the newest Snapshot. */
  readonly folder: string
  /** Random delay before a full Snapshot is requested, so that not all proxies request it at once. */
  readonly spreadMs?: number
  /** See FollowerOptions. */
  readonly app?: string | null
  /** Interval of polling for a newer Snapshot whose announcement was lost. */
  readonly askMs?: number
}

/** Receives Snapshots over NATS: announcements go to all, and a process that missed one asks for it. */
export class SnapshotLine {
  readonly #connection: JetStreamConnection
  readonly #names: StreamNames
  readonly #follower: SnapshotFollower
  readonly #asking: NodeJS.Timeout
  #listener: (document: SnapshotDocument) => void = () => undefined
  #inUse: SnapshotDocument | null = null
  #isSubscribed = false
  #isAsking = false

  constructor(
    connection: JetStreamConnection,
    names: StreamNames,
    { askMs = ASK_MS, ...options }: SnapshotLineOptions,
    log: Log,
  ) {
    this.#connection = connection
    this.#names = names
    const whole = (digest: string) => packageIn(connection, names.packages, digest)
    const source = { announced: () => this.announced(), whole }
    const use = (document: SnapshotDocument) => {
      this.#inUse = document
      this.#listener(document)
    }
    this.#follower = new SnapshotFollower(source, options, use, log)
    connection.onUp(() => this.#up())
    this.#asking = setInterval(() => void this.#ask(), askMs * (0.8 + 0.4 * Math.random())).unref()
  }

  get status(): FollowerStatus {
    return this.#follower.status
  }

  restore(): Promise<boolean> {
    return this.#follower.restore()
  }

  /** See SnapshotFollower. */
  bootstrap(file: SnapshotFile): Promise<boolean> {
    return this.#follower.bootstrap(file)
  }

  /** Calls the listener with the newest Snapshot as soon as there is one. */
  listen(listener: (document: SnapshotDocument) => void): void {
    this.#listener = listener
    if (this.#inUse !== null) listener(this.#inUse)
  }

  /** The package of the Snapshot in use; `null`: unavailable. */
  kept(): Promise<Buffer | null> {
    return this.#follower.kept()
  }

  /** The last announcement. */
  announced(): Promise<Buffer | null> {
    return lastMessage(this.#connection, this.#names.snapshots, this.#names.snapshot)
  }

  async close(): Promise<void> {
    clearInterval(this.#asking)
    await this.#follower.close()
  }

  #up(): void {
    if (!this.#isSubscribed) {
      this.#isSubscribed = true
      this.#connection.client.subscribe(this.#names.announced, {
        callback: (error, message) => {
          if (error === null) this.#follower.take(Buffer.from(message.data))
        },
      })
    }
    void this.#ask()
  }

  async #ask(): Promise<void> {
    if (this.#isAsking || !this.#connection.isUp) return
    this.#isAsking = true
    await this.#follower.ask()
    this.#isAsking = false
  }
}

/** Announces the newest Snapshot it was given, until that succeeds or a newer one replaces it. */
export class SnapshotPress {
  readonly #connection: JetStreamConnection
  readonly #names: StreamNames
  readonly #line: SnapshotLine
  readonly #mayPublish: () => Promise<boolean>
  readonly #log: Log
  #newest: SnapshotDocument | null = null
  #running: Promise<void> | null = null
  #retry: NodeJS.Timeout | null = null
  #isStarted = false
  #isClosed = false
  #failure = ''
  /** Snapshots announced by this process. */
  count = 0

  constructor(
    connection: JetStreamConnection,
    names: StreamNames,
    line: SnapshotLine,
    mayPublish: () => Promise<boolean>,
    log: Log,
  ) {
    this.#connection = connection
    this.#names = names
    this.#line = line
    this.#mayPublish = mayPublish
    this.#log = log
  }

  publish(document: SnapshotDocument): void {
    this.#newest = document
    this.run()
  }

  /** Call this when the streams exist. */
  start(): void {
    this.#isStarted = true
    this.run()
  }

  /** Resumes pending announcements. */
  run(): void {
    if (!this.#isStarted || this.#isClosed || this.#newest === null || !this.#connection.isUp) return
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#running
  }

  async #run(): Promise<void> {
    while (this.#newest !== null && !this.#isClosed) {
      const document = this.#newest
      try {
        if (await this.#mayPublish()) await this.#announce(document)
        if (this.#newest === document) this.#newest = null
        this.#failure = ''
      } catch (error) {
        this.#failed(error as Error)
        return
      }
    }
  }

  /** Fails if another process has announced a Snapshot since the last one was read. */
  async #announce(document: SnapshotDocument): Promise<void> {
    const { client } = this.#connection
    const { direct } = await managerOf(client)
    const last = await direct.getMessage(this.#names.snapshots, { last_by_subj: this.#names.snapshot })
    const before = last === null ? null : usable(Buffer.from(last.data), Date.now())
    // An earlier publish succeeded but its answer was lost, or another process announced the same content.
    if (before !== null && before.hash === document.hash && before.number >= document.number) return
    // Without a usable announcement, the number must still be above the one that the proxies have.
    const beforeNumber = before?.number ?? this.#line.status.inUse?.number ?? 0
    const number = Math.max(document.number, beforeNumber + 1)
    const bytes = await packSnapshot({ ...document, number })
    const said = { number, hash: document.hash, madeAtMs: document.madeAtMs, digest: digestOf(bytes) }
    const whole = await shrink(bytes)
    const packages = await packagesIn(client, this.#names.packages)
    await packages.putBlob({ name: said.digest }, whole)
    const delta = await this.#deltaFrom(before, bytes, whole.length)
    const message = writeAnnouncement({ ...said, bytes: bytes.length, delta })
    const expect = { lastSubjectSequence: last?.seq ?? 0 }
    // If no answer comes, NATS may still have stored it, so its package stays.
    await jetstream(client, { timeout: ANSWER_MS }).publish(this.#names.snapshot, message, { expect })
    this.count++
    this.#log.info('a Snapshot was announced', {
      number,
      bytes: bytes.length,
      shrunk: whole.length,
      change: delta?.bytes.length ?? null,
    })
    if (before !== null) await this.#forgetAllBut([said.digest, before.digest])
  }

  /** `null`: the previous package is not available, or a delta would save little. */
  async #deltaFrom(
    before: Announcement | null,
    bytes: Buffer,
    shrunkBytes: number,
  ): Promise<Announcement['delta']> {
    const kept = before === null ? null : await this.#line.kept()
    if (before === null || kept === null || digestOf(kept) !== before.digest) return null
    const delta = await makeDelta(kept, bytes)
    if (delta.length > Math.min(DELTA_BYTES_MAX, shrunkBytes / 2)) return null
    return { from: before.digest, bytes: delta }
  }

  async #forgetAllBut(digests: readonly string[]): Promise<void> {
    const packages = await packagesIn(this.#connection.client, this.#names.packages)
    const others = (await packages.list()).filter(({ name, deleted }) => !deleted && !digests.includes(name))
    for (const { name } of others) await packages.delete(name)
  }

  #failed(error: Error): void {
    if (this.#isClosed) return
    const isOvertaken = error instanceof JetStreamApiError && error.code === WRONG_LAST_SEQUENCE
    if (!isOvertaken && error.message !== this.#failure)
      this.#log.warn('a Snapshot cannot be announced; it is tried again', { error })
    this.#failure = error.message
    this.#retry = setTimeout(() => this.run(), isOvertaken ? 0 : RETRY_MS)
  }
}

/** The last message on a subject of that stream; `null`: none. */
export async function lastMessage(
  connection: JetStreamConnection,
  stream: string,
  subject: string,
): Promise<Buffer | null> {
  const { direct } = await managerOf(connection.client)
  const asking = direct.getMessage(stream, { last_by_subj: subject })
  const message = await connection.whileUp(asking.catch(unanswered))
  return message === null ? null : Buffer.from(message.data)
}

/** A package in that Object Store; `null`: deleted. */
export async function packageIn(
  connection: JetStreamConnection,
  store: string,
  digest: string,
): Promise<Buffer | null> {
  const packages = await packagesIn(connection.client, store)
  const bytes = await connection.whileUp(packages.getBlob(digest))
  return bytes === null ? null : Buffer.from(bytes)
}

/** A missing stream does not answer. */
function unanswered(error: Error): never {
  if (error.name !== 'TimeoutError' && error.name !== 'NoRespondersError') throw error
  throw new Fault('BUS_SILENT', 'no manager has made a place for Snapshots, or NATS is slow', {
    cause: error,
  })
}

/**
 * `null`: the announcement is not readable here, or its number is far in the future, so that the numbers above
 * it could run out.
 */
function usable(message: Buffer, nowMs: number): Announcement | null {
  try {
    const announcement = readAnnouncement(message)
    return announcement.number <= nowMs + CLOCKS_APART_MS ? announcement : null
  } catch {
    return null
  }
}

/** Limits how long a lost announcement goes unnoticed. */
const ASK_MS = 60_000
const RETRY_MS = 2_000
export const WRONG_LAST_SEQUENCE = 10_071
/** A NATS message holds 1 MiB. */
export const DELTA_BYTES_MAX = 512 * 1024

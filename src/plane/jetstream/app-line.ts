import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Subscription } from '@nats-io/transport-node'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import { AppFollower } from '../app/app-follower.ts'
import type { SnapshotDocument } from '../snapshot.ts'
import type { SnapshotFile } from '../snapshot-file.ts'
import { type FollowerStatus, NEWEST_FILE, SnapshotFollower } from '../snapshot-follower.ts'
import type { JetStreamConnection } from './jetstream-connection.ts'
import { lastMessage, packageIn, type SnapshotLineOptions } from './jetstream-snapshots.ts'
import { partSubject, type StreamNames } from './jetstream-streams.ts'

/**
 * Receives the Snapshots of one app over NATS: only what all apps share, and the app's own part. If the managers are of a
 * version that sends no parts, it receives whole Snapshots until they do.
 */
export class AppLine {
  readonly #connection: JetStreamConnection
  readonly #names: StreamNames
  readonly #folder: string
  readonly #app: string
  readonly #log: Log
  readonly #parts: AppFollower
  readonly #whole: SnapshotFollower
  readonly #asking: NodeJS.Timeout
  #early: NodeJS.Timeout | null = null
  #listener: (document: SnapshotDocument) => void = () => undefined
  #inUse: SnapshotDocument | null = null
  #isSubscribed = false
  /** Whole Snapshots are followed; `null`: they are not. */
  #subscription: Subscription | null = null
  #isAsking = false
  #isClosed = false

  constructor(
    connection: JetStreamConnection,
    names: StreamNames,
    options: SnapshotLineOptions & { readonly app: string },
    log: Log,
  ) {
    const { askMs = ASK_MS, folder, app, ...rest } = options
    this.#connection = connection
    this.#names = names
    this.#folder = folder
    this.#app = app
    this.#log = log
    const last = (stream: string, subject: string) => lastMessage(connection, stream, subject)
    const ofParts = (subject: string) => last(names.partsStream, subject)
    const source = {
      head: () => ofParts(`${names.parts}.head`),
      part: () => ofParts(partSubject(names.parts, app)),
      base: {
        announced: () => ofParts(`${names.parts}.base`),
        whole: (digest: string) => packageIn(connection, names.shared, digest),
      },
    }
    const inParts = { ...rest, folder: join(folder, PARTS_FOLDER), app }
    this.#parts = new AppFollower(source, inParts, (document) => this.#useParts(document), log)
    const whole = {
      announced: () => last(names.snapshots, names.snapshot),
      whole: (digest: string) => packageIn(connection, names.packages, digest),
    }
    const use = (document: SnapshotDocument) => this.#use(document)
    this.#whole = new SnapshotFollower(whole, { ...rest, folder, app }, use, log)
    connection.onUp(() => this.#up())
    this.#asking = setInterval(() => void this.#ask(), askMs * (0.8 + 0.4 * Math.random())).unref()
  }

  get status(): FollowerStatus {
    const isWhole = this.#subscription !== null
    return { inUse: this.#inUse, refused: (isWhole ? this.#whole : this.#parts).status.refused }
  }

  /** Uses the Snapshot that was last in use; `false`: no copy exists. */
  async restore(): Promise<boolean> {
    return (await this.#parts.restore()) || this.#whole.restore()
  }

  /** See SnapshotFollower. */
  async bootstrap(file: SnapshotFile): Promise<boolean> {
    return file.document.number > (this.#inUse?.number ?? 0) && this.#whole.bootstrap(file)
  }

  /** Calls the listener with the newest Snapshot as soon as there is one. */
  listen(listener: (document: SnapshotDocument) => void): void {
    this.#listener = listener
    if (this.#inUse !== null) listener(this.#inUse)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#asking)
    if (this.#early !== null) clearTimeout(this.#early)
    await Promise.all([this.#parts.close(), this.#whole.close()])
  }

  #up(): void {
    if (!this.#isSubscribed) {
      this.#isSubscribed = true
      const { parted } = this.#names
      this.#subscribe(`${parted}.base`, (message) => this.#parts.takeBase(message))
      this.#subscribe(partSubject(parted, this.#app), (message) => this.#parts.takePart(message))
      this.#subscribe(`${parted}.head`, (message) => this.#parts.takeHead(message))
    }
    void this.#ask()
  }

  #subscribe(subject: string, take: (message: Buffer) => void): Subscription {
    return this.#connection.client.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) take(Buffer.from(message.data))
      },
    })
  }

  async #ask(): Promise<void> {
    if (this.#isAsking || !this.#connection.isUp || this.#isClosed) return
    this.#isAsking = true
    try {
      const hasParts = await this.#parts.ask()
      if (!hasParts) this.#missing()
      else if (this.#early !== null) this.#calm()
    } catch (error) {
      // NATS does not answer for a stream that is missing.
      const isSilent = (error as Fault).code === 'BUS_SILENT' && this.#parts.status.inUse === null
      if (isSilent || isUnavailable(error)) this.#missing()
    }
    if (this.#subscription !== null && this.#connection.isUp) await this.#whole.ask()
    this.#isAsking = false
  }

  /** Parts may be on their way: managers send them after the whole Snapshot. */
  #missing(): void {
    if (this.#subscription !== null || !this.#connection.isUp || this.#isClosed) return
    if (this.#early === null) {
      this.#early = setTimeout(() => void this.#ask(), EARLY_MS).unref()
      return
    }
    this.#calm()
    this.#log.info('the managers send no parts of Snapshots: whole ones are followed', { app: this.#app })
    this.#subscription = this.#subscribe(this.#names.announced, (message) => this.#whole.take(message))
  }

  #calm(): void {
    if (this.#early !== null) clearTimeout(this.#early)
    this.#early = null
  }

  #use(document: SnapshotDocument): void {
    if (document.number <= (this.#inUse?.number ?? 0)) return
    this.#inUse = document
    this.#listener(document)
  }

  #useParts(document: SnapshotDocument): void {
    // Whole Snapshots of a manager of an earlier version may be newer.
    if (document.number < (this.#inUse?.number ?? 0)) return
    this.#calm()
    this.#subscription?.unsubscribe()
    this.#subscription = null
    this.#use(document)
    void this.#forgetWhole()
  }

  /** The copy of whole Snapshots has the policies of other apps. */
  async #forgetWhole(): Promise<void> {
    await this.#whole.settled()
    await rm(join(this.#folder, NEWEST_FILE), { force: true }).catch((error: Error) =>
      this.#log.warn('an old copy of the Snapshot cannot be deleted', { error }),
    )
  }
}

/** No stream, or no right to read it: managers or NATS are set up as for an earlier version. */
function isUnavailable(error: unknown): boolean {
  const cause = error instanceof Fault ? (error.cause ?? error) : error
  return cause instanceof Error && UNAVAILABLE.has(cause.name)
}

const UNAVAILABLE: ReadonlySet<string> = new Set(['NoRespondersError', 'PermissionViolationError'])
/** In the folder of whole Snapshots. */
export const PARTS_FOLDER = 'app'
/** Limits how long a lost message goes unnoticed. */
const ASK_MS = 60_000
const EARLY_MS = 2_000

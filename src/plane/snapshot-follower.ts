import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../shared/fault.ts'
import type { Log } from '../shared/log.ts'
import { type Announcement, readAnnouncement } from './announcement.ts'
import { applyDelta, freeBytes, grow } from './snapshot-delta.ts'
import type { SnapshotFile } from './snapshot-file.ts'
import { digestOf, unpackSnapshot } from './snapshot-package.ts'
import { keepIndexFiles } from './signature-set.ts'
import { parseParts, type SnapshotDocument, snapshotOfApp } from './snapshot.ts'
import { AppPolicyReader, checkPolicies } from './snapshot-policies.ts'

/** Where Snapshots come from. */
export interface SnapshotSource {
  /** The last announcement; `null`: none yet. */
  announced(): Promise<Buffer | null>
  /** A stored package; `null`: deleted. */
  whole(digest: string): Promise<Buffer | null>
}

export interface FollowerStatus {
  /** The Snapshot in use; `null`: none yet. */
  readonly inUse: SnapshotDocument | null
  /** A newer Snapshot that this version cannot use. */
  readonly refused: { readonly number: number; readonly why: string } | null
}

export interface FollowerOptions {
  /** The folder that keeps the newest Snapshot. */
  readonly folder: string
  /** Random delay before a full Snapshot is requested, so that not all proxies request it at once. */
  readonly spreadMs?: number
  /** The only app whose parts of a Snapshot are read. `null`: all are. */
  readonly app?: string | null
}

/**
 * Follows announcements and uses the newest Snapshot: through a delta if possible, else as a whole. Keeps it
 * on disk for the next start. If a Snapshot is unusable, the previous one stays in use.
 */
export class SnapshotFollower {
  readonly #source: SnapshotSource
  readonly #folder: string
  readonly #spreadMs: number
  readonly #app: string | null
  readonly #appPolicies: AppPolicyReader
  readonly #use: (document: SnapshotDocument) => void
  readonly #log: Log
  readonly #stop = new AbortController()
  #inUse: SnapshotDocument | null = null
  /** The package of the Snapshot in use; `null`: not reliably available. */
  #package: Package | null = null
  #keeping: Promise<void> = Promise.resolve()
  #refused: FollowerStatus['refused'] = null
  #newest: Announcement | null = null
  /** The number of an announced Snapshot that could not be fetched; `null`: none. */
  #missing: number | null = null
  #running: Promise<void> | null = null
  #failure = ''

  constructor(
    source: SnapshotSource,
    { folder, spreadMs = SPREAD_MS, app = null }: FollowerOptions,
    use: (document: SnapshotDocument) => void,
    log: Log,
  ) {
    this.#source = source
    this.#folder = folder
    this.#spreadMs = spreadMs
    this.#app = app
    this.#appPolicies = new AppPolicyReader(app)
    this.#use = use
    this.#log = log
  }

  get status(): FollowerStatus {
    return { inUse: this.#inUse, refused: this.#refused }
  }

  /** Uses the Snapshot that was last in use; `false`: no copy exists. Never rejects. */
  async restore(): Promise<boolean> {
    try {
      const bytes = await this.#onDisk()
      if (bytes === null) return false
      await this.#put(bytes)
      this.#package = packageOf(bytes, digestOf(bytes))
      return true
    } catch (error) {
      const file = join(this.#folder, NEWEST_FILE)
      this.#log.warn('the Snapshot on disk cannot be used', { file, error: error as Error })
      return false
    }
  }

  /**
   * Uses the Snapshot in a file if it is newer than the one in use; `false`: it is not. Stores no copy: the
   * next start reads the file again. Throws a Fault if the Snapshot is invalid.
   */
  async bootstrap(file: SnapshotFile): Promise<boolean> {
    const { document, digest, package: bytes } = file
    if (document.number <= (this.#inUse?.number ?? 0)) return false
    // With a number in the future, no Snapshot of the fleet would ever be newer.
    if (document.number > Date.now() + CLOCKS_APART_MS)
      throw new Fault(
        'SNAPSHOT_INVALID',
        `the number ${document.number} is a time in the future: set the clock`,
      )
    try {
      await this.#put(bytes)
    } catch (error) {
      if (document.number <= (this.#inUse?.number ?? 0)) return false // the bus has brought a newer one
      throw error
    }
    // Large packages are read from the copy on disk, and this one has no copy.
    this.#package = bytes.length <= MEMORY_BYTES_MAX ? { digest, bytes } : null
    return true
  }

  /** The package of the Snapshot in use; `null`: not available. */
  async kept(): Promise<Buffer | null> {
    if (this.#package === null) return null
    if (this.#package.bytes !== null) return this.#package.bytes
    await this.#keeping
    return this.#onDisk()
  }

  /** Handles an announcement. */
  take(message: Buffer): void {
    try {
      const announcement = readAnnouncement(message)
      const newest = this.#newest?.number ?? 0
      // One that could not be fetched or used must not hide a later one with a lower number.
      const isUseless = newest === this.#missing || newest === this.#refused?.number
      if (announcement.number > newest || isUseless) this.#newest = announcement
    } catch (error) {
      this.#say(error as Error)
      return
    }
    this.#run()
  }

  /** Requests and handles the last announcement; never rejects. */
  async ask(): Promise<void> {
    try {
      const message = await this.#source.announced()
      if (message !== null) this.take(message)
    } catch (error) {
      this.#say(error as Error)
    }
    this.#run()
    await this.#running
  }

  /** Resolves when nothing is in progress. */
  async settled(): Promise<void> {
    await this.#running
    await this.#keeping
  }

  /** Stops following; resolves when nothing is in progress. */
  close(): Promise<void> {
    this.#stop.abort()
    return this.settled()
  }

  #run(): void {
    if (this.#stop.signal.aborted || !this.#isBehind()) return
    this.#running ??= this.#catchUp().finally(() => {
      this.#running = null
    })
  }

  #isBehind(): boolean {
    const number = this.#newest?.number ?? 0
    return number > (this.#inUse?.number ?? 0) && number !== this.#refused?.number
  }

  async #catchUp(): Promise<void> {
    while (this.#isBehind() && !this.#stop.signal.aborted) {
      const announcement = this.#newest!
      try {
        await this.#get(announcement)
        this.#refused = null
        this.#missing = null
        this.#failure = ''
      } catch (error) {
        this.#say(error as Error)
        if (!isRefusal(error)) {
          this.#missing = announcement.number
          // Unless a later one was announced meanwhile, it is requested again later.
          if (this.#newest === announcement) return
          continue
        }
        this.#refused = { number: announcement.number, why: (error as Error).message }
      }
    }
  }

  async #get(announcement: Announcement): Promise<void> {
    const bytes = (await this.#changed(announcement)) ?? (await this.#whole(announcement))
    if (bytes === null || !this.#isBehind()) return
    await this.#put(bytes)
    const { digest } = announcement
    this.#package = packageOf(bytes, digest)
    this.#keeping = this.#keeping.then(() => this.#keep(bytes, digest)) // do not wait for the disk
  }

  /** `null`: there is no delta for the package here, or applying it failed. */
  async #changed({ delta, digest, bytes }: Announcement): Promise<Buffer | null> {
    if (delta === null || delta.from !== this.#package?.digest) return null
    const isOnDisk = this.#package.bytes === null
    try {
      const before = await this.kept()
      if (before === null) return null
      const after = await applyDelta(before, delta.bytes, bytes)
      if (isOnDisk) freeBytes(before)
      return digestOf(after) === digest ? after : null
    } catch (error) {
      this.#log.warn('a change of the Snapshot cannot be used: all of it is asked for', {
        error: error as Error,
      })
      return null
    }
  }

  /** `null`: a newer announcement came first. */
  async #whole(announcement: Announcement): Promise<Buffer | null> {
    const { digest, bytes } = announcement
    if (this.#inUse !== null) {
      const { signal } = this.#stop
      await wait(Math.random() * this.#spreadMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
    if (this.#newest !== announcement || this.#stop.signal.aborted) return null
    const shrunk = await this.#source.whole(digest)
    if (shrunk === null) throw new Fault('BUS_INCOMPLETE', 'a Snapshot that was announced is not there')
    const whole = await grow(shrunk, bytes)
    if (digestOf(whole) === digest) return whole
    throw new Fault('BUS_DAMAGED', 'a Snapshot is not what was announced')
  }

  async #put(bytes: Buffer): Promise<void> {
    const document = await this.#unpacked(bytes)
    parseParts(document)
    // Reject it before the workers see it: a policy may need a later version.
    await checkPolicies(document, this.#inUse)
    if (document.number <= (this.#inUse?.number ?? 0))
      throw new Fault('SNAPSHOT_INVALID', 'a Snapshot has a number that was there before')
    const before = this.#inUse?.signatures?.hash ?? null
    this.#inUse = document
    this.#use(document)
    const { signatures } = document
    if (signatures !== null) await keepIndexFiles([signatures.hash, before], this.#folder)
  }

  /** Keeps the parts of the Snapshot in use that did not change: what is replaced by its like becomes garbage of the old generation. */
  async #unpacked(bytes: Buffer): Promise<SnapshotDocument> {
    const inUse = this.#inUse
    const options = { known: inUse?.signatures ?? null, appPolicies: this.#appPolicies }
    const document = await unpackSnapshot(bytes, this.#folder, inUse === null, options)
    return snapshotOfApp(document, this.#app)
  }

  async #onDisk(): Promise<Buffer | null> {
    try {
      return await readFile(join(this.#folder, NEWEST_FILE))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  /** Writes atomically: a reader finds the old or the new file. */
  async #keep(bytes: Buffer, digest: string): Promise<void> {
    if (this.#package?.digest !== digest) return // a newer one has replaced it
    const isOnlyOnDisk = this.#package.bytes === null
    const unfinished = join(this.#folder, `${NEWEST_FILE}.${randomUUID()}.tmp`)
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 })
      await writeFile(unfinished, bytes, { mode: 0o600, flush: true })
      await rename(unfinished, join(this.#folder, NEWEST_FILE))
      if (isOnlyOnDisk) freeBytes(bytes)
    } catch (error) {
      if (this.#package?.digest === digest && this.#package.bytes === null) this.#package = null
      await rm(unfinished, { force: true }).catch(() => undefined)
      this.#log.warn('the Snapshot cannot be kept for the next start', { error: error as Error })
    }
  }

  /** Logs the same failure once, until something succeeds. */
  #say(error: Error): void {
    if (error.message === this.#failure || this.#stop.signal.aborted) return
    this.#failure = error.message
    this.#log.warn('a newer Snapshot is unavailable; the current one stays in use', { error })
  }
}

interface Package {
  readonly digest: string
  /** `null`: a large package, on disk only. */
  readonly bytes: Buffer | null
}

function packageOf(bytes: Buffer, digest: string): Package {
  return { digest, bytes: bytes.length <= MEMORY_BYTES_MAX ? bytes : null }
}

/** Receiving the same Snapshot again would not help. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Fault && (error.code === 'SNAPSHOT_INVALID' || error.code === 'POLICY_INVALID')
}

/** In the folder of the follower. */
export const NEWEST_FILE = 'newest.snapshot'
/** A package with only the bundled signatures has half a MiB. */
const MEMORY_BYTES_MAX = 1024 ** 2
const SPREAD_MS = 1_000
/** Numbers are timestamps in milliseconds. The clocks of two machines may differ by this much. */
export const CLOCKS_APART_MS = 86_400_000

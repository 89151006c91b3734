import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../shared/fault.ts'
import type { Log } from '../shared/log.ts'
import { type Announcement, readAnnouncement } from './announcement.ts'
import { applyDelta, grow } from './snapshot-delta.ts'
import type { SnapshotFile } from './snapshot-file.ts'
import { digestOf, unpackSnapshot } from './snapshot-package.ts'
import { keepIndexFiles } from './signature-set.ts'
import { parseSnapshot, type SnapshotDocument } from './snapshot.ts'

/** Where Snapshots come from. */
export interface SnapshotSource {
  /** What was announced last; `null`: nothing was yet. */
  announced(): Promise<Buffer | null>
  /** A package as it is kept; `null`: it is not there any more. */
  whole(digest: string): Promise<Buffer | null>
}

export interface FollowerStatus {
  /** The one in use; `null`: none yet. */
  readonly inUse: SnapshotDocument | null
  /** Newer, and no good for this version. */
  readonly refused: { readonly number: number; readonly why: string } | null
}

export interface FollowerOptions {
  /** Where the newest is kept. */
  readonly folder: string
  /** Who needs all of a Snapshot does not ask for it at once, as many others may, too. */
  readonly spreadMs?: number
}

/**
 * Has the newest Snapshot of those that are announced, by way of the change from the one before where that can be had,
 * and keeps it on disk for the next start. One that cannot be used leaves the one before in use.
 */
export class SnapshotFollower {
  readonly #source: SnapshotSource
  readonly #folder: string
  readonly #spreadMs: number
  readonly #use: (document: SnapshotDocument) => void
  readonly #log: Log
  readonly #stop = new AbortController()
  #inUse: SnapshotDocument | null = null
  /** The package of the one in use; `null`: there is none that can be relied upon. */
  #package: Package | null = null
  #keeping: Promise<void> = Promise.resolve()
  #refused: FollowerStatus['refused'] = null
  #newest: Announcement | null = null
  #running: Promise<void> | null = null
  #failure = ''

  constructor(
    source: SnapshotSource,
    { folder, spreadMs = SPREAD_MS }: FollowerOptions,
    use: (document: SnapshotDocument) => void,
    log: Log,
  ) {
    this.#source = source
    this.#folder = folder
    this.#spreadMs = spreadMs
    this.#use = use
    this.#log = log
  }

  get status(): FollowerStatus {
    return { inUse: this.#inUse, refused: this.#refused }
  }

  /** Takes what was in use last into use again; `false`: there is none. Never rejects. */
  async restore(): Promise<boolean> {
    try {
      const bytes = await this.#onDisk()
      if (bytes === null) return false
      await this.#put(bytes)
      this.#package = packageOf(bytes, digestOf(bytes))
      return true
    } catch (error) {
      this.#log.warn('the Snapshot on disk cannot be used', { error: error as Error })
      return false
    }
  }

  /**
   * Takes the Snapshot of a file into use if it is newer than the one in use; `false`: it is not. No copy is kept: the
   * next start reads the file again. Throws a Fault if it is invalid.
   */
  async bootstrap(file: SnapshotFile): Promise<boolean> {
    const { document, digest, package: bytes } = file
    if (document.number <= (this.#inUse?.number ?? 0)) return false
    // No Snapshot of the fleet would ever be newer.
    if (document.number > Date.now() + CLOCKS_APART_MS)
      throw new Fault(
        'SNAPSHOT_INVALID',
        `the number ${document.number} is a time in the future: set the clock`,
      )
    await this.#put(bytes)
    // A large package is read from the copy on disk, and there is none of this one.
    this.#package = bytes.length <= MEMORY_BYTES_MAX ? { digest, bytes } : null
    return true
  }

  /** The package of the one in use; `null`: it could not be kept. */
  async kept(): Promise<Buffer | null> {
    if (this.#package === null) return null
    if (this.#package.bytes !== null) return this.#package.bytes
    await this.#keeping
    return this.#onDisk()
  }

  /** Somebody has announced a Snapshot. */
  take(message: Buffer): void {
    try {
      const announcement = readAnnouncement(message)
      if (announcement.number > (this.#newest?.number ?? 0)) this.#newest = announcement
    } catch (error) {
      this.#say(error as Error)
      return
    }
    this.#run()
  }

  /** Asks for what was announced last, and takes it; never rejects. */
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

  /** Nothing is taken any more; resolves when nothing is under way. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#running
    await this.#keeping
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
        this.#failure = ''
      } catch (error) {
        this.#say(error as Error)
        if (!isRefusal(error)) return // it is asked for again
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
    this.#keeping = this.#keeping.then(() => this.#keep(bytes, digest)) // nobody waits for the disk
  }

  /** `null`: what was changed is not here, or no longer whole. */
  async #changed({ delta, digest, bytes }: Announcement): Promise<Buffer | null> {
    if (delta === null || delta.from !== this.#package?.digest) return null
    try {
      const before = await this.kept()
      const after = before === null ? null : await applyDelta(before, delta.bytes, bytes)
      return after !== null && digestOf(after) === digest ? after : null
    } catch (error) {
      this.#log.warn('a change of the Snapshot cannot be used: all of it is asked for', {
        error: error as Error,
      })
      return null
    }
  }

  /** `null`: there is a newer one meanwhile. */
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
    const before = this.#inUse?.signatures?.hash ?? null
    const document = await unpackSnapshot(bytes, this.#folder, this.#inUse === null)
    if (document.number <= (this.#inUse?.number ?? 0))
      throw new Fault('SNAPSHOT_INVALID', 'a Snapshot has a number that was there before')
    parseSnapshot(document) // before anybody else has to: its policy may be of a later version
    this.#inUse = document
    this.#use(document)
    const { signatures } = document
    if (signatures !== null) await keepIndexFiles([signatures.hash, before], this.#folder)
  }

  async #onDisk(): Promise<Buffer | null> {
    try {
      return await readFile(join(this.#folder, NEWEST_FILE))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  /** Whoever reads it finds the one before or all of this one. */
  async #keep(bytes: Buffer, digest: string): Promise<void> {
    if (this.#package?.digest !== digest) return // there is a newer one by now
    const unfinished = join(this.#folder, `${NEWEST_FILE}.${randomUUID()}.tmp`)
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 })
      await writeFile(unfinished, bytes, { mode: 0o600, flush: true })
      await rename(unfinished, join(this.#folder, NEWEST_FILE))
    } catch (error) {
      if (this.#package?.digest === digest && this.#package.bytes === null) this.#package = null
      await rm(unfinished, { force: true }).catch(() => undefined)
      this.#log.warn('the Snapshot cannot be kept for the next start', { error: error as Error })
    }
  }

  /** The same once, until something has gone well. */
  #say(error: Error): void {
    if (error.message === this.#failure || this.#stop.signal.aborted) return
    this.#failure = error.message
    this.#log.warn('a newer Snapshot cannot be had; the one in use stays', { error })
  }
}

interface Package {
  readonly digest: string
  /** `null`: a large one, which is on disk only. */
  readonly bytes: Buffer | null
}

function packageOf(bytes: Buffer, digest: string): Package {
  return { digest, bytes: bytes.length <= MEMORY_BYTES_MAX ? bytes : null }
}

/** It would be no better if it came again. */
function isRefusal(error: unknown): boolean {
  return error instanceof Fault && (error.code === 'SNAPSHOT_INVALID' || error.code === 'POLICY_INVALID')
}

/** In the folder of the follower. */
export const NEWEST_FILE = 'newest.snapshot'
/** All that comes with Gatehouse is half a MiB. */
const MEMORY_BYTES_MAX = 4 * 1024 ** 2
const SPREAD_MS = 1_000
/** Numbers are times of day in milliseconds; clocks of two machines may differ by this. */
const CLOCKS_APART_MS = 86_400_000

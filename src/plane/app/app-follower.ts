import { join } from 'node:path'
import type { Log } from '../../shared/log.ts'
import type { SnapshotDocument } from '../snapshot.ts'
import {
  type FollowerOptions,
  type FollowerStatus,
  isRefusal,
  SnapshotFollower,
  type SnapshotSource,
} from '../snapshot-follower.ts'
import { type PartOfApp, composed, emptyPart, type PartsHead, readHead, readPart } from './app-part.ts'
import { readPartFile, writePartFile } from './part-file.ts'

/** Where a proxy of one app gets its Snapshots. */
export interface AppSource {
  /** The newest head; `null`: no manager sends Snapshots in parts. */
  head(): Promise<Buffer | null>
  /** The newest part of the app; `null`: the app is not defined and has no policy. */
  part(): Promise<Buffer | null>
  /** What all apps share. */
  readonly base: SnapshotSource
}

export interface AppFollowerOptions extends Pick<FollowerOptions, 'spreadMs'> {
  /** The folder that keeps the newest parts. */
  readonly folder: string
  readonly app: string
}

/**
 * Follows the parts of Snapshots that a proxy of one app needs: what all apps share, and its own. They arrive before
 * the head that belongs to them, and the head puts them in use together.
 */
export class AppFollower {
  readonly #source: AppSource
  readonly #file: string
  readonly #app: string
  readonly #base: SnapshotFollower
  readonly #use: (document: SnapshotDocument) => void
  readonly #log: Log
  #baseInUse: SnapshotDocument | null = null
  #part: PartOfApp | null = null
  #head: PartsHead | null = null
  #inUse: SnapshotDocument | null = null
  /** A part that this version cannot use. */
  #refused: FollowerStatus['refused'] = null
  /** What the copy on disk has. */
  #kept = ''
  /** Messages are handled one after the other. */
  #work: Promise<void> = Promise.resolve()
  #keeping: Promise<void> = Promise.resolve()
  #failure = ''
  #isClosed = false

  constructor(
    source: AppSource,
    { folder, app, ...options }: AppFollowerOptions,
    use: (document: SnapshotDocument) => void,
    log: Log,
  ) {
    this.#source = source
    this.#file = join(folder, PART_FILE)
    this.#app = app
    this.#use = use
    this.#log = log
    const useBase = (document: SnapshotDocument) => {
      this.#baseInUse = document
      this.#commit()
    }
    this.#base = new SnapshotFollower(source.base, { ...options, folder, app }, useBase, log)
  }

  get status(): FollowerStatus {
    return { inUse: this.#inUse, refused: this.#refused ?? this.#base.status.refused }
  }

  /** Uses the parts that were last in use; `false`: no copy of this app exists. Never rejects. */
  async restore(): Promise<boolean> {
    try {
      const kept = await readPartFile(this.#file, this.#app)
      if (kept === null) return false
      const { head, part } = kept
      this.#kept = keyOf(head, part)
      this.#head = head
      this.#part = part
      if (await this.#base.restore()) return this.#inUse !== null
    } catch (error) {
      this.#log.warn('the Snapshot on disk cannot be used', { file: this.#file, error: error as Error })
    }
    this.#head = null
    this.#part = null
    return false
  }

  /** Handles an announcement of what all apps share. */
  takeBase(message: Buffer): void {
    this.#base.take(message)
  }

  /** Handles a changed part of the app. */
  takePart(message: Buffer): void {
    this.#then(() => this.#read(message))
  }

  /** Handles a head. If a message before it was missed, asks for everything. */
  takeHead(message: Buffer): void {
    this.#then(async () => {
      const head = readHead(message)
      if (head.number <= (this.#head?.number ?? 0)) return
      if (this.#part !== null && head.before === this.#head?.number) this.#useHead(head)
      else void this.ask().catch((error: Error) => this.#say(error))
    })
  }

  /** Requests all parts. `false`: no manager sends parts. Rejects if the source does not answer. */
  async ask(): Promise<boolean> {
    const message = await this.#source.head()
    if (message === null) return false
    const part = await this.#source.part()
    this.#then(async () => {
      const head = readHead(message)
      if (part === null) this.#put(emptyPart(this.#app, head.number))
      else await this.#read(part)
      this.#useHead(head)
    })
    await this.#work
    // Not awaited: large signatures take a while.
    void this.#base.ask()
    return true
  }

  /** Stops following; resolves when nothing is in progress. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#base.close()
    await this.#work
    await this.#keeping
  }

  async #read(message: Buffer): Promise<void> {
    try {
      this.#put(await readPart(message, this.#app))
    } catch (error) {
      if (!isRefusal(error)) throw error
      this.#refused = { number: this.#head?.number ?? 0, why: (error as Error).message }
      this.#say(error as Error)
    }
  }

  #put(part: PartOfApp): void {
    this.#refused = null
    // What was asked for may be older than what came meanwhile.
    if (part.number >= (this.#part?.number ?? 0)) this.#part = part
  }

  #useHead(head: PartsHead): void {
    if (head.number > (this.#head?.number ?? 0)) this.#head = head
    if (this.#refused !== null) this.#refused = { ...this.#refused, number: this.#head!.number }
    this.#commit()
  }

  /** While one of the parts is missing or unusable, the Snapshot before stays in use. */
  #commit(): void {
    const [base, head, part] = [this.#baseInUse, this.#head, this.#part]
    if (base === null || head === null || part === null || this.#refused !== null || this.#isClosed) return
    if (base.number < head.base.number || head.number <= (this.#inUse?.number ?? 0)) return
    this.#inUse = composed(base, head, part)
    this.#failure = ''
    this.#use(this.#inUse)
    this.#keep(head, part)
  }

  /** The changes of other apps write nothing. */
  #keep(head: PartsHead, part: PartOfApp): void {
    const key = keyOf(head, part)
    if (key === this.#kept) return
    this.#kept = key
    this.#keeping = this.#keeping
      .then(() => writePartFile(this.#file, { head, part }))
      .catch((error: Error) => {
        this.#kept = ''
        this.#log.warn('the Snapshot cannot be kept for the next start', { error })
      })
  }

  #then(work: () => Promise<unknown>): void {
    this.#work = this.#work.then(work).then(
      () => undefined,
      (error: Error) => this.#say(error),
    )
  }

  /** Logs the same failure once, until a Snapshot is in use. */
  #say(error: Error): void {
    if (error.message === this.#failure || this.#isClosed) return
    this.#failure = error.message
    this.#log.warn('a newer Snapshot is unavailable; the current one stays in use', { error })
  }
}

function keyOf({ base }: PartsHead, { number }: PartOfApp): string {
  return `${base.number} ${number}`
}

/** In the folder of the follower, beside the copy of what all apps share. */
export const PART_FILE = 'app.part'

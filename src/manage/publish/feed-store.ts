import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import { type FeedFacts, type FeedKey, FeedFault } from '../../plane/feed.ts'
import { FeedOpener } from './feed-opener.ts'

/** What is needed to verify a feed. */
export interface FeedTrust {
  readonly name: string
  readonly keys: readonly FeedKey[]
}

interface FeedInUse {
  readonly feed: FeedFacts | null
  /** No newer version is used; `null`: not pinned. */
  readonly pin: number | null
}

/** What was loaded of each feed, by name. */
export type LoadedFeeds = ReadonlyMap<string, FeedInUse>

/**
 * The accepted feeds, in a folder. Each file `NAME@VERSION.json` holds the signed envelope, for the last few
 * versions of each feed. The newest version is in use. If there is a `NAME@pin.json`, no version above the
 * one that it names is used. Feed names contain no `@`.
 *
 * The folder is trusted no more than the network: each file is verified when it is read.
 */
export class FeedStore {
  readonly folder: string
  readonly feeds: readonly FeedTrust[]
  readonly opener: FeedOpener
  readonly #log: Log
  /** The last error of each file, so that it is logged once. */
  readonly #said = new Map<string, string>()
  #inUse: LoadedFeeds = new Map()

  constructor(folder: string, feeds: readonly FeedTrust[], log: Log, opener = new FeedOpener()) {
    this.folder = folder
    this.feeds = feeds
    this.opener = opener
    this.#log = log
  }

  /** The version to use of each feed. Invalid files are logged and skipped. */
  async load(): Promise<LoadedFeeds> {
    const loaded = new Map<string, FeedInUse>()
    for (const trust of this.feeds) loaded.set(trust.name, await this.#load(trust))
    return loaded
  }

  /** Call it when requests are judged with what was loaded. Compiling takes seconds on a busy machine. */
  use(loaded: LoadedFeeds): void {
    this.#inUse = loaded
  }

  /** As of the last `use`. */
  inUse(name: string): FeedInUse {
    return this.#inUse.get(name) ?? NOTHING
  }

  /** The files that `load` reads. The first name stands for the folder itself. */
  async files(): Promise<readonly string[]> {
    const names = await this.#names()
    const own = names.filter((name) => this.feeds.some((feed) => name.startsWith(`${feed.name}@`)))
    return [`${this.folder}/.`, ...own.sort().map((name) => join(this.folder, name))]
  }

  /** The newest version in the folder that can be verified, whatever the pin. */
  async newest(trust: FeedTrust): Promise<FeedFacts | null> {
    return this.#newestOf(trust, Number.POSITIVE_INFINITY)
  }

  /** All versions in the folder, newest first. */
  async versions(name: string): Promise<readonly number[]> {
    const names = await this.#names()
    const found = names.flatMap((file) => {
      const version = file.startsWith(`${name}@`) ? VERSION_FILE.exec(file.slice(name.length)) : null
      return version === null ? [] : [Number(version[1])]
    })
    return found.sort((a, b) => b - a)
  }

  /** Throws a FeedFault if the version is missing or cannot be verified. */
  async read(trust: FeedTrust, version: number): Promise<FeedFacts> {
    const envelope = await this.#bytes(this.#file(trust.name, version))
    const feed = await this.opener.open(envelope, trust.name, trust.keys)
    if (feed.version === version) return feed
    throw new FeedFault('content', `the file of version ${version} has version ${feed.version}`)
  }

  /** Writes the file atomically and durably. */
  async keep({ name, version }: FeedFacts, envelope: Uint8Array): Promise<void> {
    const file = this.#file(name, version)
    try {
      const before = await readFile(file).catch(() => null)
      if (before?.equals(envelope)) return
      await this.#write(file, envelope)
      await this.#prune(name)
    } catch (error) {
      throw storageFault(error, this.folder)
    }
  }

  async pin(name: string): Promise<number | null> {
    try {
      const value: unknown = JSON.parse((await readFile(this.#pinFile(name))).toString('utf8'))
      const version = (value as { version?: unknown } | null)?.version
      if (Number.isSafeInteger(version) && (version as number) > 0) return version as number
      throw new Fault('FEED_PIN_INVALID', 'it holds no version')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  async setPin(name: string, version: number | null): Promise<void> {
    const file = this.#pinFile(name)
    try {
      if (version === null) await rm(file, { force: true })
      else await this.#write(file, Buffer.from(`${JSON.stringify({ version })}\n`))
    } catch (error) {
      throw storageFault(error, this.folder)
    }
  }

  async #load(trust: FeedTrust): Promise<FeedInUse> {
    const pin = await this.#pinOrNone(trust.name)
    const feed = await this.#newestOf(trust, pin ?? Number.POSITIVE_INFINITY)
    return { feed, pin }
  }

  /** An unreadable pin must not prevent the start or the use of signatures. */
  async #pinOrNone(name: string): Promise<number | null> {
    const file = this.#pinFile(name)
    try {
      const pin = await this.pin(name)
      this.#said.delete(file)
      return pin
    } catch (error) {
      this.#say(file, 'a pin of a feed cannot be read, and none is in force', error)
      return null
    }
  }

  async #newestOf(trust: FeedTrust, versionMax: number): Promise<FeedFacts | null> {
    for (const version of await this.versions(trust.name)) {
      if (version > versionMax) continue
      const file = this.#file(trust.name, version)
      try {
        const feed = await this.read(trust, version)
        this.#said.delete(file)
        return feed
      } catch (error) {
        this.#say(file, 'a stored feed is invalid and is ignored', error)
      }
    }
    return null
  }

  async #names(): Promise<readonly string[]> {
    try {
      return await readdir(this.folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw storageFault(error, this.folder)
    }
  }

  async #bytes(file: string): Promise<Buffer> {
    try {
      if ((await stat(file)).size > STORED_BYTES_MAX)
        throw new FeedFault('too-large', `${file} is larger than ${STORED_BYTES_MAX} bytes`)
      return await readFile(file)
    } catch (error) {
      throw error instanceof FeedFault ? error : storageFault(error, file)
    }
  }

  async #write(file: string, bytes: Uint8Array): Promise<void> {
    await mkdir(this.folder, { recursive: true })
    // Starts with a dot, so it cannot be a feed file.
    const draft = join(this.folder, `.${randomBytes(6).toString('hex')}`)
    try {
      const handle = await open(draft, 'wx')
      try {
        await handle.writeFile(bytes)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(draft, file)
    } catch (error) {
      await rm(draft, { force: true })
      throw error
    }
  }

  /** Keeps the pinned version. If it is missing, keeps the newest one below it, which is in use instead. */
  async #prune(name: string): Promise<void> {
    const pin = await this.#pinOrNone(name)
    const versions = await this.versions(name)
    const pinned = versions.find((version) => version <= (pin ?? 0))
    for (const version of versions.slice(VERSIONS_KEPT)) {
      if (version !== pinned) await rm(this.#file(name, version), { force: true })
    }
  }

  #file(name: string, version: number): string {
    return join(this.folder, `${name}@${version}.json`)
  }

  #pinFile(name: string): string {
    return join(this.folder, `${name}@pin.json`)
  }

  #say(file: string, message: string, error: unknown): void {
    if (!(error instanceof Error)) throw error
    if (this.#said.get(file) === error.message) return
    this.#said.set(file, error.message)
    this.#log.warn(message, { file, problems: error.message.split('\n').slice(0, PROBLEMS_SAID_MAX) })
  }
}

/** The folder of the feeds inside the data folder. */
export function feedFolder(dataFolder: string): string {
  return join(dataFolder, 'feeds')
}

function storageFault(error: unknown, where: string): FeedFault {
  const { code, message } = error as NodeJS.ErrnoException
  return new FeedFault('storage', `${where} cannot be read or written (${code ?? message})`, { cause: error })
}

const NOTHING: FeedInUse = { feed: null, pin: null }
const VERSION_FILE = /^@([1-9]\d{0,15})\.json$/
const VERSIONS_KEPT = 5
/** The largest size that `bytes_max` allows. */
const STORED_BYTES_MAX = 64 * 1024 * 1024
const PROBLEMS_SAID_MAX = 10

import { createHash } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { Fault } from '../shared/fault.ts'
import type { Log } from '../shared/log.ts'
import type { Metrics, Sample } from '../shared/metrics.ts'

/** Something that is loaded from files, and anew when they change. */
export interface Part<Value> {
  /** What it is called in logs and metrics: `certificates`. */
  readonly what: string
  /** All the files that `load` reads, in an order that stays. */
  files(): Promise<readonly string[]>
  /** Throws a Fault when they are no good. */
  load(): Promise<Value>
  /** Puts it in the place of the one before. */
  use(value: Value): void
}

/**
 * Keeps one part up to date. What is loaded replaces what was there whole, or not at all: a bad file leaves the old one
 * at work, and is said in the log and in the metrics, once.
 */
export class Reloader<Value> {
  readonly #part: Part<Value>
  readonly #log: Log
  readonly #hashes = new FileHashes()
  readonly #outcomes = { loaded: 0, failed: 0 }
  #hash = ''
  #triedHash = ''
  /** Why the last try failed; `mayPass`: for no fault of the files. */
  #failure: { readonly message: string; readonly mayPass: boolean } | null = null
  #loadedAtMs = 0
  #version = 0
  #checking: Promise<void> = Promise.resolve()

  /** Throws the Fault of a first load that is no good. */
  static async load<Value>(
    part: Part<Value>,
    log: Log,
  ): Promise<{ value: Value; reloader: Reloader<Value> }> {
    const reloader = new Reloader(part, log)
    const hash = await reloader.#hashes.of(await part.files())
    const value = await part.load()
    reloader.#loaded(hash)
    return { value, reloader }
  }

  private constructor(part: Part<Value>, log: Log) {
    this.#part = part
    this.#log = log
  }

  files(): Promise<readonly string[]> {
    return this.#part.files()
  }

  /**
   * Loads it if its files are others than at the last try, if that failed for no fault of theirs, or if somebody asks
   * for it. One at a time; never rejects.
   */
  check(isAskedFor: boolean): Promise<void> {
    this.#checking = this.#checking.then(() => this.#check(isAskedFor))
    return this.#checking
  }

  /** The outcome of the last try, and what is in use. */
  get status(): ReloadStatus {
    return {
      what: this.#part.what,
      hash: this.#hash,
      version: this.#version,
      loadedAtMs: this.#loadedAtMs,
      isCurrent: this.#failure === null,
      ...this.#outcomes,
    }
  }

  async #check(isAskedFor: boolean): Promise<void> {
    const { what } = this.#part
    const before = this.#failure
    let hash = this.#triedHash
    try {
      hash = await this.#hashes.of(await this.#part.files())
      if (hash === this.#triedHash && before?.mayPass !== true && !isAskedFor) return
      this.#part.use(await this.#part.load())
      this.#outcomes.loaded++
      this.#loaded(hash)
      this.#log.info('reloaded', { what, version: this.#version, hash: hash.slice(0, HASH_SHOWN) })
    } catch (error) {
      this.#outcomes.failed++
      const { message } = error as Error
      this.#failure = { message, mayPass: !isOfContent(error) }
      const isSaid = hash === this.#triedHash && message === before?.message
      this.#triedHash = hash
      if (isSaid && !isAskedFor) return
      const fields = error instanceof Fault ? { problems: message.split('\n') } : { error: error as Error }
      this.#log.error('not reloaded: the one before stays in use', {
        what,
        version: this.#version,
        ...fields,
      })
    }
  }

  #loaded(hash: string): void {
    this.#hash = hash
    this.#triedHash = hash
    this.#failure = null
    this.#loadedAtMs = Date.now()
    this.#version++
  }
}

/** It stays so until the files change; a full disk does not, nor does a process that was killed. */
function isOfContent(error: unknown): boolean {
  return error instanceof Fault && CONTENT_CODE.test(error.code)
}

export interface ReloadStatus {
  readonly what: string
  /** SHA-256 over the files in use. */
  readonly hash: string
  /** Counts the loads of this process. */
  readonly version: number
  readonly loadedAtMs: number
  /** `false` after a try that failed: the files are not what is in use. */
  readonly isCurrent: boolean
  readonly loaded: number
  readonly failed: number
}

/** Replicas that run with the same have the same hash: one that lags behind shows. */
export function addReloadMetrics(metrics: Metrics, statuses: () => readonly ReloadStatus[]): void {
  const each = (value: (status: ReloadStatus) => number) => (): Sample[] =>
    statuses().map((status) => ({ labels: { what: status.what }, value: value(status) }))
  metrics.counter('reload_total', 'Files loaded anew since the start, by outcome.', () =>
    statuses().flatMap(({ what, loaded, failed }) => [
      { labels: { what, outcome: 'loaded' }, value: loaded },
      { labels: { what, outcome: 'failed' }, value: failed },
    ]),
  )
  metrics.gauge(
    'reload_current',
    '0 while the files are bad and an older state is in use.',
    'first',
    each(({ isCurrent }) => Number(isCurrent)),
  )
  metrics.gauge(
    'loaded_version',
    'How many times it was loaded.',
    'first',
    each(({ version }) => version),
  )
  metrics.gauge(
    'loaded_hash',
    'The first 48 bits of the SHA-256 of what is in use.',
    'first',
    each(({ hash }) => Number.parseInt(hash.slice(0, HASH_SHOWN) || '0', 16)),
  )
  metrics.gauge(
    'loaded_timestamp_seconds',
    'When it was loaded.',
    'first',
    each(({ loadedAtMs }) => loadedAtMs / 1000),
  )
}

/**
 * SHA-256 over files, in an order that stays. A large one is read again only when its file says that it is another by
 * now: looks come often, and a million signatures are 200 MiB.
 */
class FileHashes {
  readonly #large = new Map<string, { readonly version: string; readonly hash: string }>()

  async of(files: readonly string[]): Promise<string> {
    const hash = createHash('sha256')
    for (const file of files) hash.update(await this.#of(file))
    return hash.digest('hex')
  }

  /** A file that is not there counts as well: it may come. */
  async #of(file: string): Promise<string> {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
      const version = [dev, ino, size, mtimeNs, ctimeNs].join()
      const known = this.#large.get(file)
      if (known?.version === version) return known.hash
      const hash = await hashOf(file)
      if (size >= LARGE_BYTES) this.#large.set(file, { version, hash })
      else this.#large.delete(file)
      return hash
    } catch (error) {
      return `${(error as NodeJS.ErrnoException).code}`
    }
  }
}

/** All of it passes through one buffer: memory of a buffer for each read makes V8 collect garbage again and again. */
async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES)
  await using file = await open(path)
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, null)
    if (bytesRead === 0) return hash.digest('hex')
    hash.update(chunk.subarray(0, bytesRead))
  }
}

const CONTENT_CODE = /_(?:INVALID|TOO_MANY|NOT_INDEXED)$/
/** Hashed in one go: a small part of a millisecond. */
const CHUNK_BYTES = 64 * 1024
const LARGE_BYTES = 1024 * 1024
/** 48 bits: exact in a double, and enough to tell by eye. */
const HASH_SHOWN = 12

import { createHash } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { Fault } from '../shared/fault.ts'
import type { Log } from '../shared/log.ts'
import type { Metrics, Sample } from '../shared/metrics.ts'

/** A value that is loaded from files, and reloaded when they change. */
export interface ReloadPart<Value> {
  /** The name in logs and metrics: `certificates`. */
  readonly what: string
  /** All files that `load` reads, in a stable order. */
  files(): Promise<readonly string[]>
  /** Throws a Fault if the files are invalid. */
  load(): Promise<Value>
  /** Replaces the value in use. */
  use(value: Value): void
}

/**
 * Keeps one part up to date. A load replaces the value completely or not at all. If a file is invalid, the
 * old value stays in use, and the log and the metrics report it once.
 */
export class Reloader<Value> {
  readonly #part: ReloadPart<Value>
  readonly #log: Log
  readonly #hashes = new FileHashes()
  readonly #outcomes = { loaded: 0, failed: 0 }
  #hash = ''
  #triedHash = ''
  /** Why the last attempt failed. `mayPass`: a retry may succeed without a change of the files. */
  #failure: { readonly message: string; readonly mayPass: boolean } | null = null
  #loadedAtMs = 0
  #version = 0
  #checking: Promise<void> = Promise.resolve()

  /** Throws the Fault if the first load fails. */
  static async load<Value>(
    part: ReloadPart<Value>,
    log: Log,
  ): Promise<{ value: Value; reloader: Reloader<Value> }> {
    const reloader = new Reloader(part, log)
    const hash = await reloader.#hashes.of(await part.files())
    const value = await part.load()
    reloader.#loaded(hash)
    return { value, reloader }
  }

  private constructor(part: ReloadPart<Value>, log: Log) {
    this.#part = part
    this.#log = log
  }

  files(): Promise<readonly string[]> {
    return this.#part.files()
  }

  /**
   * Reloads the part if its files have changed since the last attempt, if that attempt failed for another
   * reason than their content, or if `isAskedFor`. Runs one at a time and never rejects.
   */
  check(isAskedFor: boolean): Promise<void> {
    this.#checking = this.#checking.then(() => this.#check(isAskedFor))
    return this.#checking
  }

  /** The result of the last attempt, and what is in use. */
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

/** Invalid content stays invalid until the files change. A full disk or a killed process may recover. */
function isOfContent(error: unknown): boolean {
  return error instanceof Fault && CONTENT_CODE.test(error.code)
}

export interface ReloadStatus {
  readonly what: string
  /** SHA-256 over the files in use. */
  readonly hash: string
  /** The number of loads in this process. */
  readonly version: number
  readonly loadedAtMs: number
  /** `false` after a failed attempt: the files differ from what is in use. */
  readonly isCurrent: boolean
  readonly loaded: number
  readonly failed: number
}

/** Replicas with the same files have the same hash, so a replica that lags behind is visible. */
export function addReloadMetrics(metrics: Metrics, statuses: () => readonly ReloadStatus[]): void {
  const each = (value: (status: ReloadStatus) => number) => (): Sample[] =>
    statuses().map((status) => ({ labels: { what: status.what }, value: value(status) }))
  metrics.counter('reload_total', 'Reloads of files since the start, by outcome.', () =>
    statuses().flatMap(({ what, loaded, failed }) => [
      { labels: { what, outcome: 'loaded' }, value: loaded },
      { labels: { what, outcome: 'failed' }, value: failed },
    ]),
  )
  metrics.gauge(
    'reload_current',
    '0 while the files are invalid and an older state is in use.',
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
 * SHA-256 over files in a stable order. A large file is read again only if its metadata has changed, because
 * checks are frequent and a million signatures are 200 MiB.
 */
class FileHashes {
  /** Of the files that were last asked for. */
  readonly #large = new Map<string, { readonly version: string; readonly hash: string }>()

  async of(files: readonly string[]): Promise<string> {
    const hash = createHash('sha256')
    for (const file of files) hash.update(await this.#of(file))
    const named = new Set(files)
    for (const file of this.#large.keys()) if (!named.has(file)) this.#large.delete(file)
    return hash.digest('hex')
  }

  /** A missing file counts too, because it may appear later. */
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

/** Reads through one buffer. A new buffer for each read would cause repeated garbage collections. */
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
/** Takes a small part of a millisecond to hash. */
const CHUNK_BYTES = 64 * 1024
const LARGE_BYTES = 1024 * 1024
/** 48 bits: exact in a double, and enough to compare by eye. */
const HASH_SHOWN = 12

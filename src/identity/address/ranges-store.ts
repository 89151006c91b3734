import { createHash, randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { dayNumber } from '../../classify/known/calendar.ts'
import type { PublishedRanges } from '../../classify/known/published-ranges.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import { publishedRanges } from './ranges-document.ts'

/** A list as it was fetched. */
export interface FetchedRanges {
  readonly url: string
  readonly published: PublishedRanges
}

/**
 * Fetched and accepted lists in a folder, one file each. Files are validated as strictly as network
 * responses. The modification time of a file is the time when its list was last seen.
 */
export class RangesStore {
  readonly folder: string
  readonly #log: Log
  readonly #nowMs: () => number
  /** Problems already logged, by file: each is logged once. */
  readonly #said = new Map<string, string>()

  constructor(folder: string, log: Log, nowMs: () => number) {
    this.folder = folder
    this.#log = log
    this.#nowMs = nowMs
  }

  /** All files that `load` reads. The entry `/.` stands for the folder itself. */
  async files(): Promise<readonly string[]> {
    return [`${this.folder}/.`, ...(await this.#names()).map((name) => join(this.folder, name))]
  }

  /** Logs and skips invalid files. */
  async load(): Promise<readonly FetchedRanges[]> {
    const found: FetchedRanges[] = []
    for (const name of await this.#names()) {
      const file = join(this.folder, name)
      try {
        found.push(await this.#read(name))
        this.#said.delete(file)
      } catch (error) {
        this.#say(file, error)
      }
    }
    return found
  }

  /** When the list at this URL was last seen; `null`: it is not stored. */
  async seenMs(url: string): Promise<number | null> {
    try {
      return (await stat(join(this.folder, nameOf(url)))).mtimeMs
    } catch {
      return null
    }
  }

  /** Records that the list was seen unchanged. */
  async saw(url: string): Promise<void> {
    const now = this.#nowMs() / 1000
    await utimes(join(this.folder, nameOf(url)), now, now).catch(() => undefined)
  }

  /** Writes the file atomically and durably. Throws a Fault. */
  async keep({ url, published: { date, prefixes } }: FetchedRanges): Promise<void> {
    // The name starts with a dot, so the draft is not loaded as a list.
    const draft = join(this.folder, `.${randomBytes(6).toString('hex')}`)
    try {
      await mkdir(this.folder, { recursive: true, mode: 0o700 })
      const handle = await open(draft, 'wx')
      try {
        await handle.writeFile(`${JSON.stringify({ url, date, prefixes })}\n`)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(draft, join(this.folder, nameOf(url)))
    } catch (error) {
      await rm(draft, { force: true }).catch(() => undefined)
      const { code, message } = error as NodeJS.ErrnoException
      throw new Fault('RANGES_STORAGE', `${this.folder} cannot be written (${code ?? message})`, {
        cause: error,
      })
    }
  }

  async #names(): Promise<readonly string[]> {
    const names = await readdir(this.folder).catch(() => [])
    return names
      .filter((name) => NAME.test(name))
      .sort()
      .slice(0, FILES_MAX)
  }

  async #read(name: string): Promise<FetchedRanges> {
    const file = join(this.folder, name)
    if ((await stat(file)).size > FILE_BYTES_MAX)
      throw new Fault(INVALID, `it is larger than ${FILE_BYTES_MAX} bytes`)
    const value: unknown = JSON.parse(await readFile(file, 'utf8'))
    const { url, date, prefixes } = (value ?? {}) as Readonly<Record<string, unknown>>
    if (typeof url !== 'string' || nameOf(url) !== name)
      throw new Fault(INVALID, 'it is not named after its URL')
    const day = typeof date === 'string' ? dayNumber(date) : null
    // A list from the future would be newer than every bundled list.
    if (day === null || day > this.#nowMs() / DAY_MS + 1)
      throw new Fault(INVALID, 'its date is invalid or in the future')
    if (!Array.isArray(prefixes) || !prefixes.every((prefix) => typeof prefix === 'string'))
      throw new Fault(INVALID, 'it has no list of ranges')
    return { url, published: publishedRanges(prefixes, url, date as string) }
  }

  #say(file: string, error: unknown): void {
    const problem = error instanceof SyntaxError ? 'it is not valid JSON' : (error as Error).message
    if (this.#said.get(file) === problem) return
    this.#said.set(file, problem)
    this.#log.warn('a stored list of published addresses is invalid and is ignored', { file, problem })
  }
}

/** The folder for lists inside the data folder. */
export function rangesFolder(dataFolder: string): string {
  return join(dataFolder, 'published-ranges')
}

function nameOf(url: string): string {
  return `${createHash('sha256').update(url).digest('hex').slice(0, 32)}.json`
}

const NAME = /^[0-9a-f]{32}\.json$/
const INVALID = 'RANGES_INVALID'
const DAY_MS = 86_400_000
/** 20,000 ranges take a quarter of it. */
const FILE_BYTES_MAX = 4 * 1_048_576
/** More than there are agents with lists. */
const FILES_MAX = 200

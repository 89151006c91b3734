import { randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DraftFile, FilePlace } from './file-place.ts'

/**
 * Files in a folder. A file is written under another name, and renamed when all of it is on disk. Only the user of this
 * process can read them, because they contain people's addresses.
 */
export class FolderPlace implements FilePlace {
  readonly #folder: string
  readonly #drafts: string
  readonly #open = new Set<FolderDraft>()

  constructor(folder: string) {
    this.#folder = folder
    this.#drafts = join(folder, DRAFTS)
  }

  async begin(): Promise<DraftFile> {
    await mkdir(this.#drafts, { recursive: true, mode: OUR_FOLDER })
    await this.#removeLeftOvers()
    const path = join(this.#drafts, `${randomUUID()}.tmp`)
    const draft = new FolderDraft(this.#folder, path, await open(path, 'wx', OUR_FILE), () =>
      this.#open.delete(draft),
    )
    this.#open.add(draft)
    return draft
  }

  /** Deletes the files of days that ended before then. Other files stay, and the folders that hold them. */
  async forget(beforeMs: number): Promise<void> {
    for (const app of await namesIn(this.#folder, APP))
      for (const day of await namesIn(join(this.#folder, app), DAY)) {
        const endMs = Date.parse(day.slice(day.indexOf('=') + 1)) + DAY_MS
        // An impossible date is not ours.
        if (!(endMs <= beforeMs)) continue
        const folder = join(this.#folder, app, day)
        for (const hour of await namesIn(folder, HOUR)) await removeFiles(join(folder, hour))
        await removeEmpty(folder)
      }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((draft) => draft.drop()))
  }

  /** Of processes that were killed. A draft that is being written is younger. */
  async #removeLeftOvers(): Promise<void> {
    for (const name of await readdir(this.#drafts)) {
      const path = join(this.#drafts, name)
      const found = await stat(path).catch(() => null)
      if (found !== null && found.mtimeMs < Date.now() - LEFT_OVER_MS) await rm(path, { force: true })
    }
  }
}

class FolderDraft implements DraftFile {
  readonly #folder: string
  readonly #path: string
  readonly #ended: () => void
  #handle: FileHandle | null

  constructor(folder: string, path: string, handle: FileHandle, ended: () => void) {
    this.#folder = folder
    this.#path = path
    this.#handle = handle
    this.#ended = ended
  }

  async append(bytes: Uint8Array): Promise<void> {
    await this.#opened.appendFile(bytes)
  }

  async finish(name: string): Promise<void> {
    const handle = this.#opened
    const path = join(this.#folder, name)
    const made = await mkdir(dirname(path), { recursive: true, mode: OUR_FOLDER })
    await handle.sync()
    await this.#closed()
    await rename(this.#path, path)
    // The name is in its folder, and a new folder's name in the one above it.
    for (let folder = dirname(path); ; folder = dirname(folder)) {
      await syncFolder(folder)
      if (made === undefined || folder === dirname(made) || folder === dirname(folder)) return
    }
  }

  async drop(): Promise<void> {
    if (this.#handle === null) return
    await this.#closed()
    await rm(this.#path, { force: true })
  }

  get #opened(): FileHandle {
    if (this.#handle === null) throw new Error('the draft is closed')
    return this.#handle
  }

  async #closed(): Promise<void> {
    const handle = this.#handle
    this.#handle = null
    this.#ended()
    await handle?.close()
  }
}

/** The folders in a folder, which may not exist yet. Links are not followed. */
async function namesIn(folder: string, form: RegExp): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory() && form.test(entry.name)).map(({ name }) => name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

async function removeFiles(folder: string): Promise<void> {
  for (const name of await readdir(folder)) if (FILE.test(name)) await rm(join(folder, name), { force: true })
  await removeEmpty(folder)
}

async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
  })
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Readers of data sets pass over names that begin with a dot. */
const DRAFTS = '.drafts'
const OUR_FILE = 0o600
const OUR_FOLDER = 0o700
const LEFT_OVER_MS = 600_000
const APP = /^app=/
const DAY = /^date=\d{4}-\d\d-\d\d$/
const HOUR = /^hour=\d\d$/
/** As ParquetSink names them. */
const FILE = /^\d{12,}-[0-9a-f]{16}\.parquet$/
const DAY_MS = 86_400_000

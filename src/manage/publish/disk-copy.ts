import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type * as z from 'zod'
import { Fault } from '../../shared/fault.ts'

/** A copy of what was last in force, so that the next start does not have to wait for a database. */
export class DiskCopy<Value> {
  readonly #file: string
  readonly #schema: z.ZodType<Value>
  readonly #what: string

  /** `what`: for the Fault: `policy`. */
  constructor(file: string, schema: z.ZodType<Value>, what: string) {
    this.#file = file
    this.#schema = schema
    this.#what = what
  }

  /** `null`: the file is missing. Throws a Fault. */
  async read(): Promise<Value | null> {
    let text: string
    try {
      text = await readFile(this.#file, 'utf8')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return null
      throw new Fault('FILE_UNREADABLE', `${this.#file} cannot be read (${code})`, { cause: error })
    }
    try {
      return this.#schema.parse(JSON.parse(text))
    } catch (error) {
      throw new Fault('COPY_INVALID', `${this.#file} holds no ${this.#what}`, { cause: error })
    }
  }

  /** Atomic and durable. */
  async write(value: Value): Promise<void> {
    const draft = `${this.#file}.${randomBytes(6).toString('hex')}`
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
      const handle = await open(draft, 'wx', 0o600)
      try {
        await handle.writeFile(JSON.stringify(value))
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(draft, this.#file)
    } catch (error) {
      await rm(draft, { force: true }).catch(() => undefined)
      const { code } = error as NodeJS.ErrnoException
      throw new Fault('FILE_UNWRITABLE', `${this.#file} cannot be written (${code})`, { cause: error })
    }
  }
}

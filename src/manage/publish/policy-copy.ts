import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import * as z from 'zod'
import { Fault } from '../../shared/fault.ts'
import type { PolicyRecord } from '../../store/work/policies.ts'

/** A copy of the last policy in force. Without it, a start admits all requests until a database answers. */
export class PolicyCopy {
  readonly #file: string

  constructor(file: string) {
    this.#file = file
  }

  /** `null`: the file is missing. Throws a Fault. */
  async read(): Promise<PolicyRecord | null> {
    let text: string
    try {
      text = await readFile(this.#file, 'utf8')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return null
      throw new Fault('FILE_UNREADABLE', `${this.#file} cannot be read (${code})`, { cause: error })
    }
    try {
      return RECORD.parse(JSON.parse(text))
    } catch (error) {
      throw new Fault('POLICY_COPY_INVALID', `${this.#file} holds no policy`, { cause: error })
    }
  }

  /** Atomic and durable. */
  async write(record: PolicyRecord): Promise<void> {
    const draft = `${this.#file}.${randomBytes(6).toString('hex')}`
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
      const handle = await open(draft, 'wx', 0o600)
      try {
        await handle.writeFile(JSON.stringify(record))
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

const RECORD = z.object({
  version: z.int().min(1),
  hash: z.string(),
  author: z.string(),
  restoredVersion: z.int().nullable(),
  createdAtMs: z.int(),
  document: z.string(),
})

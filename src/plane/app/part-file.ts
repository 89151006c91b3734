import { randomUUID } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readBounded } from '../../shared/bounded-file.ts'
import { Fault } from '../../shared/fault.ts'
import { digestOf } from '../snapshot-package.ts'
import { type PartOfApp, type PartsHead, readHead, readPart, writeHead, writePart } from './app-part.ts'

/** What a proxy of one app keeps for its next start, beside the copy of what all apps share. */
export interface KeptPart {
  readonly head: PartsHead
  readonly part: PartOfApp
}

/** `null` if the file does not exist. Rejects with a Fault if it is damaged or of another app. */
export async function readPartFile(file: string, app: string): Promise<KeptPart | null> {
  let bytes: Buffer
  try {
    bytes = await readBounded(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  const digest = bytes.toString('latin1', 0, DIGEST_LENGTH)
  const rest = bytes.subarray(DIGEST_LENGTH + 1)
  const end = rest.indexOf(LINE_FEED)
  if (digestOf(rest) !== digest || end === -1) throw new Fault('SNAPSHOT_INVALID', `${file} is damaged`)
  return { head: readHead(rest.subarray(0, end)), part: await readPart(rest.subarray(end + 1), app) }
}

/** Writes atomically: a reader finds the old or the new file. */
export async function writePartFile(file: string, { head, part }: KeptPart): Promise<void> {
  const rest = Buffer.concat([writeHead(head), Buffer.from('\n'), await writePart(part)])
  const unfinished = `${file}.${randomUUID()}.tmp`
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeFile(unfinished, Buffer.concat([Buffer.from(`${digestOf(rest)}\n`), rest]), {
      mode: 0o600,
      flush: true,
    })
    await rename(unfinished, file)
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => undefined)
    throw error
  }
}

const DIGEST_LENGTH = 64
const LINE_FEED = 0x0a

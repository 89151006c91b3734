import { randomUUID } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { getCompileCacheDir } from 'node:module'
import { join } from 'node:path'
import { isListCopy, type ListCopy } from '../list-copies.ts'

/**
 * Copies of the built-in lists that a process of this checkout has left beside its compiled code. A package has no need
 * of them: its lists are JSON.
 */
export async function readKeptCopies(): Promise<readonly ListCopy[]> {
  const file = keptFile()
  if (file === null) return []
  try {
    const copies: unknown = JSON.parse(await readFile(file, 'utf8'))
    return Array.isArray(copies) ? copies.filter(isListCopy) : []
  } catch {
    return [] // missing or damaged
  }
}

/** Keeps them for the next process. Never rejects: without them it only takes longer to start. */
export async function keepCopies(copies: readonly ListCopy[]): Promise<void> {
  const file = keptFile()
  if (file === null) return
  const draft = `${file}.${randomUUID()}.tmp`
  try {
    await writeFile(draft, JSON.stringify(copies), { mode: 0o600 })
    await rename(draft, file)
  } catch {
    await rm(draft, { force: true }).catch(() => undefined)
  }
}

/** `null`: this process keeps no compiled code. */
function keptFile(): string | null {
  const folder = getCompileCacheDir()
  return folder === undefined ? null : join(folder, 'signature-lists.json')
}

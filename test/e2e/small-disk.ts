import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { folderFor } from './engines.ts'

/** A disk that a test may fill. */
export interface SmallDisk {
  readonly folder: string
  /** To the last byte. */
  fill(): void
  free(): void
}

/** `null`: whoever runs this may not mount one. */
export function mountSmallDisk(t: Test, name: string, bytes: number): SmallDisk | null {
  const folder = folderFor(t, name)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'gatehouse-test', folder], {
      stdio: 'ignore',
    })
  } catch {
    return null
  }
  t.teardown(() => execFileSync('umount', ['--lazy', folder]))
  const filler = join(folder, 'filler')
  return {
    folder,
    fill: () => {
      const file = openSync(filler, 'a')
      try {
        for (const block of [Buffer.alloc(65_536), Buffer.alloc(1)]) writeUntilFull(file, block)
      } finally {
        closeSync(file)
      }
    },
    free: () => rmSync(filler, { force: true }),
  }
}

function writeUntilFull(file: number, block: Buffer): void {
  for (;;) {
    try {
      writeSync(file, block)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return
      throw error
    }
  }
}

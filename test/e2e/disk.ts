import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A disk that may be filled. */
export interface SmallDisk {
  readonly folder: string
  /** To the last byte. */
  fill(): void
  /** The same, by another process: the caller continues meanwhile. */
  fillAside(): Promise<void>
  free(): void
  unmount(): void
}

/** On an existing folder. `null`: this user may not mount one. */
export function mountDisk(folder: string, bytes: number): SmallDisk | null {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'gatehouse-test', folder], {
      stdio: 'ignore',
    })
  } catch {
    return null
  }
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
    fillAside: async () => {
      // It ends when there is no room.
      const writer = spawn('sh', ['-c', 'cat /dev/zero > "$0"', filler], { stdio: 'ignore' })
      await once(writer, 'exit')
    },
    free: () => rmSync(filler, { force: true }),
    unmount: () => void execFileSync('umount', ['--lazy', folder]),
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

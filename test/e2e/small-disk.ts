import type { Test } from 'tap'
import { mountDisk, type SmallDisk } from './disk.ts'
import { folderFor } from './engines.ts'

/** `null`: this user may not mount one. It is removed with the test. */
export function mountSmallDisk(t: Test, name: string, bytes: number): SmallDisk | null {
  const disk = mountDisk(folderFor(t, name), bytes)
  if (disk !== null) t.teardown(disk.unmount)
  return disk
}

import type { Test } from 'tap'
import { mountDisk, type SmallDisk } from './disk.ts'
import { folderFor } from './engines.ts'

/** `null`: whoever runs this may not mount one. It goes with the test. */
export function mountSmallDisk(t: Test, name: string, bytes: number): SmallDisk | null {
  const disk = mountDisk(folderFor(t, name), bytes)
  if (disk !== null) t.teardown(disk.unmount)
  return disk
}

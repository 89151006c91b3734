import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A control group whose processes may have so much memory and no more. */
export class MemoryGroup {
  readonly #folder: string
  readonly #limitFile: string
  readonly #noLimit: string

  /** `null`: there are no control groups for memory here, or none that may be made. */
  static make(): MemoryGroup | null {
    const name = `gatehouse-chaos-${process.pid}`
    for (const [parent, limitFile, noLimit] of PLACES) {
      const folder = join(parent, name)
      try {
        mkdirSync(folder)
        if (existsSync(join(folder, limitFile))) return new MemoryGroup(folder, limitFile, noLimit)
        rmdirSync(folder)
      } catch {
        // It may not be made there.
      }
    }
    return null
  }

  private constructor(folder: string, limitFile: string, noLimit: string) {
    this.#folder = folder
    this.#limitFile = join(folder, limitFile)
    this.#noLimit = noLimit
  }

  /** What it has stays where it is counted; from here on it may have no more than `bytes` of new memory. */
  squeeze(pid: number, bytes: number): void {
    writeFileSync(this.#limitFile, String(bytes))
    writeFileSync(join(this.#folder, 'cgroup.procs'), String(pid))
  }

  relax(): void {
    writeFileSync(this.#limitFile, this.#noLimit)
  }

  get isEmpty(): boolean {
    return readFileSync(join(this.#folder, 'cgroup.procs'), 'utf8') === ''
  }

  /** Once it has no processes left. */
  remove(): void {
    rmdirSync(this.#folder)
  }
}

/** Version 1 and version 2. */
const PLACES = [
  ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes', '-1'],
  ['/sys/fs/cgroup', 'memory.max', 'max'],
] as const

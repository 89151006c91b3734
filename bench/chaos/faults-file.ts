import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

/** What the processes of the gateway are to believe. */
export interface Faults {
  /** Ahead of the real one. */
  readonly clockMs: number
  /** The result of looking up names that end in `NAMES_SUFFIX`: they are found, or an error of getaddrinfo, or nothing at all. */
  readonly names: 'found' | 'ENOTFOUND' | 'EAI_AGAIN' | 'silent'
  /** A pipe without a writer. */
  readonly waitsAt: string
}

/** The file by which they are told, from another process. */
export class FaultsFile {
  readonly path: string
  #faults: Faults

  constructor(folder: string) {
    this.path = join(folder, 'faults.json')
    this.#faults = { clockMs: 0, names: 'found', waitsAt: join(folder, 'no-writer') }
    execFileSync('mkfifo', [this.#faults.waitsAt])
    writeFileSync(this.path, '')
    this.#write()
  }

  set(changed: Partial<Omit<Faults, 'waitsAt'>>): void {
    this.#faults = { ...this.#faults, ...changed }
    this.#write()
  }

  /** Releases the waiting lookups. */
  async letGo(): Promise<void> {
    for (let turn = 0; turn < LET_GO_TURNS; turn++) {
      try {
        closeSync(openSync(this.#faults.waitsAt, constants.O_WRONLY | constants.O_NONBLOCK))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error // it has no reader
      }
      await wait(LET_GO_MS)
    }
  }

  /** In one write, and always as long: who reads it meanwhile has the one or the other. */
  #write(): void {
    const file = openSync(this.path, 'r+')
    writeSync(file, JSON.stringify(this.#faults).padEnd(FAULTS_BYTES), 0)
    closeSync(file)
  }
}

export const FAULTS_BYTES = 512
export const NAMES_SUFFIX = '.chaos.test'
const LET_GO_TURNS = 10
const LET_GO_MS = 100

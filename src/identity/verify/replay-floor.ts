import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Log } from '../../shared/log.ts'

export interface ReplayFloorSettings {
  /** `null`: nothing survives this process. */
  readonly file: string | null
  /** When this process started. */
  readonly startedMs: number
  /** By how much a signer's clock may be ahead of ours. */
  readonly skewS: number
  nowMs(): number
}

/**
 * Keeps a restart from accepting a signature a second time. The memory of used signatures ends with its process, so
 * that a signature created before the process started counts as "possibly used". A signer whose clock is ahead creates
 * signatures that look younger than the restart. Therefore a file holds the latest creation time that a used signature
 * can have, and it is written before such a use is accepted: it survives a kill, and a power cut. Keys whose clocks are
 * far ahead have a time of their own in it, so that a restart does not make others wait for them.
 */
export class ReplayFloor {
  readonly #settings: ReplayFloorSettings
  readonly #log: Log
  readonly #floor: Ceiling
  /** The content of the file: uses of signatures created up to then may be accepted. */
  #covered: Ceiling
  #wanted: Ceiling
  #writing: Promise<void> | null = null
  #hasFailed = false

  /** Reads the file of the previous process. Never rejects. */
  static async open(settings: ReplayFloorSettings, log: Log): Promise<ReplayFloor> {
    const { file, startedMs, skewS, nowMs } = settings
    const startS = Math.floor(startedMs / 1_000)
    // The previous process's signers may have been ahead by the allowed skew.
    const unknown = { allS: startS + skewS, byKey: NO_KEYS }
    const left = file === null ? 'unknown' : await readCeiling(file)
    if (left === 'unknown') {
      if (file !== null)
        log.warn(`${file} is damaged or cannot be read: no signature is verified for ${skewS} seconds`)
      return new ReplayFloor(settings, unknown, log)
    }
    const floor = { allS: Math.max(startS, left?.allS ?? 0), byKey: left?.byKey ?? NO_KEYS }
    if (floor.allS > nowMs() / 1_000 + skewS)
      log.warn(
        `no signature is verified until the time that ${file} says: the clock was set back, or the file is damaged. If the clock is right, delete the file and restart`,
        { until: timeText(floor.allS) },
      )
    const opened = new ReplayFloor(settings, floor, log)
    // A folder without the file belongs to a new gateway, if the file can be written from now on.
    if (left === null && !(await opened.#write(floor))) return new ReplayFloor(settings, unknown, log)
    return opened
  }

  private constructor(settings: ReplayFloorSettings, floor: Ceiling, log: Log) {
    this.#settings = settings
    this.#log = log
    this.#floor = floor
    this.#covered = floor
    this.#wanted = floor
  }

  /** Of signatures that this key created up to then (in seconds), it is unknown whether they were used. */
  floorOf(thumbprint: string): number {
    return ceilingOf(this.#floor, thumbprint)
  }

  /** Resolves when the use of a signature that this key created then may be accepted. Never rejects. */
  async cover(thumbprint: string, createdS: number): Promise<void> {
    if (this.#settings.file === null) return
    const nowS = Math.floor(this.#settings.nowMs() / 1_000)
    this.#want(thumbprint, createdS, nowS)
    while (ceilingOf(this.#covered, thumbprint) < createdS) await this.#extend()
    if (this.#covered !== this.#wanted) void this.#extend()
  }

  #want(thumbprint: string, createdS: number, nowS: number): void {
    const { allS, byKey } = this.#wanted
    if (createdS <= nowS + STEP_S) {
      // Write slightly ahead of time, so that a steady stream of signatures hardly ever waits for the disk.
      if (createdS + AHEAD_S > allS) this.#wanted = { allS: Math.max(createdS, nowS) + STEP_S, byKey }
      return
    }
    if (ceilingOf(this.#wanted, thumbprint) >= createdS) return
    const ahead = new Map([...byKey].filter(([, keyS]) => keyS > allS))
    if (ahead.size >= KEYS_MAX && !ahead.has(thumbprint)) this.#wanted = { allS: createdS, byKey: ahead }
    else this.#wanted = { allS, byKey: ahead.set(thumbprint, createdS + STEP_S) }
  }

  #extend(): Promise<void> {
    this.#writing ??= this.#extendNow().finally(() => {
      this.#writing = null
    })
    return this.#writing
  }

  async #extendNow(): Promise<void> {
    const wanted = this.#wanted
    await this.#write(wanted)
    // A full disk must not block every signer. The start time of the next process is then the only floor.
    this.#covered = wanted
  }

  /** Returns whether the write succeeded. */
  async #write({ allS, byKey }: Ceiling): Promise<boolean> {
    const file = this.#settings.file!
    try {
      await writeWhole(file, `${JSON.stringify({ created_until: allS, keys: Object.fromEntries(byKey) })}\n`)
      this.#hasFailed = false
      return true
    } catch (error) {
      if (!this.#hasFailed)
        this.#log.error(
          `${file} cannot be written. After a restart, a used signature whose signer's clock is ahead of ours could be accepted again. Make room for the file, or make it writable`,
          { error: error as Error },
        )
      this.#hasFailed = true
      return false
    }
  }
}

/** The latest creation time of used signatures, in seconds. */
interface Ceiling {
  readonly allS: number
  /** By thumbprint, for keys whose clock is ahead. */
  readonly byKey: ReadonlyMap<string, number>
}

function ceilingOf({ allS, byKey }: Ceiling, thumbprint: string): number {
  return Math.max(allS, byKey.get(thumbprint) ?? 0)
}

/** `null`: there is no file. */
async function readCeiling(file: string): Promise<Ceiling | null | 'unknown'> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'))
    const { created_until: allS, keys = {} } = (value ?? {}) as Readonly<Record<string, unknown>>
    if (!isTime(allS) || typeof keys !== 'object' || keys === null) return 'unknown'
    const byKey = Object.entries(keys as Readonly<Record<string, unknown>>)
    if (byKey.length > KEYS_MAX || !byKey.every((entry): entry is [string, number] => isTime(entry[1])))
      return 'unknown'
    return { allS, byKey: new Map(byKey) }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : 'unknown'
  }
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    const handle = await open(draft, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined)
    throw error
  }
}

function timeText(timeS: number): string {
  const time = new Date(timeS * 1_000)
  return Number.isNaN(time.getTime()) ? 'never' : time.toISOString()
}

const NO_KEYS: ReadonlyMap<string, number> = new Map()
/** How much later than now signatures may be created before the file is written again. */
const STEP_S = 2
const AHEAD_S = 1
/** With more such keys, all other signers wait after a restart for the latest of them, at most a minute. */
const KEYS_MAX = 256

import { type FileHandle, mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../shared/fault.ts'
import { packSightings, unpackSightings } from './sighting-batch.ts'
import type { Sighting } from './sighting.ts'
import { partedBatch, type Reported, type RequestCounts } from './counts/request-counts.ts'

/**
 * Sightings waiting on disk until the management plane is reachable, in files of limited size, oldest first.
 * If the process dies while writing or sending, Sightings may arrive twice, which is harmless because they
 * have ids.
 */
export class SightingSpool {
  readonly counts = { written: 0, sent: 0, unreadable: 0 }
  readonly #folder: string
  readonly #bytesMax: number
  /** Numbers of files that are full or existed at the start; oldest first. */
  readonly #full: number[] = []
  readonly #sizes = new Map<number, number>()
  #open: { readonly number: number; readonly file: FileHandle; size: number } | null = null
  #newest = 0
  #bytes = 0
  #writing: Promise<unknown> = Promise.resolve()

  /** Opens the spool, including files of an earlier process. */
  static async open(folder: string, bytesMax: number): Promise<SightingSpool> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const spool = new SightingSpool(folder, bytesMax)
    const names = (await readdir(folder)).flatMap((name) => NAME.exec(name)?.[1] ?? [])
    for (const number of names.map(Number).sort((a, b) => a - b)) {
      const { size } = await stat(spool.#path(number))
      spool.#keep(number, size)
      spool.#bytes += size
      spool.#newest = number
    }
    return spool
  }

  private constructor(folder: string, bytesMax: number) {
    this.#folder = folder
    this.#bytesMax = bytesMax
  }

  /** Bytes on disk. */
  get bytes(): number {
    return this.#bytes
  }

  get isEmpty(): boolean {
    return this.#full.length === 0 && this.#open === null
  }

  /** Resolves when the batch is written. Rejects with a Fault if there is no room or the disk fails. */
  append(batch: readonly Sighting[], counts: readonly RequestCounts[] = []): Promise<void> {
    const writing = this.#writing.then(() => this.#append(batch, counts))
    this.#writing = writing.catch(() => undefined)
    return writing
  }

  /**
   * Passes batches to `send`, oldest file first. If `send` rejects, the rest stays. Does not block append.
   */
  async drain(
    send: (batch: readonly Sighting[], counts: readonly RequestCounts[]) => Promise<void>,
  ): Promise<void> {
    while (!this.isEmpty) {
      if (this.#full.length === 0) await this.#finish()
      const number = this.#full[0]
      if (number === undefined) return
      for (const batch of await this.#read(number)) {
        const { sightings, counts } = partedBatch(batch)
        await send(sightings, counts)
        this.counts.sent += sightings.length
      }
      await rm(this.#path(number), { force: true })
      this.#full.shift()
      this.#bytes -= this.#sizes.get(number) ?? 0
      this.#sizes.delete(number)
    }
  }

  async close(): Promise<void> {
    await this.#finish()
  }

  async #append(batch: readonly Sighting[], counts: readonly RequestCounts[]): Promise<void> {
    const records = (await packSightings([...batch, ...counts], FILE_BYTES)).map(({ bytes }) => record(bytes))
    const bytes = Buffer.concat(records)
    if (this.#bytes + bytes.length > this.#bytesMax)
      throw new Fault('SPOOL_FULL', 'there is no room for more Sightings on disk')
    try {
      this.#open ??= await this.#begin()
      await this.#open.file.write(bytes)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? error
      throw new Fault('SPOOL_UNWRITABLE', `Sightings cannot be written to ${this.#folder} (${code})`, {
        cause: error,
      })
    }
    this.#open.size += bytes.length
    this.#bytes += bytes.length
    this.counts.written += batch.length
    if (this.#open.size >= FILE_BYTES) await this.#close()
  }

  async #begin(): Promise<{ number: number; file: FileHandle; size: number }> {
    const number = this.#newest + 1
    const file = await open(this.#path(number), 'wx', 0o600)
    this.#newest = number
    return { number, file, size: 0 }
  }

  /** Runs after pending appends. */
  #finish(): Promise<void> {
    const finishing = this.#writing.then(() => this.#close())
    this.#writing = finishing.catch(() => undefined)
    return finishing
  }

  async #close(): Promise<void> {
    const finished = this.#open
    this.#open = null
    if (finished === null) return
    this.#keep(finished.number, finished.size)
    await finished.file.close()
  }

  #keep(number: number, size: number): void {
    this.#full.push(number)
    this.#sizes.set(number, size)
  }

  async #read(number: number): Promise<readonly (readonly Reported[])[]> {
    const batches: (readonly Reported[])[] = []
    for (const bytes of records(await readFile(this.#path(number)))) {
      try {
        // Gatehouse wrote it, but the disk may have damaged it: the receiver validates each item.
        batches.push((await unpackSightings(bytes)) as readonly Reported[])
      } catch {
        this.counts.unreadable++
      }
    }
    return batches
  }

  #path(number: number): string {
    return join(this.#folder, `${String(number).padStart(NUMBER_DIGITS, '0')}.sightings`)
  }
}

function record(bytes: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** All complete records: a crash may have cut the last one. */
function* records(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at + LENGTH_BYTES <= bytes.length; ) {
    const end = at + LENGTH_BYTES + bytes.readUInt32BE(at)
    if (end > bytes.length) return
    yield bytes.subarray(at + LENGTH_BYTES, end)
    at = end
  }
}

const NAME = /^(\d{12})\.sightings$/
const NUMBER_DIGITS = 12
const LENGTH_BYTES = 4
const FILE_BYTES = 1024 ** 2

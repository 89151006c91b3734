/** Where files are put, each whole or not at all. */
export interface FilePlace {
  begin(): Promise<DraftFile>
  /** Deletes the files of days that ended before then. Other files stay. */
  forget(beforeMs: number): Promise<void>
  /** Aborts what is being written. The place can be used again. */
  close(): Promise<void>
}

/** A file that is not visible yet. */
export interface DraftFile {
  append(bytes: Uint8Array): Promise<void>
  /** Resolves when the file is durable under this name, with folders, in place of one of the same name. */
  finish(name: string): Promise<void>
  /** Removes what was written. It may be finished already. */
  drop(): Promise<void>
}

/** When the day of a file ends, by the name that ParquetSink gives it; `null`: the file is not ours. */
export function dayEndMs(name: string): number | null {
  const [, day] = FILE.exec(name) ?? []
  if (day === undefined) return null
  const ms = Date.parse(day)
  // An impossible date is not ours.
  return Number.isNaN(ms) ? null : ms + DAY_MS
}

const FILE = /^app=[^/]+\/date=(\d{4}-\d\d-\d\d)\/hour=\d\d\/\d{12,}-[0-9a-f]{16}\.parquet$/
const DAY_MS = 86_400_000

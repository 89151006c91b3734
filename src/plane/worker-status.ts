/** The last known status of one worker of the data plane. */
export interface WorkerStatus {
  /** Its slot. The replacement of a dead worker has the same number. */
  readonly number: number
  /** `null`: not running; a replacement is starting. */
  readonly pid: number | null
  readonly state: 'starting' | 'serving' | 'gone'
  /** When it began to serve. */
  readonly sinceMs: number | null
  /** The number of its Snapshot; `null`: not reported yet. */
  readonly snapshot: number | null
  /** Sightings dropped for lack of room. */
  readonly dropped: number
  /** Why it should get no traffic, in words. */
  readonly unready: readonly string[]
}

/** How one worker of the data plane is, as far as it has said so. */
export interface WorkerStatus {
  /** Its place: whoever takes it after it has died has the same. */
  readonly number: number
  /** `null`: there is none now; another one is on its way. */
  readonly pid: number | null
  readonly state: 'starting' | 'serving' | 'gone'
  /** Since when it serves. */
  readonly sinceMs: number | null
  /** The number of the Snapshot it judges by; `null`: it has not said yet. */
  readonly snapshot: number | null
  /** Sightings that it had no room for. */
  readonly dropped: number
  /** Why no traffic should come to it, in words. */
  readonly unready: readonly string[]
}

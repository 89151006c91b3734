/** The version as JA4H spells it: HTTP/1.0, 1.1, 2 and 3. */
export type HttpVersion = '10' | '11' | '20' | '30'

/** One request as it was sent, the same for every HTTP version. */
export interface RequestHead {
  readonly method: string
  /** The request target as sent: `:path` in HTTP/2. */
  readonly target: string
  readonly version: HttpVersion
  /**
   * Name, value, name, value …: order, case and duplicates as sent, one UTF-16 unit per byte (latin1).
   * HTTP/2 pseudo-headers stand where the client put them.
   */
  readonly rawHeaders: readonly string[]
}

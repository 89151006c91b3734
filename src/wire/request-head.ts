/** The version as JA4H writes it: HTTP/1.0, 1.1, 2 and 3. */
export type HttpVersion = '10' | '11' | '20' | '30'

/** One request head as sent, in the same form for every HTTP version. */
export interface RequestHead {
  readonly method: string
  /** The request target as sent; in HTTP/2 it is `:path`. */
  readonly target: string
  readonly version: HttpVersion
  /**
   * Name, value, name, value …: order, case and duplicates as sent, one UTF-16 unit per byte (latin1). HTTP/2
   * pseudo-headers keep their position.
   */
  readonly rawHeaders: readonly string[]
}

/**
 * The fields that follow those of an extended CONNECT for a WebSocket (RFC 8441). It is judged as the upgrade that it
 * stands for: rules and signatures that know WebSockets by these fields apply to it too.
 */
export const ASKS_UPGRADE: readonly string[] = ['connection', 'Upgrade', 'upgrade', 'websocket']

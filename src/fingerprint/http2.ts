/** What a client sends on a connection of HTTP/2 before its first request. */
export interface Http2Said {
  /** Each entry of the first SETTINGS frame, in the order sent, GREASE included. */
  readonly settings: readonly Http2Setting[]
  /** The increment of the first WINDOW_UPDATE for the connection; `null` without one. */
  readonly windowUpdate: number | null
  /** PRIORITY frames. The priority that a HEADERS frame may carry is not one of them. */
  readonly priorities: readonly Http2Priority[]
}

export interface Http2Setting {
  readonly id: number
  readonly value: number
}

export interface Http2Priority {
  readonly stream: number
  readonly isExclusive: boolean
  readonly dependsOn: number
  /** From 1 to 256. */
  readonly weight: number
}

/**
 * How a client opens HTTP/2, in Akamai's form (Shuster and Segal, "Passive Fingerprinting of HTTP/2 Clients", 2017):
 * `SETTINGS|WINDOW_UPDATE|PRIORITY|pseudo-headers`, as in `1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p`.
 *
 * - SETTINGS: `identifier:value` of each entry.
 * - WINDOW_UPDATE: `00` without one.
 * - PRIORITY: `stream:exclusive:depends on:weight` of each; `0` without one.
 * - Only what comes before the first HEADERS counts. Their pseudo-headers follow, by their first letters.
 *
 * With more entries than any client sends there is no fingerprint: a shortened one would be somebody else's.
 */
export function http2Fingerprint(said: Http2Said, rawHeaders: readonly string[]): string | null {
  const { settings, windowUpdate, priorities } = said
  if (settings.length > SETTINGS_MAX || priorities.length > PRIORITIES_MAX) return null
  const entries = settings.map(({ id, value }) => `${id}:${value}`).join(';')
  const order = priorities.length === 0 ? '0' : priorities.map(priorityText).join(',')
  return `${entries}|${windowUpdate ?? '00'}|${order}|${pseudoHeaderOrder(rawHeaders)}`
}

function priorityText({ stream, isExclusive, dependsOn, weight }: Http2Priority): string {
  return `${stream}:${isExclusive ? 1 : 0}:${dependsOn}:${weight}`
}

function pseudoHeaderOrder(rawHeaders: readonly string[]): string {
  const letters: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.charCodeAt(0) === COLON) letters.push(name.charAt(1))
  }
  return letters.join(',')
}

/** nghttp2 takes 32 by default, browsers send up to 7. */
export const SETTINGS_MAX = 32
/** Firefox sent 6 of them before it gave priorities up. */
export const PRIORITIES_MAX = 32
const COLON = 0x3a

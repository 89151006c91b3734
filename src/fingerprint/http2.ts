/** What a client sends on an HTTP/2 connection before its first request. */
export interface Http2Said {
  /** The entries of the first SETTINGS frame, in order, GREASE included. */
  readonly settings: readonly Http2Setting[]
  /** The increment of the first WINDOW_UPDATE for the connection. `null` if there was no such frame. */
  readonly windowUpdate: number | null
  /** PRIORITY frames. The priority in a HEADERS frame is not included. */
  readonly priorities: readonly Http2Priority[]
  /** The weight in the first HEADERS frame, from 1 to 256; 0 if it has no priority. `null`: unknown. */
  readonly headersWeight: number | null
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
 * The HTTP/2 fingerprint in Akamai's form (Shuster and Segal, "Passive Fingerprinting of HTTP/2 Clients",
 * 2017): `SETTINGS|WINDOW_UPDATE|PRIORITY|pseudo-headers`, for example `1:65536;2:0|15663105|0|m,a,s,p`. `00`
 * stands for no WINDOW_UPDATE, `0` for no PRIORITY. Only frames before the first HEADERS count. `null` if a
 * client sends more entries than any real one: a shortened fingerprint would match another client.
 */
export function http2Fingerprint(said: Http2Said, rawHeaders: readonly string[]): string | null {
  const { settings, windowUpdate, priorities } = said
  if (settings.length > SETTINGS_MAX || priorities.length > PRIORITIES_MAX) return null
  const entries = settings.map(({ id, value }) => `${id}:${value}`).join(';')
  const order = priorities.length === 0 ? '0' : priorities.map(priorityText).join(',')
  return `${entries}|${windowUpdate ?? '00'}|${order}|${pseudoHeaderOrder(rawHeaders)}`
}

/**
 * The weight in the HEADERS of the first request, if a person opened a page with it; 0 if they have no priority.
 * `null`: unknown, or another request. What a page or its service worker requests has other weights.
 */
export function pageWeight({ headersWeight }: Http2Said, rawHeaders: readonly string[]): number | null {
  if (headersWeight === null) return null
  let found = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i]!, rawHeaders[i + 1]!]
    if (name === 'sec-fetch-dest' && value === 'document') found |= 1
    else if (name === 'sec-fetch-site' && value === 'none') found |= 2
  }
  return found === 3 ? headersWeight : null
}

function priorityText({ stream, isExclusive, dependsOn, weight }: Http2Priority): string {
  return `${stream}:${isExclusive ? 1 : 0}:${dependsOn}:${weight}`
}

/** Without `:protocol`: a client has one fingerprint, also if its first request is for a WebSocket. */
function pseudoHeaderOrder(rawHeaders: readonly string[]): string {
  const letters: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.charCodeAt(0) === COLON && name !== ':protocol') letters.push(name.charAt(1))
  }
  return letters.join(',')
}

/** nghttp2 accepts 32 by default. Browsers send up to 7. */
export const SETTINGS_MAX = 32
/** Firefox sent 6 of them before it stopped using priorities. */
export const PRIORITIES_MAX = 32
const COLON = 0x3a

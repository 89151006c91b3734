import type { Software } from '../software.ts'

/** The headers that are evidence by their presence, absence, position or value. */
export const HEADER = {
  host: 1,
  connection: 2,
  'content-length': 3,
  'sec-ch-ua': 4,
  'sec-ch-ua-mobile': 5,
  'sec-ch-ua-platform': 6,
  'upgrade-insecure-requests': 7,
  'user-agent': 8,
  accept: 9,
  'sec-fetch-site': 10,
  'sec-fetch-mode': 11,
  'sec-fetch-user': 12,
  'sec-fetch-dest': 13,
  referer: 14,
  'accept-encoding': 15,
  'accept-language': 16,
  cookie: 17,
  priority: 18,
  te: 19,
  'content-type': 20,
  origin: 21,
  'cache-control': 22,
  pragma: 23,
  dnt: 24,
  'sec-gpc': 25,
  authorization: 26,
  'x-api-key': 27,
  'api-key': 28,
  upgrade: 29,
  purpose: 30,
  'sec-purpose': 31,
} as const

type HeaderName = keyof typeof HEADER

/** A header that a Software sends. */
interface Pattern {
  readonly software: Software
  /** The parts of its value between stars, in lower case; `null` if any value matches. */
  readonly value: readonly string[] | null
}

class Header {
  /** A code of HEADER, or 0. */
  readonly code: number
  /** Lowest `givesWay` first. */
  readonly #patterns: readonly Pattern[]
  /** The Software, if no pattern asks for a value. */
  readonly #ofAnyValue: Software | null
  /** By the value as sent: most browsers send a few. */
  #found = new Map<string, Software | null>()

  constructor(code: number, patterns: readonly Pattern[]) {
    this.code = code
    this.#patterns = patterns
    this.#ofAnyValue = patterns.every(({ value }) => value === null) ? (patterns[0]?.software ?? null) : null
  }

  get isEvidence(): boolean {
    return this.#patterns.length > 0
  }

  softwareOf(value: string): Software | null {
    if (this.#ofAnyValue !== null) return this.#ofAnyValue
    if (value.length > VALUE_LENGTH_MAX) return softwareOf(this.#patterns, value)
    const known = this.#found.get(value)
    if (known !== undefined) return known
    const software = softwareOf(this.#patterns, value)
    if (this.#found.size >= VALUES_MAX) this.#found = new Map()
    this.#found.set(value, software)
    return software
  }
}

/** Finds headers by name, regardless of case. */
export class HeaderIndex {
  readonly #headers = new Map<string, Header>()
  readonly #other = new Header(0, [])
  /** By the name as sent, so that each spelling is lower-cased only once. */
  #sent = new Map<string, Header>()

  constructor(list: readonly Software[]) {
    const patterns = new Map<string, Pattern[]>()
    for (const software of list) {
      for (const signature of software.signatures) {
        if (signature.type !== 'header') continue
        const value = signature.value?.split('*') ?? null
        patterns.set(signature.name, [...(patterns.get(signature.name) ?? []), { software, value }])
      }
    }
    for (const name of [...Object.keys(HEADER), ...patterns.keys()])
      this.#headers.set(
        name,
        new Header(
          Object.hasOwn(HEADER, name) ? HEADER[name as HeaderName] : 0,
          (patterns.get(name) ?? []).sort((a, b) => a.software.givesWay - b.software.givesWay),
        ),
      )
  }

  find(sent: string): Header {
    const known = this.#sent.get(sent)
    if (known !== undefined) return known
    const header = this.#headers.get(sent.toLowerCase()) ?? this.#other
    if (this.#sent.size >= SENT_MAX) this.#sent = new Map()
    if (sent.length <= NAME_LENGTH_MAX) this.#sent.set(sent, header)
    return header
  }
}

/**
 * The first Software whose pattern matches the value. A pattern with a value has precedence over one without.
 */
function softwareOf(patterns: readonly Pattern[], value: string): Software | null {
  let found: Software | null = null
  const lower = value.toLowerCase()
  for (const pattern of patterns) {
    if (pattern.value === null) found ??= pattern.software
    else if (fits(pattern.value, lower)) return pattern.software
  }
  return found
}

function fits(parts: readonly string[], value: string): boolean {
  if (parts.length === 1) return value === parts[0]
  const last = parts.length - 1
  if (!value.startsWith(parts[0]!)) return false
  let at = parts[0]!.length
  for (let i = 1; i < last; i++) {
    const found = value.indexOf(parts[i]!, at)
    if (found === -1) return false
    at = found + parts[i]!.length
  }
  return value.length - parts[last]!.length >= at && value.endsWith(parts[last]!)
}

/** Different spellings of header names. All clients of a site together send a few hundred. */
const SENT_MAX = 2048
const NAME_LENGTH_MAX = 64
/** Different values of each header that names software. Longer ones are compared each time. */
const VALUES_MAX = 64
const VALUE_LENGTH_MAX = 256

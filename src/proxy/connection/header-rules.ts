import { isForwardingHeader, isOurHeader, OUR_NAME_PATTERNS } from '../../classify/verdict/our-headers.ts'
import { foldHeaderName, NameLook } from '../../wire/header-name.ts'

/** The header settings: `proxy.odd_header_names` and the related ones. */
export interface HeaderSettings {
  readonly oddNames: 'drop' | 'pass' | 'refuse'
  /** Removed unless a trusted proxy sends them and `trusted` contains them. */
  readonly untrusted: readonly string[]
  /** Passed on if a trusted proxy sends them. */
  readonly trusted: readonly string[]
  /** The header with the JA4 from the hops in `proxy.ja4_hops`. */
  readonly ja4Header: string
}

/** How the proxy treats a header name. `null`: passed on unchanged. */
export type NameKind =
  /** Only the proxy may set it. */
  | 'ours'
  /** Set by the proxy and read from trusted proxies. */
  | 'forwarding'
  | 'untrusted'
  | 'method-override'
  | 'hop-by-hop'
  | 'te'
  | 'host'
  | 'cookie'

/** Decides which client headers reach the app. Built once from the settings. */
export class HeaderRules {
  readonly oddNames: HeaderSettings['oddNames']
  /** In lower case. */
  readonly ja4Header: string
  /** By folded name, as everywhere in this class. */
  readonly #kinds = new Map<string, NameKind>(BUILT_IN)
  readonly #trusted: ReadonlySet<string>
  readonly #look: NameLook

  constructor({ oddNames, untrusted, trusted, ja4Header }: HeaderSettings) {
    this.oddNames = oddNames
    this.ja4Header = ja4Header.toLowerCase()
    this.#trusted = new Set(trusted.map(foldHeaderName))
    for (const name of untrusted.map(foldHeaderName)) {
      if (this.kindOf(name) === null) this.#kinds.set(name, 'untrusted')
    }
    this.#look = new NameLook([...this.#kinds.keys(), ...OUR_NAME_PATTERNS, this.ja4Header, ...PSEUDO])
  }

  /** Whether a plain name needs a closer check. Most names do not. */
  mayBeSpecial(name: string): boolean {
    return this.#look.mayHave(name)
  }

  kindOf(folded: string): NameKind | null {
    const kind = this.#kinds.get(folded)
    if (kind !== undefined) return kind
    if (isOurHeader(folded)) return 'ours'
    return isForwardingHeader(folded) ? 'untrusted' : null
  }

  /** Whether this header is believed if a trusted proxy sends it. */
  isTrusted(folded: string): boolean {
    return this.#trusted.has(folded)
  }

  /**
   * Whether a name with odd characters may be passed on: never if a server could read it as a name with a
   * meaning.
   */
  passesOdd(folded: string): boolean {
    return this.oddNames === 'pass' && this.kindOf(folded) === null && !GUARDED.has(folded)
  }
}

/** Content-Length and Transfer-Encoding are framing; Expect and Upgrade are handled by the exchange. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

const BUILT_IN: readonly (readonly [name: string, kind: NameKind])[] = [
  ...[...HOP_BY_HOP].map((name) => [name, 'hop-by-hop'] as const),
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'forwarded'].map(
    (name) => [name, 'forwarding'] as const,
  ),
  ['x-real-ip', 'forwarding'],
  ...['x-http-method-override', 'x-http-method', 'x-method-override'].map(
    (name) => [name, 'method-override'] as const,
  ),
  ['te', 'te'],
  ['host', 'host'],
  ['cookie', 'cookie'],
]
/** HTTP/2 pseudo-headers of any length. */
const PSEUDO = [':*']
/**
 * Names that servers, frameworks or this proxy act on. A server that folds names reads `Content_Type` or
 * `Authorization.` as the real header; everything in front of it does not.
 */
const GUARDED: ReadonlySet<string> = new Set([
  'accept',
  'accept-charset',
  'accept-encoding',
  'accept-language',
  'authorization',
  'cache-control',
  'content-digest',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-location',
  'content-md5',
  'content-range',
  'content-type',
  'date',
  'dnt',
  'from',
  'origin',
  'pragma',
  'range',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'max-forwards',
  'proxy-authenticate',
  'proxy-authorization',
  'referer',
  'set-cookie',
  'signature',
  'signature-agent',
  'signature-input',
  'trailer',
  'user-agent',
  'via',
  'www-authenticate',
  'x-csrf-token',
  'x-xsrf-token',
  'x-requested-with',
  'traceparent',
  'tracestate',
  'baggage',
])

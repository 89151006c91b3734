import { isIP, isIPv6 } from 'node:net'
import { didYouMean } from '../shared/did-you-mean.ts'
import { isOurHeader } from '../classify/verdict/our-headers.ts'
import { Fault } from '../shared/fault.ts'
import { foldHeaderName } from '../wire/header-name.ts'
import { parseAddressRange } from '../wire/address-ranges.ts'
import { parseDurationMs } from '../policy/duration.ts'
import { shown } from '../shared/problem.ts'
import { asciiHint } from '../wire/host.ts'

/** How the value of a setting is written, and its type in the program. */
export interface Kind<Value> {
  /** Shown in the documentation. */
  readonly takes: string
  /** A file or folder. In a settings file, the path is relative to that file. */
  readonly isPath?: true
  /** Parses a value from a file. Throws a Fault that says what is wrong. */
  parse(raw: unknown): Value
  /** Converts the text of a variable or flag to the value a file would have. */
  fromText(text: string): unknown
}

export interface HostPort {
  readonly host: string
  readonly port: number
}

export const text: Kind<string> = {
  takes: 'text',
  parse(raw) {
    if (typeof raw !== 'string' || raw === '') throw refused(raw, 'text')
    if (CONTROL.test(raw)) throw new Fault(INVALID, 'contains a control character')
    return raw
  },
  fromText: same,
}

export const path: Kind<string> = { ...text, takes: 'path', isPath: true }

export const boolean: Kind<boolean> = {
  takes: 'true, false',
  parse(raw) {
    if (typeof raw === 'boolean') return raw
    throw refused(raw, 'true or false')
  },
  fromText: (given) => (given === 'true' ? true : given === 'false' ? false : given),
}

export function integer(min: number, max: number): Kind<number> {
  const takes = `${min} to ${max}`
  return {
    takes,
    parse(raw) {
      if (typeof raw === 'number' && Number.isSafeInteger(raw) && raw >= min && raw <= max) return raw
      throw refused(raw, `a whole number from ${takes}`)
    },
    fromText: (given) => (/^\d{1,15}$/.test(given) ? Number(given) : given),
  }
}

/** A fraction from 0 to 1. */
export const share: Kind<number> = {
  takes: '0 to 1',
  parse(raw) {
    if (typeof raw === 'number' && raw >= 0 && raw <= 1) return raw
    throw refused(raw, 'a number from 0 to 1')
  },
  fromText: (given) => (/^\d(?:\.\d{1,12})?$/.test(given) ? Number(given) : given),
}

/** In milliseconds. If `min` is `0`, the setting defines whether 0 means "forever" or "at once". */
export function duration(min: string, max: string): Kind<number> {
  const takes = `${min} to ${max}`
  const [minMs, maxMs] = [parseDurationMs(min)!, parseDurationMs(max)!]
  return {
    takes,
    parse(raw) {
      const written = raw === 0 ? '0' : raw
      const milliseconds = typeof written === 'string' ? parseDurationMs(written) : null
      if (milliseconds === null)
        throw refused(raw, `a number with its unit: ms, s, m, h or d${withUnit(raw, 's')}`)
      if (milliseconds >= minMs && milliseconds <= maxMs) return milliseconds
      throw refused(raw, takes)
    },
    fromText: same,
  }
}

/** In bytes. */
export function size(min: string, max: string): Kind<number> {
  const takes = `${min} to ${max}`
  const [minBytes, maxBytes] = [parseSize(min)!, parseSize(max)!]
  return {
    takes,
    parse(raw) {
      const bytes = typeof raw === 'string' ? parseSize(raw) : null
      if (bytes === null)
        throw refused(raw, `a number with its unit: B, KiB, MiB or GiB${withUnit(raw, 'B')}`)
      if (bytes >= minBytes && bytes <= maxBytes) return bytes
      throw refused(raw, takes)
    },
    fromText: same,
  }
}

export function choice<Choice extends string>(...choices: readonly Choice[]): Kind<Choice> {
  return {
    takes: choices.join(', '),
    parse(raw) {
      // YAML 1.2 parses `off` as text, and a version such as 1.2 as a number.
      const written = typeof raw === 'number' ? String(raw) : raw
      const found = choices.find((each) => each === written)
      if (found !== undefined) return found
      const near = typeof raw === 'string' ? didYouMean(raw, choices) : ''
      throw refused(raw, `${choices.join(', ')}${near}`)
    },
    fromText: same,
  }
}

/** The address must be explicit: some read `:8443` as all addresses, others as this machine only. */
export const listenAddress: Kind<HostPort> = {
  takes: 'HOST:PORT',
  parse(raw) {
    const [, host, digits] = (typeof raw === 'string' && HOST_PORT.exec(raw)) || []
    const port = Number(digits)
    const bare = host?.replace(/^\[(.*)\]$/, '$1') ?? ''
    const isHost = host?.startsWith('[') ? isIPv6(bare) : isIP(bare) === 4 || isHostName(bare)
    if (isHost && port <= 65_535) return { host: bare, port }
    throw refused(raw, 'HOST:PORT, like 127.0.0.1:8443, or 0.0.0.0:8443 and [::]:8443 for all addresses')
  },
  fromText: same,
}

/** A DNS server. Its address is required: its name would need a DNS server to resolve. */
export const resolverAddress: Kind<string> = {
  takes: 'ADDRESS:PORT',
  parse(raw) {
    const [, host, port] = (typeof raw === 'string' && HOST_PORT.exec(raw)) || []
    const bare = host?.replace(/^\[(.*)\]$/, '$1') ?? ''
    const isAddress = host?.startsWith('[') ? isIPv6(bare) : isIP(bare) === 4
    if (isAddress && Number(port) >= 1 && Number(port) <= 65_535) return raw as string
    throw refused(raw, 'ADDRESS:PORT, like 192.0.2.53:53 or [2001:db8::53]:53')
  },
  fromText: same,
}

/** URL of the dashboard and the API as people reach it. */
export const webUrl: Kind<string> = {
  takes: 'http:// or https:// URL',
  parse(raw) {
    const url = typeof raw === 'string' ? URL.parse(raw) : null
    refuseUser(url)
    const isWeb = url !== null && ['http:', 'https:'].includes(url.protocol)
    if (isWeb && url.search === '' && url.hash === '') return url.href
    throw refused(raw, 'a URL with http:// or https://, without query and fragment')
  },
  fromText: same,
}

/**
 * URL of an OpenID provider (OpenID Connect Discovery 1.0 §3). The caller decides whether http is allowed.
 */
export const issuerUrl: Kind<string> = {
  takes: 'https:// URL',
  parse(raw) {
    const href = webUrl.parse(raw)
    const [issuer, behind] = href.split('/.well-known/')
    if (behind === undefined) return href
    throw refused(raw, `the URL without /.well-known/ (did you mean ${issuer}?)`)
  },
  fromText: same,
}

/** An origin as browsers send it: no path, no default port. */
export const webOrigin: Kind<string> = {
  takes: 'https://HOST or https://HOST:PORT',
  parse(raw) {
    const url = typeof raw === 'string' ? URL.parse(raw) : null
    const isWeb = url !== null && ['http:', 'https:'].includes(url.protocol)
    if (isWeb && url.href === `${url.origin}/`) return url.origin
    throw refused(raw, 'an origin like https://console.example, without a path')
  },
  fromText: same,
}

/** A URL without secrets, so it may be shown. */
export const storeUrl: Kind<string> = {
  takes: 'sqlite:FILE or postgres://USER@HOST/DATABASE',
  parse(raw) {
    if (typeof raw !== 'string') throw refused(raw, this.takes)
    if (/^sqlite:./.test(raw)) return raw
    const url = /^postgres(?:ql)?:/.test(raw) ? URL.parse(raw) : null
    if (url !== null && (url.password !== '' || url.searchParams.has('password')))
      throw new Fault(INVALID, 'contains a password; move it to `store.password`, which is never shown')
    if (url !== null) return raw
    throw refused(raw, this.takes)
  },
  fromText: same,
}

/** A URL to fetch from. It contains no secrets, so it may be shown. */
export const httpsUrl: Kind<string> = {
  takes: 'https:// URL',
  parse(raw) {
    const url = typeof raw === 'string' ? URL.parse(raw) : null
    refuseUser(url)
    if (url !== null && (url.search !== '' || url.hash !== ''))
      throw new Fault(
        INVALID,
        'contains a query or a fragment; put a secret into `token`, which is never shown',
      )
    if (url?.protocol === 'https:') return url.href
    throw refused(raw, 'a URL with https://')
  },
  fromText: same,
}

/** Syslog server. The port is required because there is no common default. */
export const syslogUrl: Kind<string> = {
  takes: 'udp://, tcp:// or tls://HOST:PORT',
  parse(raw) {
    const [, host, port] = (typeof raw === 'string' && SYSLOG_URL.exec(raw)) || []
    const isHost = host?.startsWith('[')
      ? isIPv6(host.slice(1, -1))
      : host !== undefined && (isIP(host) === 4 || isHostName(host))
    if (isHost && Number(port) >= 1 && Number(port) <= 65_535) return raw as string
    throw refused(raw, `${this.takes}, like tls://logs.example:6514`)
  },
  fromText: same,
}

export const busUrl: Kind<string> = {
  takes: 'nats:// or tls://HOST:PORT',
  parse(raw) {
    const url = typeof raw === 'string' ? URL.parse(raw) : null
    if (url !== null && (url.username !== '' || url.password !== ''))
      throw new Fault(INVALID, 'contains a user; move it to `bus.user` and `bus.password`')
    const isBare = url !== null && ['', '/'].includes(url.pathname) && url.search === '' && url.hash === ''
    if (isBare && ['nats:', 'tls:'].includes(url.protocol) && url.hostname !== '') return raw as string
    throw refused(raw, `${this.takes}, like nats://nats.example:4222`)
  },
  fromText: same,
}

export const busName: Kind<string> = {
  takes: 'letters, digits and _ -',
  parse(raw) {
    if (typeof raw === 'string' && BUS_NAME.test(raw)) return raw
    throw refused(raw, 'up to 32 letters, digits, _ and -')
  },
  fromText: same,
}

export const feedKey: Kind<string> = {
  takes: 'ed25519:BASE64',
  parse(raw) {
    if (typeof raw === 'string' && FEED_KEY.test(raw)) return raw
    throw refused(
      raw,
      'ed25519: followed by 32 bytes in base64, as printed by `gatehouse signatures feed-key`',
    )
  },
  fromText: same,
}

export const upstreamUrl: Kind<string> = {
  takes: 'http://, https://, h2c:// or h2:// with HOST:PORT, or unix:/PATH',
  parse(raw) {
    if (typeof raw !== 'string') throw refused(raw, this.takes)
    if (/^unix:\/[^\0]+$/.test(raw)) return raw
    const [, scheme, host, port] = UPSTREAM_URL.exec(raw) ?? []
    if (scheme !== undefined && host !== undefined) {
      const isHost = host.startsWith('[') ? isIPv6(host.slice(1, -1)) : isIP(host) === 4 || isHostName(host)
      const isPort = port === undefined || (Number(port) >= 1 && Number(port) <= 65_535)
      if (isHost && isPort) return raw
    }
    refuseUser(URL.parse(raw))
    throw refused(raw, `${this.takes}${upstreamHint(raw)}`)
  },
  fromText: same,
}

export const addressRange: Kind<string> = {
  takes: 'address or range',
  parse(raw) {
    if (typeof raw === 'string' && parseAddressRange(raw) !== null) return raw
    throw refused(raw, 'an address or a range, like 10.0.0.0/8 or 2001:db8::/32')
  },
  fromText: same,
}

export const headerName: Kind<string> = {
  takes: 'header name',
  parse(raw) {
    if (typeof raw === 'string' && TOKEN.test(raw)) return raw.toLowerCase()
    throw refused(raw, 'a header name')
  },
  fromText: same,
}

/**
 * A client header that settings may remove or trust. Excludes headers that only the gateway sets and headers
 * that HTTP needs.
 */
export const clientHeaderName: Kind<string> = {
  ...headerName,
  parse(raw) {
    const name = headerName.parse(raw)
    const folded = foldHeaderName(name)
    if (isOurHeader(folded))
      throw new Fault(INVALID, `"${name}" is a header that only the proxy sets; remove it`)
    if (OF_HTTP.has(folded))
      throw new Fault(
        INVALID,
        `"${name}" is a header of HTTP itself, which the proxy always rewrites; remove it`,
      )
    return name
  },
}

export const hostName: Kind<string> = {
  takes: 'host name',
  parse(raw) {
    if (typeof raw === 'string' && isHostName(raw)) return raw
    throw refused(raw, 'a host name')
  },
  fromText: same,
}

/** A host name, `*.` and a host name (any one label in front), or an address as in a Host header. */
export const hostPattern: Kind<string> = {
  takes: 'host name, *.host name, or address',
  parse(raw) {
    if (typeof raw === 'string' && isHostPattern(raw)) return raw
    const hint = typeof raw === 'string' ? asciiHint(raw) : ''
    throw refused(
      raw,
      `a host name, *. and a host name, or an address like 192.0.2.1 or [2001:db8::1], without a port${hint}`,
    )
  },
  fromText: same,
}

/** A name for metrics and rules. */
export const name: Kind<string> = {
  takes: 'letters, digits and . _ -',
  parse(raw) {
    if (typeof raw === 'string' && NAME.test(raw)) return raw
    throw refused(raw, 'up to 64 letters and digits, with . _ - between them')
  },
  fromText: same,
}

export const urlPath: Kind<string> = {
  takes: 'path',
  parse(raw) {
    if (typeof raw === 'string' && /^\/[!-~]*$/.test(raw)) return raw
    throw refused(raw, 'a path that starts with /')
  },
  fromText: same,
}

/** The same kind, or `null`. */
export function optional<Value>(kind: Kind<Value>): Kind<Value | null> {
  return { ...kind, parse: (raw) => (raw === null ? null : kind.parse(raw)) }
}

export function isEverywhere({ host }: HostPort): boolean {
  return host === '0.0.0.0' || host === '::'
}

/** Warns about values above `limit`. */
export function above(limit: number, what: string): (value: number) => string | null {
  return (value) => (value > limit ? what : null)
}

export function slow(what: string, limitMs = 60_000): (valueMs: number) => string | null {
  return (valueMs) => (valueMs > limitMs ? `${what} are kept open for that long` : null)
}

/** Warns about a range that is wider than any plausible network. */
export function wide(what: string): (range: string) => string | null {
  return (text) => {
    const range = parseAddressRange(text)
    if (range === null) return null
    const word = range.isIpv4 ? 3 : 0
    const width = range.last[word]! - range.first[word]!
    return width >= (range.isIpv4 ? IPV4_WIDE : IPV6_WIDE) ? what : null
  }
}

export function syslogRisk(url: string | null): string | null {
  return url === null ? null : (SYSLOG_RISKS.get(url.split(':', 1)[0]!) ?? null)
}

export const INVALID = 'CONFIG_INVALID'

function same(given: string): string {
  return given
}

function refused(raw: unknown, takes: string): Fault {
  return new Fault(INVALID, `is ${shown(raw)}; expected ${takes}`)
}

/** Suggests a unit for a bare number: `(did you mean 10s?)`. */
function withUnit(raw: unknown, unit: string): string {
  const isBare =
    typeof raw === 'number' ? Number.isSafeInteger(raw) : typeof raw === 'string' && /^\d+$/.test(raw)
  return isBare ? ` (did you mean ${raw}${unit}?)` : ''
}

function parseSize(written: string): number | null {
  const [, number, unit] = SIZE.exec(written) ?? []
  return unit === undefined ? null : Number(number) * BYTES.get(unit)!
}

/** Does not quote the value: it usually contains a password. */
function refuseUser(url: URL | null): void {
  if (url !== null && (url.username !== '' || url.password !== ''))
    throw new Fault(INVALID, 'contains a user, but credentials are never sent there; remove it')
}

function upstreamHint(raw: string): string {
  if (raw.startsWith('unix:')) return '; the path of a socket must start with /'
  if (/^[^/]+:\d+$/.test(raw) || isHostName(raw)) return ` (did you mean http://${raw}?)`
  const url = URL.parse(raw)
  const hasPath = url !== null && (url.pathname.length > 1 || url.search !== '')
  return hasPath ? '; remove the path: the path of each request is forwarded' : ''
}

function isHostPattern(text: string): boolean {
  const address = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
  const family = isIP(address)
  if (family !== 0) return (family === 6) === (address !== text)
  return isHostName(text.replace(/^\*\./, ''))
}

function isHostName(host: string): boolean {
  return host.length <= 253 && HOST_NAME.test(host) && !/^[\d.]+$/.test(host)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it is for
const CONTROL = /[\x00-\x1f\x7f]/
const HOST_PORT = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+):(\d{1,5})$/
const HOST_NAME = /^(?!-)[\w-]{1,63}(?:\.[\w-]{1,63})*\.?$/
const UPSTREAM_URL = /^(https?|h2c?):\/\/(\[[0-9a-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?\/?$/i
const SYSLOG_URL = /^(?:udp|tcp|tls):\/\/(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})$/
const OF_HTTP: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'cookie',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
/** FEED_KEY: the last base64 character of 32 bytes encodes two unused bits, which must be zero. */
const BUS_NAME = /^[\w-]{1,32}$/
const FEED_KEY = /^ed25519:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/
const NAME = /^\w(?:[\w.-]{0,62}\w)?$/
const SIZE = /^(\d{1,9})(B|KiB|MiB|GiB)$/
const BYTES: ReadonlyMap<string, number> = new Map([
  ['B', 1],
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
])
/** Hardly any organisation owns a network wider than an IPv4 /8 or an IPv6 /16. */
const IPV4_WIDE = 2 ** 24
const IPV6_WIDE = 2 ** 16
const SYSLOG_RISKS: ReadonlyMap<string, string> = new Map([
  ['udp', 'lost messages are not sent again, and an attacker on the network can read and add events'],
  ['tcp', 'an attacker on the network can read and add events'],
])

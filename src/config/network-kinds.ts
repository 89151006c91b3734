import { isIP, isIPv6 } from 'node:net'
import { isOurHeader } from '../classify/verdict/our-headers.ts'
import { parseAddressRange } from '../wire/address-ranges.ts'
import { foldHeaderName } from '../wire/header-name.ts'
import { asciiHint, HOST_PATTERN_EXPECTED, isHostName, isHostPattern } from '../wire/host.ts'
import { type Kind, matching, written } from './kinds.ts'

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** The address must be explicit: some read `:8443` as all addresses, others as this machine only. */
export const listenAddress: Kind<HostPort> = written({
  takes: 'HOST:PORT',
  expected: 'HOST:PORT, like 127.0.0.1:8443, or 0.0.0.0:8443 and [::]:8443 for all addresses',
  parse(text) {
    const place = hostPortIn(text)
    return place !== null && (isAddress(place) || isHostName(place.host))
      ? { host: place.host, port: place.port }
      : null
  },
})

/** A DNS server. Its address is required: its name would need a DNS server to resolve. */
export const resolverAddress: Kind<string> = written({
  takes: 'ADDRESS:PORT',
  expected: 'ADDRESS:PORT, like 192.0.2.53:53 or [2001:db8::53]:53',
  parse(text) {
    const place = hostPortIn(text)
    return place !== null && isAddress(place) && place.port >= 1 ? text : null
  },
})

/** URL of the dashboard and the API as people reach it. */
export const webUrl: Kind<string> = written({
  takes: 'http:// or https:// URL',
  expected: 'a URL with http:// or https://, without query and fragment',
  problem: userIn,
  parse: webUrlIn,
})

/**
 * URL of an OpenID provider (OpenID Connect Discovery 1.0 §3). The caller decides whether http is allowed.
 */
export const issuerUrl: Kind<string> = {
  ...webUrl,
  takes: 'https:// URL',
  read(place) {
    const href = webUrl.read(place)
    const [issuer, behind] = href?.split('/.well-known/') ?? []
    return behind === undefined
      ? href
      : place.expected(`the URL without /.well-known/ (did you mean ${issuer}?)`)
  },
}

/** An origin as browsers send it: no path, no default port. */
export const webOrigin: Kind<string> = written({
  takes: 'https://HOST or https://HOST:PORT',
  expected: 'an origin like https://console.example, without a path',
  parse(text) {
    const url = URL.parse(text)
    const isWeb = url !== null && ['http:', 'https:'].includes(url.protocol)
    return isWeb && url.href === `${url.origin}/` ? url.origin : null
  },
})

/** A URL without secrets, so it may be shown. */
export const storeUrl: Kind<string> = written({
  takes: 'sqlite:FILE or postgres://USER@HOST/DATABASE',
  problem(text) {
    const url = postgresUrl(text)
    return url !== null && (url.password !== '' || url.searchParams.has('password'))
      ? 'contains a password; move it to `store.password`, which is never shown'
      : null
  },
  parse: (text) => (/^sqlite:./.test(text) || postgresUrl(text) !== null ? text : null),
})

/** Of ClickHouse, without secrets, so it may be shown. */
export const trafficUrl: Kind<string> = written({
  takes: 'clickhouse://USER@HOST:PORT/DATABASE',
  expected:
    'a URL like clickhouse://gatehouse@clickhouse.example:8123/gatehouse, or with clickhouses:// for TLS',
  problem: (text) =>
    URL.parse(text.replace(CLICKHOUSE, 'http'))?.password
      ? 'contains a password; move it to `traffic.password`, which is never shown'
      : null,
  parse(text) {
    const url = CLICKHOUSE.test(text) ? URL.parse(text.replace(CLICKHOUSE, 'http')) : null
    const isKnown = [...(url?.searchParams.keys() ?? [])].every((name) => name === 'cluster')
    const names = [url?.pathname.slice(1) ?? '', url?.searchParams.get('cluster') ?? 'none']
    return url !== null && isKnown && url.hash === '' && names.every((name) => CLICKHOUSE_NAME.test(name))
      ? text
      : null
  },
})

const CLICKHOUSE = /^clickhouse(?=s?:\/\/)/
const CLICKHOUSE_NAME = /^[\w-]{1,64}$/

/** A URL to fetch from. It contains no secrets, so it may be shown. */
export const httpsUrl: Kind<string> = written({
  takes: 'https:// URL',
  expected: 'a URL with https://',
  problem(text) {
    const url = URL.parse(text)
    const isMore = url !== null && (url.search !== '' || url.hash !== '')
    return (
      userIn(text) ??
      (isMore ? 'contains a query or a fragment; put a secret into `token`, which is never shown' : null)
    )
  },
  parse(text) {
    const url = URL.parse(text)
    return url?.protocol === 'https:' ? url.href : null
  },
})

const SYSLOG_TAKES = 'udp://, tcp:// or tls://HOST:PORT'

/** Syslog server. The port is required because no default is common. */
export const syslogUrl: Kind<string> = written({
  takes: SYSLOG_TAKES,
  expected: `${SYSLOG_TAKES}, like tls://logs.example:6514`,
  parse(text) {
    const [, place = ''] = SYSLOG_URL.exec(text) ?? []
    const found = hostPortIn(place)
    return found !== null && found.port >= 1 && (isAddress(found) || isHostName(found.host)) ? text : null
  },
})

/** A bucket, and the beginning of the names in it. Names of S3, which most other stores accept too. */
export const bucketUrl: Kind<string> = written({
  takes: 's3://BUCKET or s3://BUCKET/PREFIX',
  expected: 's3://BUCKET or s3://BUCKET/PREFIX, like s3://logs/gatehouse',
  parse: matching(/^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[\w.=-]{1,100}){0,10}\/?$/),
})

export const awsRegion: Kind<string> = written({
  takes: 'region',
  expected: 'a region, like eu-central-1',
  parse: matching(/^[a-z0-9-]{1,64}$/),
})

const BUS_TAKES = 'nats:// or tls://HOST:PORT'

/** A server of NATS. `name`: of the section with its login. */
function natsUrl(name: string): Kind<string> {
  return written({
    takes: BUS_TAKES,
    expected: `${BUS_TAKES}, like nats://nats.example:4222`,
    problem: (text) =>
      hasUser(URL.parse(text))
        ? `contains a user; move it to \`${name}.user\` and \`${name}.password\``
        : null,
    parse(text) {
      const url = URL.parse(text)
      const isBare = url !== null && ['', '/'].includes(url.pathname) && url.search === '' && url.hash === ''
      return isBare && ['nats:', 'tls:'].includes(url.protocol) && url.hostname !== '' ? text : null
    },
  })
}

export const busUrl = natsUrl('bus')
export const sinkNatsUrl = natsUrl('sinks.nats')

/** A subject of NATS to publish on. */
export const natsSubject: Kind<string> = written({
  takes: 'subject of NATS',
  expected: 'a subject of letters, digits, _ and - with dots between them, like requests.{app}',
  parse: matching(/^(?=.{1,200}$)(?:[\w-]+|\{app\})(?:\.(?:[\w-]+|\{app\}))*$/),
})

export const busName: Kind<string> = written({
  takes: 'letters, digits and _ -',
  expected: 'up to 32 letters, digits, _ and -',
  parse: matching(/^[\w-]{1,32}$/),
})

/** The last base64 character of 32 bytes encodes two unused bits, which must be zero. */
export const feedKey: Kind<string> = written({
  takes: 'ed25519:BASE64',
  expected: 'ed25519: followed by 32 bytes in base64, as printed by `gatehouse signatures feed-key`',
  parse: matching(/^ed25519:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/),
})

export const upstreamUrl: Kind<string> = written({
  takes: 'http://, https://, h2c:// or h2:// with HOST:PORT, or unix:/PATH',
  hint: upstreamHint,
  problem: userIn,
  parse(text) {
    if (/^unix:\/[^\0]+$/.test(text)) return text
    const [, host, port] = UPSTREAM_URL.exec(text) ?? []
    if (host === undefined) return null
    const isHost = host.startsWith('[') ? isIPv6(host.slice(1, -1)) : isIP(host) === 4 || isHostName(host)
    const isPort = port === undefined || (Number(port) >= 1 && Number(port) <= 65_535)
    return isHost && isPort ? text : null
  },
})

export const addressRange: Kind<string> = written({
  takes: 'address or range',
  expected: 'an address or a range, like 10.0.0.0/8 or 2001:db8::/32',
  parse: (text) => (parseAddressRange(text) === null ? null : text),
})

export const headerName: Kind<string> = written({
  takes: 'header name',
  expected: 'a header name',
  parse: headerNameIn,
})

/**
 * A client header that settings may remove or trust. Excludes headers that only the gateway sets and headers
 * that HTTP needs.
 */
export const clientHeaderName: Kind<string> = written({
  takes: 'header name',
  expected: 'a header name',
  problem(text) {
    const name = headerNameIn(text)
    if (name === null) return null
    if (isOurHeader(foldHeaderName(name))) return `"${name}" is a header that only the proxy sets; remove it`
    return OF_HTTP.has(foldHeaderName(name))
      ? `"${name}" is a header of HTTP itself, which the proxy always rewrites; remove it`
      : null
  },
  parse: headerNameIn,
})

export const hostName: Kind<string> = written({
  takes: 'host name',
  expected: 'a host name',
  parse: (text) => (isHostName(text) ? text : null),
})

export const hostPattern: Kind<string> = written({
  takes: 'host name, *.host name, or address',
  expected: HOST_PATTERN_EXPECTED,
  hint: asciiHint,
  parse: (text) => (isHostPattern(text) ? text : null),
})

export const urlPath: Kind<string> = written({
  takes: 'path',
  expected: 'a path that starts with /',
  parse: matching(/^\/[!-~]*$/),
})

export function isEverywhere({ host }: HostPort): boolean {
  return host === '0.0.0.0' || host === '::'
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

interface WrittenHostPort extends HostPort {
  readonly isInBrackets: boolean
}

function hostPortIn(text: string): WrittenHostPort | null {
  const [, host, port] = HOST_PORT.exec(text) ?? []
  if (host === undefined || Number(port) > 65_535) return null
  const isInBrackets = host.startsWith('[')
  const bare = isInBrackets ? host.slice(1, -1) : host
  return isInBrackets && !isIPv6(bare) ? null : { host: bare, port: Number(port), isInBrackets }
}

/** IPv6 only in brackets. */
function isAddress({ host, isInBrackets }: WrittenHostPort): boolean {
  return isInBrackets || isIP(host) === 4
}

function webUrlIn(text: string): string | null {
  const url = URL.parse(text)
  const isWeb = url !== null && ['http:', 'https:'].includes(url.protocol)
  return isWeb && url.search === '' && url.hash === '' ? url.href : null
}

function postgresUrl(text: string): URL | null {
  return /^postgres(?:ql)?:/.test(text) ? URL.parse(text) : null
}

function hasUser(url: URL | null): boolean {
  return url !== null && (url.username !== '' || url.password !== '')
}

/** Does not quote the value: it usually contains a password. */
function userIn(text: string): string | null {
  return hasUser(URL.parse(text)) ? 'contains a user, but credentials are never sent there; remove it' : null
}

function headerNameIn(text: string): string | null {
  return TOKEN.test(text) ? text.toLowerCase() : null
}

function upstreamHint(raw: string): string {
  if (raw.startsWith('unix:')) return '; the path of a socket must start with /'
  if (/^[^/]+:\d+$/.test(raw) || isHostName(raw)) return ` (did you mean http://${raw}?)`
  const url = URL.parse(raw)
  const hasPath = url !== null && (url.pathname.length > 1 || url.search !== '')
  return hasPath ? '; remove the path: the path of each request is forwarded' : ''
}

const HOST_PORT = /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+):(\d{1,5})$/
const UPSTREAM_URL = /^(?:https?|h2c?):\/\/(\[[0-9a-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?\/?$/i
const SYSLOG_URL = /^(?:udp|tcp|tls):\/\/((?:\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5})$/
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
/** Hardly any organisation owns a network wider than an IPv4 /8 or an IPv6 /16. */
const IPV4_WIDE = 2 ** 24
const IPV6_WIDE = 2 ** 16
const SYSLOG_RISKS: ReadonlyMap<string, string> = new Map([
  ['udp', 'lost messages are not sent again, and an attacker on the network can read and add events'],
  ['tcp', 'an attacker on the network can read and add events'],
])

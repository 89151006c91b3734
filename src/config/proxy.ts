import { boolean, choice, duration, integer, optional, path, share } from './kinds.ts'
import { appId } from './apps.ts'
import {
  addressRange,
  clientHeaderName,
  headerName,
  hostPattern,
  type HostPort,
  isEverywhere,
  listenAddress,
  upstreamUrl,
  wide,
} from './network-kinds.ts'
import { type ValueOf, list, noRisk, secret, section, sections, setting, short } from './items.ts'
import type { Secret } from '../shared/secret.ts'
import { LIMITS, type LimitsConfig, limitsConfig } from './limits.ts'
import { UPSTREAM, type UpstreamConfig, upstreamConfig } from './upstream.ts'

const CERTIFICATE = section('', {
  cert_file: setting(path, undefined, 'The certificate: PEM with its chain, DER, or PKCS#12 with its key.'),
  key_file: setting(optional(path), null, 'Its private key, if it is in a separate file.'),
  key_passphrase: secret('Passphrase of an encrypted key, or of a PKCS#12 file.', 0),
})

/** Settings of `proxy` for the client headers that reach the app. */
const HEADERS = {
  odd_header_names: setting(
    choice('drop', 'pass', 'refuse'),
    'drop',
    'What to do with headers and trailers whose names contain other characters than letters, digits and hyphens, like `X_Plan` or `x.plan`: many servers read them as `X-Plan`. `drop` removes them before forwarding. `refuse` answers 400, and removes such trailers. `pass` forwards them, except alternative spellings of headers that this proxy sets or removes, and of common ones like `Content_Length`. Metric: `gatehouse_odd_header_names_total`.',
    (names) => (names === 'pass' ? 'servers that normalize names can read them as other headers' : null),
  ),
  untrusted_headers: list(
    clientHeaderName,
    'Headers that are removed in every spelling, because apps commonly trust them. If a trusted proxy sends one and `trusted_headers` lists it, it is forwarded. All other headers that start with `X-Forwarded-` are treated the same.',
    noRisk,
    [
      'true-client-ip',
      'x-client-ip',
      'x-cluster-client-ip',
      'cf-connecting-ip',
      'fastly-client-ip',
      'x-original-url',
      'x-rewrite-url',
      'proxy',
    ],
  ),
  trusted_headers: list(
    clientHeaderName,
    'Headers that are trusted and forwarded unchanged if they come from `trusted_proxies`. Possible are headers that this proxy otherwise sets or removes: `x-forwarded-*`, `forwarded`, `x-real-ip` and `untrusted_headers`. List only headers that your proxy in front sets or removes itself. Even if `forwarded` is not listed, it is read for the address of the client if X-Forwarded-For is missing.',
    noRisk,
    ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-port'],
  ),
}

export const PROXY = section('The data plane.', {
  listen: setting(listenAddress, '0.0.0.0:8443', 'Address for client connections with TLS.'),
  plain_listen: setting(
    optional(listenAddress),
    null,
    'Address for client connections without TLS, in addition to `listen`. These connections have no TLS fingerprint.',
    (place) =>
      place !== null && isEverywhere(place)
        ? 'this traffic is not encrypted, and the address is reachable on every network interface'
        : null,
  ),
  workers: setting(
    optional(integer(1, 256)),
    null,
    'Number of worker processes. `null`: one for each core, at most 4; with `gatehouse proxy` 1. Each worker has its own limits, connections and memory.',
  ),
  upstream: short(list(upstreamUrl, ''), 'Short form for one upstream with these URLs.'),
  upstreams: sections(
    UPSTREAM,
    'The applications behind the proxy. The first one receives every request that no rule routes elsewhere.',
  ),
  trusted_proxies: list(
    addressRange,
    'Proxies whose X-Forwarded-For, Forwarded and PROXY headers are trusted. The last 64 entries of X-Forwarded-For are read, and a Forwarded header of at most 4 KiB. `trusted_headers` lists the other headers that are trusted.',
    wide('any client in this range can claim any address'),
  ),
  ...HEADERS,
  proxy_protocol: setting(
    choice('off', 'optional', 'required'),
    'off',
    'Whether trusted proxies start a connection with a PROXY header (v1 or v2).',
  ),
  ja4_hops: section('Proxies in front of this one that terminate TLS and report the JA4 of the client.', {
    addresses: list(
      addressRange,
      'Their addresses.',
      wide('any client in this range can claim any fingerprint'),
    ),
    header: setting(headerName, 'x-ja4-fingerprint', 'The header in which they send the JA4.'),
  }),
  app: setting(
    optional(appId),
    null,
    'The app that all requests to this proxy belong to, for a proxy in front of a single app. `null`: the app whose `hosts` match, see `apps`, otherwise `default`.',
  ),
  hosts: list(
    hostPattern,
    'Hosts that clients may request, without a port: `shop.example`, `*.shop.example` (exactly one label before it), `192.0.2.1`, `[2001:db8::1]`. Empty: any host.',
  ),
  unknown_host: setting(
    choice('refuse', 'pass'),
    'refuse',
    'What to do with a request for a host that is not in `hosts`: `refuse` it (421), or `pass` it to the upstream and count it. A rule with `host` matches it only if the rule names that host.',
  ),
  tls: section('', {
    cert_file: short(CERTIFICATE.members.cert_file, 'Short form for one certificate.'),
    key_file: short(CERTIFICATE.members.key_file, 'Its private key.'),
    key_passphrase: short(CERTIFICATE.members.key_passphrase, 'Passphrase of its private key.'),
    certificates: sections(
      CERTIFICATE,
      'The certificate is selected by the server name (SNI) that the client sends. If none matches, the first is used. Empty: a development certificate is created in `data.dir`.',
    ),
    min_version: setting(choice('1.2', '1.3'), '1.2', 'The oldest TLS version that is accepted.'),
    client_certificates: setting(
      choice('off', 'request'),
      'off',
      'Whether to request a client certificate. It is optional for the client, and is used only for its JA4X.',
    ),
    client_ca_file: setting(
      optional(path),
      null,
      'PEM file with the CAs that are listed in the certificate request.',
    ),
    ticket_key_file: setting(
      optional(path),
      null,
      'File with the session ticket key that all replicas share: 48 bytes, raw, hexadecimal or base64. `null`: a new key is created at each start.',
    ),
    sni_mismatch: setting(
      choice('allow', 'reject'),
      'allow',
      'Whether the host of a request may differ from the server name (SNI) of its connection. If rejected, the answer is 421.',
    ),
    require_sni: setting(
      optional(boolean),
      null,
      'Whether a connection must send a server name (SNI); if it is missing, the answer is 421. `null`: only with `sni_mismatch: reject`. Clients that connect to an IP address send no server name.',
    ),
  }),
  fast_lane: setting(boolean, true, 'Whether HTTP/1.1 requests in the usual form use a faster parser.'),
  http2: setting(
    choice('own', 'node'),
    'own',
    'Who reads and writes HTTP/2 for clients. `own`: Gatehouse, which refuses every malformed request and costs less. `node`: Node itself, as in earlier releases; this choice will go in the release after next.',
  ),
  access_log: setting(
    choice('off', 'common', 'json'),
    'off',
    'Writes one line for each request: in the common log format followed by the decision, or as JSON. Query strings are omitted.',
  ),
  access_log_file: setting(
    optional(path),
    null,
    'The access log file. If it is moved away, a new file is opened within a second. `null`: standard output.',
  ),
  access_log_sample: setting(share, 1, 'The share of requests that is logged; 1: all.'),
  limits: LIMITS,
  drain_timeout: setting(
    duration('0', '1h'),
    '30s',
    'At shutdown, how long to wait for requests in progress.',
  ),
  websocket_grace: setting(
    duration('0', '1h'),
    '10s',
    'At shutdown, how long to wait for WebSockets and other upgraded connections.',
  ),
  signature_key: secret(
    'Key that signs the headers sent to the upstream (HMAC-SHA256, `X-Agent-Signature`).',
    16,
  ),
  fail: setting(
    choice('open', 'closed'),
    'open',
    'Whether to serve a TLS client whose ClientHello could not be parsed: `open` serves it, `closed` does not.',
  ),
  ready: setting(
    choice('always', 'upstream'),
    'always',
    'What `/health/ready` answers while an upstream has no healthy target. `always`: the proxy stays ready and answers requests with 502. `upstream`: it is not ready (503), so that a load balancer sends requests elsewhere; set `health.path` for each upstream.',
  ),
})

export interface ProxyConfig {
  readonly listen: HostPort
  readonly plainListen: HostPort | null
  readonly workers: number
  /** One or more, with unique names. The first is the default for requests that no rule routes. */
  readonly upstreams: readonly UpstreamConfig[]
  readonly trustedProxies: readonly string[]
  readonly proxyProtocol: 'off' | 'optional' | 'required'
  readonly ja4Hops: { readonly addresses: readonly string[]; readonly header: string }
  /** The app of every request; `null`: by host. */
  readonly app: string | null
  /** Empty: any host. */
  readonly hosts: readonly string[]
  readonly unknownHost: 'refuse' | 'pass'
  /** Which client headers reach the app. Names are in lower case. */
  readonly headers: {
    readonly oddNames: 'drop' | 'pass' | 'refuse'
    readonly untrusted: readonly string[]
    readonly trusted: readonly string[]
  }
  readonly tls: TlsConfig
  readonly limits: LimitsConfig
  readonly drainTimeoutMs: number
  readonly websocketGraceMs: number
  readonly signatureKey: Secret<string> | null
  readonly fail: 'open' | 'closed'
  readonly ready: 'always' | 'upstream'
  readonly fastLane: boolean
  readonly http2: 'own' | 'node'
  /** `null`: no access log. */
  readonly accessLog: {
    readonly format: 'common' | 'json'
    readonly file: string | null
    readonly sample: number
  } | null
}

interface TlsConfig {
  /** Empty: a development certificate. */
  readonly certificates: readonly CertificateConfig[]
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly clientCertificates: 'off' | 'request'
  readonly clientCaFile: string | null
  readonly ticketKeyFile: string | null
  readonly sniMismatch: 'allow' | 'reject'
  readonly requireSni: boolean
}

export interface CertificateConfig {
  readonly certificateFile: string
  readonly keyFile: string | null
  readonly passphrase: Secret<string> | null
}

export function proxyConfig(proxy: ValueOf<typeof PROXY>, workersDefault: number): ProxyConfig {
  return {
    listen: proxy.listen,
    plainListen: proxy.plain_listen,
    workers: proxy.workers ?? workersDefault,
    upstreams: proxy.upstreams.map(upstreamConfig),
    trustedProxies: proxy.trusted_proxies,
    proxyProtocol: proxy.proxy_protocol,
    ja4Hops: proxy.ja4_hops,
    app: proxy.app,
    hosts: proxy.hosts,
    unknownHost: proxy.unknown_host,
    headers: {
      oddNames: proxy.odd_header_names,
      untrusted: proxy.untrusted_headers,
      trusted: proxy.trusted_headers,
    },
    tls: tlsConfig(proxy.tls),
    limits: limitsConfig(proxy.limits),
    drainTimeoutMs: proxy.drain_timeout,
    websocketGraceMs: proxy.websocket_grace,
    signatureKey: proxy.signature_key,
    fail: proxy.fail,
    ready: proxy.ready,
    fastLane: proxy.fast_lane,
    http2: proxy.http2,
    accessLog:
      proxy.access_log === 'off'
        ? null
        : {
            format: proxy.access_log,
            file: proxy.access_log_file,
            sample: proxy.access_log_sample,
          },
  }
}

function tlsConfig(tls: ValueOf<typeof PROXY>['tls']): TlsConfig {
  return {
    certificates: tls.certificates.map((certificate) => ({
      certificateFile: certificate.cert_file,
      keyFile: certificate.key_file,
      passphrase: certificate.key_passphrase,
    })),
    minVersion: tls.min_version === '1.3' ? 'TLSv1.3' : 'TLSv1.2',
    clientCertificates: tls.client_certificates,
    clientCaFile: tls.client_ca_file,
    ticketKeyFile: tls.ticket_key_file,
    sniMismatch: tls.sni_mismatch,
    requireSni: tls.require_sni ?? tls.sni_mismatch === 'reject',
  }
}

/** The first part of a JA4 in words (see FoxIO's technical details of JA4); `null`: not a JA4. */
export function ja4Words(fingerprint: string): readonly (readonly [name: string, what: string])[] | null {
  const match = /^([tqd])(\d\d|s[23]|d[123])([di])(\d\d)(\d\d)([0-9a-z]{2})_/.exec(fingerprint)
  if (match === null) return null
  const [, protocol, version, sni, ciphers, extensions, alpn] = match as unknown as readonly string[]
  return [
    ['Transport', PROTOCOLS[protocol!]!],
    ['TLS version', VERSIONS[version!] ?? 'unknown'],
    ['Server name', sni === 'd' ? 'sent' : 'not sent (no SNI)'],
    ['Cipher suites', `${Number(ciphers)} offered`],
    ['Extensions', `${Number(extensions)} sent`],
    [
      'Application protocol',
      alpn === '00' ? 'none offered' : (ALPN[alpn!] ?? `starts and ends with “${alpn}”`),
    ],
  ]
}

/** Position on the map: the number of cipher suites and extensions; `null`: not a JA4. */
export function ja4Place(
  fingerprint: string,
): { readonly ciphers: number; readonly extensions: number } | null {
  const match = /^[tqd](?:\d\d|s[23]|d[123])[di](\d\d)(\d\d)/.exec(fingerprint)
  return match === null ? null : { ciphers: Number(match[1]), extensions: Number(match[2]) }
}

const PROTOCOLS: Readonly<Record<string, string>> = { t: 'TCP', q: 'QUIC', d: 'DTLS' }
const VERSIONS: Readonly<Record<string, string>> = {
  ...{ '13': '1.3', '12': '1.2', '11': '1.1', '10': '1.0', s3: 'SSL 3.0', s2: 'SSL 2.0' },
  ...{ d1: 'DTLS 1.0', d2: 'DTLS 1.2', d3: 'DTLS 1.3' },
}
const ALPN: Readonly<Record<string, string>> = { h2: 'HTTP/2', h1: 'HTTP/1.1', h3: 'HTTP/3' }

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ethernet, ipv4, pcap, tcp, udp } from '../capture/packet-builder.ts'

/**
 * What other programs read in the bytes recorded: tshark in hellos and requests, openssl in certificates. Our own
 * code takes no part, and the raw forms below are written for plain programs alone: what would need a rule fails.
 */
export interface ClientRaw {
  readonly r: string
  readonly ro: string
}

/** A handshake message in one record each, or the datagrams of one DTLS handshake; `null` for other messages. */
export function rawClientHellos(packets: readonly Buffer[], transport: 'tcp' | 'dtls'): (ClientRaw | null)[] {
  return dissectHellos(packets, transport).map((fields) => {
    if (fields('handshake.type')[0] !== '1' || isPart(fields)) return null
    const versions = fields('handshake.extensions.supported_version')
    const ciphers = fields('handshake.ciphersuite').map(hex4)
    const extensions = fields('handshake.extension.type').map(hex4)
    const algorithms = fields('handshake.sig_hash_alg').map(hex4)
    const [protocol = '00'] = fields('handshake.extensions_alpn_str')
    assert(/^[a-z0-9].*[a-z0-9]$/.test(protocol), 'a protocol that needs the rule for odd ones')
    assert(ciphers.length < 100 && extensions.length < 100, 'counts that need the cap')
    const all = [...versions, ...ciphers, ...extensions, ...algorithms]
    assert(!all.some((value) => /(.a)\1$/.test(value)), 'GREASE that needs leaving out')

    const version = MARKS[versions.toSorted().at(-1) ?? fields('handshake.version')[0]!]
    const sni = extensions.includes('0000') ? 'd' : 'i'
    const counts = two(ciphers.length) + two(extensions.length)
    const a = `${transport === 'dtls' ? 'd' : 't'}${version}${sni}${counts}${protocol[0]}${protocol.at(-1)}`
    const tail = algorithms.length === 0 ? '' : `_${algorithms.join(',')}`
    const hashed = extensions.filter((type) => type !== '0000' && type !== '0010')
    return {
      r: `${a}_${ciphers.toSorted().join(',')}_${hashed.toSorted().join(',')}${tail}`,
      ro: `${a}_${ciphers.join(',')}_${extensions.join(',')}${tail}`,
    }
  })
}

export function rawServerHellos(packets: readonly Buffer[], transport: 'tcp' | 'dtls'): (string | null)[] {
  return dissectHellos(packets, transport).map((fields) => {
    if (fields('handshake.type')[0] !== '2' || isPart(fields)) return null
    const extensions = fields('handshake.extension.type').map(hex4)
    const [protocol = '00'] = fields('handshake.extensions_alpn_str')
    const version =
      MARKS[fields('handshake.extensions.supported_version')[0] ?? fields('handshake.version')[0]!]
    const a = `${transport === 'dtls' ? 'd' : 't'}${version}${two(extensions.length)}${protocol[0]}${protocol.at(-1)}`
    return `${a}_${hex4(fields('handshake.ciphersuite')[0]!)}_${extensions.join(',')}`
  })
}

export interface DissectedRequest {
  readonly method: string
  readonly version: '10' | '11' | '20'
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly r: readonly [string, string, string, string]
}

/** Everything that a client sent on a connection on which it made one request. */
export function dissectRequest(bytes: Buffer, http2: boolean): DissectedRequest {
  const names = http2 ? HTTP2_FIELDS : HTTP1_FIELDS
  const [fields] = tshark([{ protocol: 'tcp', payload: bytes }], names, http2 ? 'http2' : 'http')
  assert(fields !== undefined)
  const headers = http2
    ? fields('http2.header.name').map((name, index) => [name, fields('http2.header.value')[index]!] as const)
    : fields('http.request.line').map((line) => {
        const [, name, value] = /^([^:]+): ?(.*?)(?:\\r\\n)$/.exec(line)! // tshark escapes the line end
        return [name!, value!] as const
      })
  const method = http2 ? headers.find(([name]) => name === ':method')![1] : fields('http.request.method')[0]!
  const version = http2 ? '20' : fields('http.request.version')[0] === 'HTTP/1.0' ? '10' : '11'
  return { method, version, headers, r: rawRequest(method, version, headers) }
}

function rawRequest(
  method: string,
  version: string,
  headers: readonly (readonly [string, string])[],
): readonly [string, string, string, string] {
  const is = (wanted: string) => headers.filter(([name]) => name.toLowerCase() === wanted)
  const counted = headers.map(([name]) => name).filter((name) => !/^(:.*|cookie|referer)$/i.test(name))
  const [[, language = ''] = []] = is('accept-language')
  assert(
    /^(\*|[a-z]{2}(-[A-Z]{2})?([,;].*)?|)$/.test(language),
    'a language that needs the rule for odd ones',
  )
  const cookies = is('cookie').flatMap(([, value]) => value.split(/; ?/))
  assert(
    cookies.every((cookie) => /^[a-z]+=/.test(cookie)),
    'cookies that need the rules for odd ones',
  )
  cookies.sort()

  const mark = language
    .replace(/[,;].*/, '')
    .replace('-', '')
    .replace('*', '2a')
    .toLowerCase()
    .padEnd(4, '0')
  const flags = (cookies.length > 0 ? 'c' : 'n') + (is('referer').length > 0 ? 'r' : 'n')
  return [
    `${method.slice(0, 2).toLowerCase()}${version}${flags}${two(counted.length)}${mark}`,
    counted.join(','),
    cookies.map((cookie) => cookie.split('=')[0]).join(','),
    cookies.join(','),
  ]
}

/** By the offsets at which `openssl asn1parse` found the object identifiers, and how deep. */
export function rawCertificate(der: Buffer): string {
  const listing = execFileSync('openssl', ['asn1parse', '-inform', 'DER'], { input: der, encoding: 'utf8' })
  const parts: [issuer: string[], subject: string[], extensions: string[]] = [[], [], []]
  let sequences = 0
  let part: string[] | null = null
  for (const line of listing.split('\n')) {
    const match = /^ *(\d+):d=(\d+) +hl=(\d+) l= *(\d+) (?:prim|cons): (.+?) *(?::.*)?$/.exec(line)
    if (match === null) continue
    const [offset, depth, header, length] = match.slice(1, 5).map(Number) as [number, number, number, number]
    const tag = match[5]!
    if (depth === 1 && sequences > 0) break // the part that is signed is over
    if (depth === 2) {
      if (tag === 'SEQUENCE') sequences++
      part = parts[partAt(tag, sequences)] ?? null
    }
    if (depth === 5 && tag === 'OBJECT')
      part?.push(der.toString('hex', offset + header, offset + header + length))
  }
  return parts.map((oids) => oids.join(',')).join('_')
}

/** Among the sequences of the signed part issuer is the second one and subject the fourth; -1 for what is neither. */
function partAt(tag: string, sequences: number): number {
  if (tag === 'cont [ 3 ]') return 2
  return tag === 'SEQUENCE' ? [2, 4].indexOf(sequences) : -1
}

function dissectHellos(packets: readonly Buffer[], transport: 'tcp' | 'dtls'): Fields[] {
  const protocol = transport === 'dtls' ? 'dtls' : 'tls'
  const rows = tshark(
    packets.map((payload) => ({ protocol: transport === 'dtls' ? 'udp' : 'tcp', payload })),
    HELLO_FIELDS.map((field) => `${protocol}.${field}`),
    protocol,
  )
  return rows.map((fields) => (name: string) => fields(`${protocol}.${name}`))
}

/** A fragment that does not complete its message. */
function isPart(fields: Fields): boolean {
  return fields('handshake.ciphersuite').length === 0
}

type Fields = (name: string) => readonly string[]

interface Packet {
  readonly protocol: 'tcp' | 'udp'
  readonly payload: Buffer
}

/** A row for each packet. TCP packets are connections of their own, datagrams belong together. */
function tshark(packets: readonly Packet[], names: readonly string[], dissector: string): Fields[] {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  try {
    const file = join(folder, 'packets.pcap')
    const inners = packets.map(({ protocol, payload }, index) =>
      protocol === 'udp'
        ? udp(payload, { to: PORT })
        : tcp({ from: 20_000 + index, to: PORT, data: payload }),
    )
    writeFileSync(file, pcap(inners.map((inner) => ethernet(ipv4(inner)))))
    const decodeAs = `${packets[0]!.protocol}.port==${PORT},${dissector}`
    const fields = names.flatMap((name) => ['-e', name])
    const options = ['-T', 'fields', '-E', 'separator=\u0001', '-E', 'aggregator=\u0002', ...fields]
    const text = execFileSync('tshark', ['-n', '-r', file, '-d', decodeAs, ...options], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    return text
      .trimEnd()
      .split('\n')
      .map((row) => {
        const values = row.split('\u0001')
        return (name: string) =>
          values[names.indexOf(name)]?.split('\u0002').filter((value) => value !== '') ?? []
      })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** tshark prints some numbers in hex, some in decimal. */
function hex4(value: string): string {
  return Number(value).toString(16).padStart(4, '0')
}

function two(count: number): string {
  return String(count).padStart(2, '0')
}

const HELLO_FIELDS = [
  'handshake.type',
  'handshake.version',
  'handshake.ciphersuite',
  'handshake.extension.type',
  'handshake.extensions.supported_version',
  'handshake.sig_hash_alg',
  'handshake.extensions_alpn_str',
]
const HTTP1_FIELDS = ['http.request.method', 'http.request.version', 'http.request.line']
const HTTP2_FIELDS = ['http2.header.name', 'http2.header.value']
const MARKS: Readonly<Record<string, string>> = {
  '0x0304': '13',
  '0x0303': '12',
  '0x0302': '11',
  '0x0301': '10',
  '0xfeff': 'd1',
  '0xfefd': 'd2',
}
const PORT = 4433

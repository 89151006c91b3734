import { existsSync, readdirSync, readFileSync } from 'node:fs'
import {
  ethernet,
  geneve,
  gre,
  gtpu,
  type Inner,
  ipv4,
  ipv6,
  pcap,
  SYN,
  tcp,
  udp,
  vlan,
  vxlan,
} from '../capture/packet-builder.ts'
import { certificateBody, records, u24 } from '../vectors/hello-builder.ts'
import { readVectors } from '../vectors/vector.ts'
import { busSeeds } from './bus-target.ts'
import { chunkedSeeds } from './chunked-target.ts'
import { configSeeds } from './config-target.ts'
import { hpackSeeds } from './hpack-target.ts'
import { http2Seeds } from './http2-target.ts'
import { openingSeeds } from './opening-target.ts'
import { policySeeds } from './policy-target.ts'
import { proxyProtocolSeeds } from './proxy-protocol-target.ts'
import { responseSeeds } from './response-target.ts'
import { signaturesSeeds } from './signatures-target.ts'
import { signedSeeds } from './signed-target.ts'

/** What a target is fuzzed from: the project's own vectors, and what fuzzing has kept so far. */
export function seedsOf(target: string): Buffer[] {
  const seeds: Readonly<Record<string, () => Buffer[]>> = {
    ...{ wire, ja4x, http, capture, head },
    ...{ response: responseSeeds, chunked: chunkedSeeds },
    ...{ hpack: hpackSeeds, http2: http2Seeds, opening: openingSeeds, 'proxy-protocol': proxyProtocolSeeds },
    ...{ config: configSeeds, policy: policySeeds, signatures: signaturesSeeds },
    ...{ bus: busSeeds, signed: signedSeeds },
  }
  return [...seeds[target]!(), ...corpusOf(target).map(({ bytes }) => bytes)]
}

export interface CorpusFile {
  readonly name: string
  readonly bytes: Buffer
}

export function corpusOf(target: string): CorpusFile[] {
  const folder = corpusFolder(target)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .toSorted()
    .map((name) => ({ name, bytes: readFileSync(new URL(name, folder)) }))
}

export function corpusFolder(target: string): URL {
  return new URL(`corpus/${target}/`, import.meta.url)
}

const vectors = readVectors()
const messages = [...vectors.ja4, ...vectors.ja4s].map(({ handshake_hex }) =>
  Buffer.from(handshake_hex, 'hex'),
)

/** Streams, and messages by themselves. */
function wire(): Buffer[] {
  const streams = vectors.framing.flatMap((vector) =>
    'stream_hex' in vector ? [Buffer.from(vector.stream_hex.join(''), 'hex')] : [],
  )
  return [...messages, ...records(messages.slice(0, 20)), ...streams]
}

function ja4x(): Buffer[] {
  const ders = vectors.ja4x.map(({ der_hex }) => Buffer.from(der_hex, 'hex'))
  return [...ders, certificateBody(ders.slice(0, 3), '12'), certificateBody(ders.slice(0, 3), '13')]
}

/** Each request as HTTP/1 or as HTTP/2, where a header block may be a list of literals. */
function http(): Buffer[] {
  return vectors.ja4h.map(({ method, version, headers }) => {
    if (version === '20') return http2Stream([[':method', method], [':path', '/'], ...headers])
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
    return Buffer.from(`${method} / HTTP/${version === '10' ? '1.0' : '1.1'}\r\n${lines.join('')}\r\n`)
  })
}

/** Requests as they come in, and what the lanes differ in. */
function head(): Buffer[] {
  const lines = [
    ...[
      'Content-Length: 3',
      'Content-Length:0',
      'content-length: 3\r\nContent-Length: 3',
      'Connection: close',
    ],
    ...[
      'connection: Keep-Alive',
      'Connection: x, close',
      'Transfer-Encoding: chunked',
      'Expect: 100-continue',
    ],
    ...['Upgrade: h2c', 'Connection: Upgrade', 'Proxy-Connection: close', 'Keep-Alive: 5', 'TE: trailers'],
    ...['X:\t a b \t', 'X:', 'X: \x80\xff', 'Cookie: a=b; c=d', 'Trailer: x', 'HTTP2-Settings: AA'],
  ]
  const starts = ['GET / HTTP/1.1', 'POST /a/b?c=d HTTP/1.1', 'OPTIONS * HTTP/1.1', 'PUT http://a/ HTTP/1.1']
  const written = starts.flatMap((start) => lines.map((line) => `${start}\r\nHost: a\r\n${line}\r\n\r\nabc`))
  return [...http(), ...written.map((text) => Buffer.from(text, 'latin1'))]
}

/** The preface, SETTINGS, and a request as RFC 7541 §6.2.2 lets one write it. */
function http2Stream(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  const literal = (text: string) =>
    Buffer.concat([Buffer.of(Math.min(text.length, 126)), Buffer.from(text).subarray(0, 126)])
  const block = Buffer.concat(
    headers.flatMap(([name, value]) => [Buffer.of(0), literal(name), literal(value)]),
  )
  const settings = Buffer.from('000000040000000000', 'hex')
  const head = Buffer.concat([u24(block.length), Buffer.from('010500000001', 'hex'), block])
  return Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings, head])
}

/** A connection or a conversation each, in different packets, and one real capture with its keys. */
function capture(): Buffer[] {
  const streams = [...records(messages.slice(0, 6)), ...http().slice(0, 6), ...http().slice(-6)]
  const connections = streams.map((data, index) => {
    const half = data.length >> 1
    const segments = [
      { flags: SYN, sequence: 0 },
      { sequence: 1 + half, data: data.subarray(half) },
      { data: data.subarray(0, half) },
    ]
    return pcap(segments.map((segment) => ethernet(PACKETS[index % PACKETS.length]!(tcp(segment)))))
  })
  const flights = vectors.framing.flatMap((vector) => ('flights_hex' in vector ? [vector.flights_hex] : []))
  const datagrams = [
    ...flights.map((list) => list.map(([, hex]) => hex)),
    ...quicPackets.map(({ packet }) => [packet]),
  ]
  const conversations = datagrams.map((list) =>
    pcap(list.map((hex) => ethernet(ipv4(udp(Buffer.from(hex, 'hex')))))),
  )
  return [
    ...connections,
    ...conversations,
    readFileSync(new URL('../captures/sample.pcapng', import.meta.url)),
  ]
}

const quicPackets: readonly { readonly packet: string }[] = JSON.parse(
  readFileSync(new URL('../vectors/quic-packets.json', import.meta.url), 'utf8'),
)

const PACKETS: readonly ((inner: Inner) => Inner)[] = [
  ipv4,
  ipv6,
  (inner) => vlan(ipv4(inner)),
  (inner) => ipv4(gre(ipv4(inner))),
  (inner) => ipv4(geneve(ipv4(inner))),
  (inner) => ipv4(gtpu(ipv4(inner))),
  (inner) => ipv4(vxlan(ethernet(ipv4(inner)))),
]

import assert from 'node:assert/strict'
import { Analyzer } from '../../src/capture/analyzer.ts'
import type { Finding, HttpFinding, TlsFinding } from '../../src/capture/finding.ts'
import { KeyLog } from '../../src/capture/key-log.ts'
import { ja4 } from '../../src/fingerprint/ja4.ts'
import { ja4s } from '../../src/fingerprint/ja4plus/ja4s.ts'
import { parseClientHello } from '../../src/wire/client-hello.ts'
import { HelloReader } from '../../src/wire/record.ts'
import { parseServerHello, SERVER_HELLO } from '../../src/wire/server-hello.ts'
import type { Frame } from './packet-builder.ts'
import type { Chunk } from './recorded-tls.ts'

/** What the analyzer finds, in order. */
export interface Analysis {
  readonly findings: readonly Finding[]
  readonly tls: readonly TlsFinding[]
  readonly http: readonly HttpFinding[]
}

/** Frames are Ethernet's, unless they say otherwise, and numbered from 1. */
export function analyze(frames: readonly (Buffer | Frame)[], keyLog = '', ja4plus = true): Analysis {
  const findings: Finding[] = []
  const keys = new KeyLog()
  keys.add(keyLog)
  keys.end()
  const analyzer = new Analyzer({ ja4plus, found: (finding) => findings.push(finding) }, keys)
  for (const [i, frame] of frames.entries()) {
    const { linkType, bytes } = Buffer.isBuffer(frame) ? { linkType: 1, bytes: frame } : frame
    // A reader's buffer holds other bytes once the call is over.
    const borrowed = Buffer.from(bytes)
    analyzer.packet(i + 1, linkType, borrowed, 0, borrowed.length)
    borrowed.fill(0xee)
  }
  analyzer.end()
  return {
    findings,
    tls: findings.filter((finding) => finding.kind === 'tls'),
    http: findings.filter((finding) => finding.kind === 'http'),
  }
}

/** The first thing each side of a recorded connection says, and the fingerprints these bytes have by themselves. */
export interface Hellos {
  readonly client: Buffer
  readonly server: Buffer
  readonly ja4: string
  readonly ja4s: string
}

export function hellosOf(chunks: readonly Chunk[]): Hellos {
  const turn = chunks.findIndex(({ fromClient }) => !fromClient)
  const client = Buffer.concat(chunks.slice(0, turn).map(({ bytes }) => bytes))
  const back = chunks.findIndex(({ fromClient }, i) => i > turn && fromClient)
  const server = Buffer.concat(chunks.slice(turn, back).map(({ bytes }) => bytes))
  return { client, server, ja4: ja4OfStream(client), ja4s: ja4sOfStream(server) }
}

export function ja4OfStream(stream: Uint8Array): string {
  const read = new HelloReader().push(stream)
  assert.ok(read.kind === 'message', read.kind)
  const hello = parseClientHello(read.message)
  assert.ok(hello.kind === 'client-hello', hello.kind)
  return ja4(hello.hello, 'tcp')
}

export function ja4sOfStream(stream: Uint8Array): string {
  const read = new HelloReader(SERVER_HELLO).push(stream)
  assert.ok(read.kind === 'message', read.kind)
  const hello = parseServerHello(read.message)
  assert.ok(hello.kind === 'server-hello', hello.kind)
  return ja4s(hello.hello, 'tcp')
}

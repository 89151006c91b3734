import assert from 'node:assert/strict'
import { Analyzer } from '../../src/capture/analyzer.ts'
import { CaptureReader } from '../../src/capture/capture-file.ts'
import type { Finding } from '../../src/capture/finding.ts'
import { Http1Requests } from '../../src/capture/http1.ts'
import { Http2Requests } from '../../src/capture/http2.ts'
import { KeyLog } from '../../src/capture/key-log.ts'
import { ja4Forms } from '../../src/fingerprint/ja4.ts'
import { ja4h, ja4hRaw } from '../../src/fingerprint/ja4plus/ja4h.ts'
import { ja4s, ja4sRaw } from '../../src/fingerprint/ja4plus/ja4s.ts'
import { ja4x, ja4xRaw } from '../../src/fingerprint/ja4plus/ja4x.ts'
import { stableKey } from '../../src/fingerprint/stable-key.ts'
import { parseCertificates, parseCertificates13 } from '../../src/wire/certificate.ts'
import { CLIENT_HELLO, parseClientHello, parseDtlsClientHello } from '../../src/wire/client-hello.ts'
import { HelloReader, type HelloRead } from '../../src/wire/record.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'
import { parseDtlsServerHello, parseServerHello, SERVER_HELLO } from '../../src/wire/server-hello.ts'
import { parseCertificate } from '../../src/wire/x509.ts'
import { ja4Of, ja4sOf, ja4xOf } from '../vectors/derive.ts'
import { bus } from './bus-target.ts'
import { chunked } from './chunked-target.ts'
import { config } from './config-target.ts'
import { cut } from './cut.ts'
import type { Target } from './fuzzer.ts'
import { head } from './head-target.ts'
import { hpack } from './hpack-target.ts'
import { http2 } from './http2-target.ts'
import { opening } from './opening-target.ts'
import { policy } from './policy-target.ts'
import { proxyProtocol } from './proxy-protocol-target.ts'
import { response } from './response-target.ts'
import { signatures } from './signatures-target.ts'
import { signed } from './signed-target.ts'

/** What each part of the program promises for any bytes: a throw is a broken promise. */
export const TARGETS: Readonly<Record<string, Target>> = {
  ...{ wire, ja4x: certificates, http, capture, head, response, chunked },
  ...{ hpack, http2, opening, 'proxy-protocol': proxyProtocol },
  ...{ config, policy, signatures, bus, signed },
}

/** The first message of a stream is the same for every framing, and so is what a message says. */
function wire(bytes: Buffer): void {
  for (const type of [CLIENT_HELLO, SERVER_HELLO]) {
    const whole = firstMessage(type, [bytes])
    assert.deepEqual(firstMessage(type, cut(bytes)), whole)
    if (whole.kind === 'message') message(whole.message)
  }
  message(bytes)
}

function firstMessage(type: number, segments: readonly Uint8Array[]): HelloRead {
  const reader = new HelloReader(type)
  for (const segment of segments) {
    const lent = Buffer.from(segment)
    const read = reader.push(lent)
    if (read.kind === 'message') return { kind: 'message', message: Buffer.from(read.message) }
    if (read.kind === 'fault') return read
    lent.fill(0xee) // its owner's again
  }
  return { kind: 'need-more' }
}

/** One handshake message: whatever it claims to be, every parser gets it. */
function message(bytes: Uint8Array): void {
  const tcp = wholeOrNothing(parseClientHello, bytes, 4 + lengthIn(bytes))
  const dtls = wholeOrNothing(parseDtlsClientHello, bytes, 12 + lengthIn(bytes))
  for (const [read, transport] of [
    [tcp, 'tcp'],
    [tcp, 'quic'],
    [dtls, 'dtls'],
  ] as const) {
    if (read.kind === 'malformed') continue
    const forms = ja4Forms(read.hello, transport)
    assert.match(forms.ja4, JA4)
    assert.equal(forms.ja4, ja4Of(forms.ja4_r))
    assert.equal(forms.ja4_o, ja4Of(forms.ja4_ro))
    assert.match(stableKey(read.hello, transport), STABLE_KEY)
  }
  for (const [parse, header, transport] of [
    [parseServerHello, 4, 'tcp'],
    [parseDtlsServerHello, 12, 'dtls'],
  ] as const) {
    const read = wholeOrNothing(parse, bytes, header + lengthIn(bytes))
    if (read.kind === 'malformed') continue
    assert.match(ja4s(read.hello, transport), JA4S)
    assert.equal(ja4s(read.hello, transport), ja4sOf(ja4sRaw(read.hello, transport)))
  }
}

function lengthIn(bytes: Uint8Array): number {
  return bytes.length < 4 ? 0 : Buffer.from(bytes.buffer, bytes.byteOffset, 4).readUIntBE(1, 3)
}

/** What can be read can not be read when it is cut, and says the same with more behind it. */
function wholeOrNothing<Read extends { readonly kind: string }>(
  parse: (bytes: Uint8Array) => Read,
  bytes: Uint8Array,
  length: number,
): Read {
  const read = parse(bytes)
  if (read.kind === 'malformed') return read
  assert.ok(length <= bytes.length)
  for (const end of [0, 1, length >> 1, length - 2, length - 1]) {
    if (end < length) assert.equal(parse(bytes.subarray(0, end)).kind, 'malformed', `cut at ${end}`)
  }
  assert.deepEqual(parse(Buffer.concat([bytes, Buffer.of(0xff, 0)])), read)
  return read
}

/** A certificate is read whole or not at all, and the same wherever it lies. */
function certificates(bytes: Buffer): void {
  for (const parse of [parseCertificates, parseCertificates13]) {
    const list = parse(bytes)
    if (list.kind === 'malformed') continue
    assert.equal(parse(bytes.subarray(0, -1)).kind, 'malformed')
    for (const der of list.certificates) certificate(der)
  }
  certificate(bytes)
}

function certificate(der: Uint8Array): void {
  const read = parseCertificate(der)
  if (read.kind === 'malformed') return
  const value = ja4x(read.oids)
  assert.match(value, JA4X)
  assert.equal(value, ja4xOf(ja4xRaw(read.oids)))
  for (const end of [0, 1, der.length >> 1, der.length - 1])
    assert.equal(parseCertificate(der.subarray(0, end)).kind, 'malformed', `cut at ${end}`)
  const longer = Buffer.concat([der, Buffer.of(0)])
  assert.deepEqual(parseCertificate(longer), { kind: 'malformed', fault: 'trailing-data' })
  const elsewhere = Buffer.concat([Buffer.alloc(3, 0x30), der, Buffer.alloc(3, 0x30)]).subarray(3, -3)
  assert.deepEqual(parseCertificate(elsewhere), read)
}

/** The requests in a stream are the same however it is cut. */
function http(bytes: Buffer): void {
  for (const Requests of [Http1Requests, Http2Requests]) {
    const whole = requestsIn(Requests, [bytes])
    assert.deepEqual(requestsIn(Requests, cut(bytes)), whole)
    for (const head of whole) {
      assert.equal(head.rawHeaders.length % 2, 0)
      assert.match(ja4h(head), JA4H)
      assert.ok(ja4hRaw(head).startsWith(ja4h(head).slice(0, -39)))
    }
  }
}

function requestsIn(
  Requests: typeof Http1Requests | typeof Http2Requests,
  chunks: readonly Uint8Array[],
): RequestHead[] {
  const heads: RequestHead[] = []
  const reader = new Requests((head: RequestHead) => heads.push(head))
  for (const chunk of chunks) {
    const copy = Buffer.from(chunk)
    reader.push(copy, 1)
    copy.fill(0xee) // its owner's again
  }
  if (reader instanceof Http1Requests) reader.end()
  return heads
}

/** A capture has the same findings however its file is cut, and JA4 are JA4. */
function capture(bytes: Buffer): void {
  const whole = findingsIn([bytes])
  assert.deepEqual(findingsIn(cut(bytes)), whole)
  for (const finding of whole.findings) {
    if (finding.kind === 'http') assert.match(finding.ja4h!, JA4H)
    else for (const value of [finding.ja4, ...finding.ja4_later]) assert.match(value, JA4)
  }
}

function findingsIn(chunks: readonly Uint8Array[]): { findings: Finding[]; frames: number; fault: unknown } {
  const findings: Finding[] = []
  const keys = new KeyLog()
  const analyzer = new Analyzer({ ja4plus: true, found: (finding) => findings.push(finding) }, keys)
  const reader = new CaptureReader(analyzer)
  for (const chunk of chunks) {
    const copy = Buffer.from(chunk)
    reader.push(copy)
    copy.fill(0xee) // its owner's again
  }
  reader.end()
  analyzer.end()
  return { findings, frames: reader.frames, fault: reader.fault }
}

const JA4 = /^[tqd][0-9sd]\d[di]\d{4}[0-9A-Za-z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/
const STABLE_KEY = /^gs1-[tqd][0-9sd]\d[di]\d{4}[0-9A-Za-z]{2}-[0-9a-f]{12}-[0-9a-f]{12}$/
const JA4S = /^[tqd][0-9sd]\d\d\d[0-9A-Za-z]{2}_[0-9a-f]{4}_[0-9a-f]{12}$/
const JA4H = /^.{0,2}(?:10|11|20|30)[cn][rn]\d\d[0-9a-z]{4}(?:_[0-9a-f]{12}){3}$/s
const JA4X = /^[0-9a-f]{12}(?:_[0-9a-f]{12}){2}$/

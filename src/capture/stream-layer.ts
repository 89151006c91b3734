import { ByteQueue } from '../wire/byte-queue.ts'
import { HTTP2_PREFACE } from '../wire/http2-preface.ts'
import { mayBegin } from '../wire/opening-bytes.ts'
import { parseProxyHeader } from '../wire/proxy-protocol.ts'
import { HANDSHAKE } from '../wire/record.ts'
import type { Endpoints, FindingSink } from './finding.ts'
import { foundRequest } from './finding.ts'
import { Handshake } from './handshake.ts'
import { Http1Requests, looksLikeRequest } from './http1.ts'
import { Http2Requests } from './http2.ts'
import type { KeyLog } from './key-log.ts'
import { TlsSession } from './tls-session.ts'

/** A peer of a conversation, numbered in the order first seen. */
export type Side = 0 | 1

/**
 * The two directions of one stream. It detects the protocol on any port, also after a prologue (HTTP CONNECT,
 * SOCKS, STARTTLS, a PROXY header), and reads it. Decrypted TLS data goes to a layer of its own.
 */
export class StreamLayer {
  readonly #sink: FindingSink
  readonly #keys: KeyLog
  readonly #endpoints: (client: Side) => Endpoints
  readonly #depth: number
  readonly #sides: readonly [Speech, Speech] = [new Speech(), new Speech()]
  #tls: Tls | null = null
  #inner: StreamLayer | null = null

  constructor(sink: FindingSink, keys: KeyLog, endpoints: (client: Side) => Endpoints, depth = 0) {
    this.#sink = sink
    this.#keys = keys
    this.#endpoints = endpoints
    this.#depth = depth
  }

  /** Whether there is nothing more to learn. */
  get done(): boolean {
    return this.#tls !== null ? this.#tls.session.done : this.#sides[0].given && this.#sides[1].given
  }

  /** The memory of incomplete messages and of the pending finding. */
  get heldBytes(): number {
    const own = this.#tls === null ? 0 : this.#tls.session.heldBytes + this.#tls.handshake.heldBytes
    return this.#sides[0].heldBytes + this.#sides[1].heldBytes + own + (this.#inner?.heldBytes ?? 0)
  }

  data(side: Side, bytes: Uint8Array, frame: number): void {
    const speech = this.#sides[side]
    if (this.#tls !== null && speech.isTls) this.#tlsData(this.#tls, side, bytes, frame)
    else if (speech.http1 !== null) this.#http1Data(speech, speech.http1, side, bytes, frame)
    else if (speech.http2 !== null) this.#http2Data(speech, speech.http2, bytes, frame)
    else if (!speech.given) this.#unknownData(speech, side, bytes, frame)
  }

  /** `length` bytes of this side are missing from the capture. */
  gap(side: Side, length: number): void {
    const speech = this.#sides[side]
    if (this.#tls !== null && speech.isTls) this.#tls.session.gap(side === this.#tls.client)
    else if (speech.http1 !== null) speech.http1.skip(length)
    else if (speech.http2 !== null) speech.http2.skip(length)
    else speech.pass(speech.held.length + 1)
  }

  /** Ends the conversation: reports everything that was waiting for more data. */
  end(): void {
    for (const speech of this.#sides) speech.http1?.end()
    if (this.#tls !== null) this.#say(this.#tls)
    this.#inner?.end()
  }

  #tlsData(tls: Tls, side: Side, bytes: Uint8Array, frame: number): void {
    tls.session.push(side === tls.client, bytes, frame)
    if (tls.session.done) this.#say(tls)
  }

  /** After a CONNECT or an upgrade the stream goes on with another protocol. */
  #http1Data(speech: Speech, reader: Http1Requests, side: Side, bytes: Uint8Array, frame: number): void {
    if (reader.push(bytes, frame) !== 'opaque') return
    speech.http1 = null
    speech.pass(1)
    this.#unknownData(speech, side, reader.rest(), frame)
  }

  #http2Data(speech: Speech, reader: Http2Requests, bytes: Uint8Array, frame: number): void {
    if (reader.push(bytes, frame) === 'opaque') speech.give()
  }

  #unknownData(speech: Speech, side: Side, chunk: Uint8Array, frame: number): void {
    const waited = speech.held.length
    speech.held.push(chunk)
    const bytes = speech.held.rest()
    let opening = openingOf(bytes, 0, speech.passed)
    // The waiting bytes did not become anything. The new segment may be a beginning of its own.
    if (opening.kind === 'unknown' && waited > 0) opening = openingOf(bytes, waited, speech.passed + waited)
    if (opening.kind === 'unclear') return speech.wait(opening.at)
    speech.pass(bytes.length)
    const rest = bytes.subarray(opening.at)
    switch (opening.kind) {
      case 'client-hello':
        return this.#beginTls(side, side, rest, frame)
      case 'server-hello':
        return this.#beginTls(side === 0 ? 1 : 0, side, rest, frame)
      case 'http1':
        speech.http1 = new Http1Requests((head, at) =>
          foundRequest(this.#sink, this.#endpoints(side), head, at),
        )
        return this.#http1Data(speech, speech.http1, side, rest, frame)
      case 'http2':
        speech.http2 = new Http2Requests((head, at) =>
          foundRequest(this.#sink, this.#endpoints(side), head, at),
        )
        return this.#http2Data(speech, speech.http2, rest, frame)
      case 'unknown':
        if (speech.passed > UNKNOWN_BYTES_MAX) speech.give()
    }
  }

  /** The other side may still be in the prologue: a client need not wait for the answers there. */
  #beginTls(client: Side, side: Side, bytes: Uint8Array, frame: number): void {
    this.#tls ??= this.#newTls(client)
    if (this.#tls.client !== client) return // both claim to be the client
    this.#sides[side].isTls = true
    this.#tlsData(this.#tls, side, bytes, frame)
  }

  #newTls(client: Side): Tls {
    const handshake = new Handshake('tcp', this.#sink.ja4plus)
    const session = new TlsSession(this.#keys, handshake, (fromClient, plain, at) => {
      this.#innerLayer()?.data(fromClient ? client : client === 0 ? 1 : 0, plain, at)
    })
    return { client, handshake, session, said: false }
  }

  #innerLayer(): StreamLayer | null {
    if (this.#depth === DEPTH_MAX) return null
    this.#inner ??= new StreamLayer(this.#sink, this.#keys, this.#endpoints, this.#depth + 1)
    return this.#inner
  }

  #say(tls: Tls): void {
    if (tls.said) return
    tls.said = true
    const finding = tls.handshake.finding(this.#endpoints(tls.client))
    if (finding !== null) this.#sink.found(finding)
  }
}

/** The state of one side. */
class Speech {
  isTls = false
  http1: Http1Requests | null = null
  http2: Http2Requests | null = null
  /** The first bytes, while they are too few to decide. */
  readonly held = new ByteQueue()
  /** The number of unrecognised bytes so far. */
  passed = 0
  /** Given up: further bytes are ignored. */
  given = false

  get heldBytes(): number {
    return this.held.heldBytes + (this.http1?.heldBytes ?? 0) + (this.http2?.heldBytes ?? 0)
  }

  /** Waits for more bytes. Only the bytes from `at` on can still become something. */
  wait(at: number): void {
    this.held.skip(at)
    this.held.keep()
    this.passed += at
  }

  pass(length: number): void {
    this.held.clear()
    this.passed += length
  }

  give(): void {
    this.http2 = null
    this.given = true
    this.held.clear()
  }
}

interface Tls {
  readonly client: Side
  readonly handshake: Handshake
  readonly session: TlsSession
  said: boolean
}

interface Opening {
  readonly kind: 'client-hello' | 'server-hello' | 'http1' | 'http2' | 'unknown' | 'unclear'
  /** The offset of the beginning: a prologue may precede it in the same segment. */
  readonly at: number
}

/**
 * The protocol that begins in these bytes at `from`, the start of a segment. `passed` bytes of the stream
 * came before.
 */
function openingOf(bytes: Uint8Array, from: number, passed: number): Opening {
  const header = passed === 0 ? proxyHeaderLength(bytes) : 0
  if (header === null) return { kind: 'unclear', at: 0 }
  const at = from + header
  const hello = helloAt(bytes, at, passed > 0)
  if (hello !== 'no') return { kind: hello, at }
  const rest = bytes.subarray(at)
  if (rest.length > 0 && mayBegin(rest, HTTP2_PREFACE))
    return { kind: rest.length < HTTP2_PREFACE.length ? 'unclear' : 'http2', at }
  if (isText(rest[0]) && looksLikeRequest(rest) !== 'no') return { kind: 'http1', at }
  const end = passed < PROLOGUE_BYTES_MAX ? Math.min(bytes.length, at + PROLOGUE_BYTES_MAX) : 0
  for (let i = bytes.indexOf(HANDSHAKE, at + 1); i !== -1 && i < end; i = bytes.indexOf(HANDSHAKE, i + 1)) {
    const inside = helloAt(bytes, i, true)
    if (inside !== 'no') return { kind: inside, at: i }
  }
  return { kind: 'unknown', at }
}

/**
 * `strict` requires a matching version and lengths. In the middle of other data a weaker check would match by
 * chance.
 */
function helloAt(
  bytes: Uint8Array,
  at: number,
  strict: boolean,
): 'client-hello' | 'server-hello' | 'unclear' | 'no' {
  const left = bytes.length - at
  if (
    left === 0 ||
    bytes[at] !== HANDSHAKE ||
    (left > 1 && bytes[at + 1] !== 3) ||
    (left > 2 && bytes[at + 2]! > 4)
  )
    return 'no'
  if (left < (strict ? 11 : 6)) return 'unclear'
  const kind = bytes[at + 5] === 1 ? 'client-hello' : bytes[at + 5] === 2 ? 'server-hello' : 'no'
  if (kind === 'no' || !strict) return kind
  const record = (bytes[at + 3]! << 8) | bytes[at + 4]!
  const fits = record >= 6 && record <= 16_384 && bytes[at + 6] === 0
  return fits && bytes[at + 9] === 3 && bytes[at + 10]! <= 4 ? kind : 'no'
}

/** A cheap check that excludes most encrypted bytes. */
function isText(byte: number | undefined): boolean {
  return byte !== undefined && (byte > 0x20 || byte === 0x0a || byte === 0x0d) && byte < 0x7f
}

/**
 * The length of a PROXY protocol header (versions 1 and 2). 0 without one, `null` if more bytes are
 * needed.
 */
function proxyHeaderLength(bytes: Uint8Array): number | null {
  if (bytes.length === 0) return 0
  const read = parseProxyHeader(bytes)
  return read.kind === 'need-more' ? null : read.kind === 'header' ? read.length : 0
}

/** How far into a stream a hello is searched for in the middle of a segment. */
const PROLOGUE_BYTES_MAX = 4096
/** After so many unrecognised bytes the stream is given up. */
const UNKNOWN_BYTES_MAX = 1024 * 1024
/** TLS inside TLS: an HTTPS proxy, and another one behind it. */
const DEPTH_MAX = 3

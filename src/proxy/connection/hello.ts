import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { ByteQueue } from '../../wire/byte-queue.ts'
import { type ClientHello, parseClientHello } from '../../wire/client-hello.ts'
import { HTTP2_PREFACE } from '../../wire/http2-preface.ts'
import { mayBegin } from '../../wire/opening-bytes.ts'
import { HelloReader } from '../../wire/record.ts'
import type { FailureReason } from './connection.ts'
import { type ProxySource, parseProxyHeader } from '../../wire/proxy-protocol.ts'

export interface OpeningOptions {
  readonly isTls: boolean
  readonly timeoutMs: number
  /** Limit for everything up to the end of the hello. */
  readonly bytesMax: number
  /** Whether a PROXY header may or must come first from this peer. */
  readonly proxyHeader: 'none' | 'optional' | 'required'
}

export type Opening =
  | {
      readonly kind: 'tls'
      /** All bytes after a PROXY header, valid until TLS reads on. */
      readonly records: Uint8Array
      /** The handshake message. `null` if it cannot be parsed; TLS may still accept it. */
      readonly message: Uint8Array | null
      readonly hello: ClientHello | null
    }
  | { readonly kind: 'plain'; readonly isHttp2: boolean }
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly code: string }

/**
 * Reads the start of a connection and puts it back for the next reader: the ClientHello, or in plain text
 * enough to tell HTTP/2 from HTTP/1. A PROXY header before either is removed. After it `proxied` is called
 * and returns false if the connection is no longer wanted. `opened` is called once, at the end.
 */
export function readOpening(
  socket: Socket,
  options: OpeningOptions,
  proxied: (source: ProxySource | null) => boolean,
  opened: (opening: Opening) => void,
): void {
  const reader = new OpeningReader(options, proxied)
  readAhead(
    socket,
    options.timeoutMs,
    (queue, chunk) => reader.push(queue, chunk),
    (end) => {
      if (reader.isUnwanted) return
      if (reader.opening !== null) return opened(reader.opening)
      const reason = end !== 'timeout' ? 'gone' : options.isTls ? 'hello-timeout' : 'header-timeout'
      opened({ kind: 'failed', reason, code: reader.isSilent ? 'silent' : 'cut' })
    },
  )
}

/**
 * Reads ahead on a socket until `look` returns true, then puts the rest of the queue back. `look` gets all
 * bytes so far and the new ones. It may take bytes from the front of the queue that are not to be put back.
 */
export function readAhead(
  socket: Socket | TLSSocket,
  timeoutMs: number,
  look: (queue: ByteQueue, chunk: Uint8Array) => boolean,
  done: (end: ReadAheadEnd) => void,
): ReadAhead {
  const queue = new ByteQueue()
  const finish = (end: ReadAheadEnd) => {
    clearTimeout(timer)
    socket.off('readable', onReadable).off('end', onEnd).off('close', onEnd)
    const goesOn = end === 'enough' || end === 'stopped'
    if (goesOn && queue.length > 0) socket.unshift(queue.rest())
    done(end)
  }
  const onReadable = () => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      queue.push(chunk)
      if (look(queue, chunk)) return finish('enough')
    }
  }
  const onEnd = () => finish('ended')
  const timer = setTimeout(() => finish('timeout'), timeoutMs)
  socket.on('readable', onReadable).on('end', onEnd).on('close', onEnd)
  return { stop: () => finish('stopped') }
}

export type ReadAheadEnd = 'enough' | 'timeout' | 'ended' | 'stopped'

export interface ReadAhead {
  /** Stops reading ahead and puts the bytes back. Must not be called after `done`. */
  stop(): void
}

/** Reads the start of a connection from pieces of any size. */
class OpeningReader {
  opening: Opening | null = null
  /** `proxied` returned false: the connection is no longer wanted. */
  isUnwanted = false
  isSilent = true
  readonly #options: OpeningOptions
  readonly #proxied: (source: ProxySource | null) => boolean
  readonly #hello = new HelloReader()
  #expectsProxyHeader: boolean

  constructor(options: OpeningOptions, proxied: (source: ProxySource | null) => boolean) {
    this.#options = options
    this.#proxied = proxied
    this.#expectsProxyHeader = options.proxyHeader !== 'none'
  }

  /** Returns whether enough has been read. */
  push(queue: ByteQueue, chunk: Uint8Array): boolean {
    this.isSilent = false
    let fresh = chunk
    if (this.#expectsProxyHeader) {
      if (!this.#proxyHeader(queue)) return this.opening !== null || this.isUnwanted
      fresh = queue.rest()
    }
    if (fresh.length > 0) this.opening = this.#options.isTls ? this.#tls(queue, fresh) : plainOpening(queue)
    if (this.opening === null && queue.length > this.#options.bytesMax) this.opening = TOO_LONG
    return this.opening !== null
  }

  /** Returns whether the PROXY header was read or is absent. */
  #proxyHeader(queue: ByteQueue): boolean {
    const read = parseProxyHeader(queue.rest())
    if (read.kind === 'need-more') return false
    this.#expectsProxyHeader = false
    if (read.kind === 'malformed') {
      this.opening = { kind: 'failed', reason: 'proxy-protocol', code: read.fault }
      return false
    }
    if (read.kind === 'header') {
      queue.skip(read.length)
      this.isUnwanted = !this.#proxied(read.source)
      return !this.isUnwanted
    }
    if (this.#options.proxyHeader !== 'required') return true
    this.opening = { kind: 'failed', reason: 'proxy-protocol', code: 'missing' }
    return false
  }

  #tls(queue: ByteQueue, fresh: Uint8Array): Opening | null {
    const read = this.#hello.push(fresh)
    if (read.kind === 'need-more') return null
    if (read.kind === 'message') {
      const { message } = read
      const parsed = parseClientHello(message)
      const hello = parsed.kind === 'client-hello' ? parsed.hello : null
      return { kind: 'tls', records: queue.rest(), message, hello }
    }
    if (read.fault === 'too-long') return TOO_LONG
    if (read.fault === 'not-tls') {
      return { kind: 'failed', reason: 'not-tls', code: isUpperCase(fresh[0]!) ? 'http' : 'other' }
    }
    return { kind: 'tls', records: queue.rest(), message: null, hello: null }
  }
}

/** The HTTP/2 preface begins like no HTTP/1 method (RFC 9113 §3.4). */
function plainOpening(queue: ByteQueue): Opening | null {
  const bytes = queue.rest()
  if (!mayBegin(bytes, HTTP2_PREFACE)) return PLAIN_HTTP1
  return bytes.length >= HTTP2_PREFACE.length ? PLAIN_HTTP2 : null
}

function isUpperCase(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a
}

const TOO_LONG: Opening = { kind: 'failed', reason: 'hello-too-long', code: 'cut' }
const PLAIN_HTTP1: Opening = { kind: 'plain', isHttp2: false }
const PLAIN_HTTP2: Opening = { kind: 'plain', isHttp2: true }

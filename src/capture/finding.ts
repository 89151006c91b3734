import { isUtf8 } from 'node:buffer'
import { ja4h, ja4hRaw } from '../fingerprint/ja4plus/ja4h.ts'
import type { Transport } from '../wire/client-hello.ts'
import type { RequestHead } from '../wire/request-head.ts'

/** The two ends of a conversation. `src` is the client. */
export interface Endpoints {
  readonly src: string
  readonly src_port: number
  readonly dst: string
  readonly dst_port: number
}

/**
 * One TLS handshake, with the field names of `gatehouse analyze --json`. Parts that the capture lacks are
 * `null`.
 */
export interface TlsFinding extends Endpoints {
  readonly kind: 'tls'
  readonly transport: Transport
  /** The capture frame in which the ClientHello was complete, counted from 1. */
  readonly frame: number
  readonly sni: string | null
  /** The offered protocols, in order. */
  readonly alpn: readonly string[]
  readonly ja4: string
  readonly ja4_r: string
  readonly ja4_o: string
  readonly ja4_ro: string
  readonly ja4_stable: string
  /** JA4 of later hellos: after a HelloRetryRequest, a DTLS cookie or a renegotiation. */
  readonly ja4_later: readonly string[]
  readonly ja4s: string | null
  readonly ja4s_r: string | null
  readonly ja4s_later: readonly string[]
  readonly hello_retry_request: boolean
  /** The certificate chains of the server and the client: one value per certificate. */
  readonly ja4x: readonly string[]
  readonly ja4x_r: readonly string[]
  readonly ja4x_client: readonly string[]
}

/** One HTTP request, plain or decrypted. */
export interface HttpFinding extends Endpoints {
  readonly kind: 'http'
  readonly transport: 'tcp'
  /** The capture frame in which the request ended. */
  readonly frame: number
  readonly http: 'http1' | 'http2'
  readonly method: string
  readonly path: string
  readonly ja4h: string | null
  readonly ja4h_r: string | null
}

export type Finding = TlsFinding | HttpFinding

/** Receives the findings. */
export interface FindingSink {
  /** Whether JA4S, JA4H and JA4X are computed. */
  readonly ja4plus: boolean
  found(finding: Finding): void
}

export function foundRequest(
  sink: FindingSink,
  endpoints: Endpoints,
  head: RequestHead,
  frame: number,
): void {
  sink.found({
    kind: 'http',
    transport: 'tcp',
    frame,
    ...endpoints,
    http: head.version === '20' ? 'http2' : 'http1',
    method: readable(head.method),
    path: readable(head.target),
    ja4h: sink.ja4plus ? ja4h(head) : null,
    ja4h_r: sink.ja4plus ? readable(ja4hRaw(head)) : null,
  })
}

/** Text that was read as latin1, decoded as UTF-8 if it is valid UTF-8. */
function readable(text: string): string {
  if (Buffer.byteLength(text) === text.length) return text
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : text
}

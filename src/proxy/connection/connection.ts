import type { Socket } from 'node:net'
import type { Conduct } from '../../classify/verdict/conduct.ts'
import type { ConnectionPrint } from '../../fingerprint/print.ts'
import type { Introduction } from './app-headers.ts'

/** One client connection, shared by all its requests. */
export interface Connection {
  /** Unique within the process. */
  readonly id: number
  /** The client's address: the peer's own, or the one in a trusted proxy's PROXY header. */
  readonly address: string
  readonly port: number
  /** The address of the TCP peer. It differs from `address` only behind a trusted proxy. */
  readonly peerAddress: string
  readonly localPort: number
  /** The proxy's own address on this connection. */
  readonly localAddress: string
  readonly protocol: 'h1' | 'h2'
  readonly isTls: boolean
  readonly serverName: string | null
  readonly print: ConnectionPrint
  /**
   * The client's behaviour on this connection so far. `null` before its first request, and for a client that
   * relays requests.
   */
  conduct: Conduct | null
  /**
   * That of its last request. `null` before the first forwarded request, and if the client is a trusted hop.
   */
  introduction: Introduction | null
  /** The host of an earlier request that the settings allow (`HostGate`). */
  admittedAuthority: string | null
  /** `address` belongs to a trusted proxy: its forwarding headers are believed. */
  readonly isTrusted: boolean
  /** `address` belongs to a hop whose JA4 header is used. */
  readonly isJa4Hop: boolean
}

/** Why a connection, or a request on it, failed before it was served. */
export type FailureReason =
  /** Over `connectionsMax` (code `total`) or `connectionsPerAddressMax` (code `address`). */
  | 'too-many-connections'
  /** The PROXY header is malformed (the fault is the code), `missing`, or its peer is `untrusted`. */
  | 'proxy-protocol'
  /** The client closed before its first bytes were complete: `silent` if it sent nothing, otherwise `cut`. */
  | 'gone'
  /** The hello was not complete in time: `silent` or `cut`. */
  | 'hello-timeout'
  | 'hello-too-long'
  /** Not TLS on a TLS port: `http` or `other`. */
  | 'not-tls'
  /** The hello could not be parsed, and TLS failed too. The code is the TLS error. */
  | 'malformed-hello'
  /** TLS failed or the peer closed. The code is the error. */
  | 'handshake'
  | 'handshake-timeout'
  /**
   * A request head (in HTTP/2: the opening of the connection) was not complete in time: `silent` or `cut`.
   */
  | 'header-timeout'
  /** The request must not be forwarded. The code names the problem. */
  | 'bad-request'
  /** The client violated or abused HTTP/2. The code is one of ABUSE, or Node's. */
  | 'h2-protocol'
  /** A drain closed the connection before its first bytes were complete. */
  | 'draining'

export interface ConnectionFailure {
  readonly reason: FailureReason
  readonly code: string | null
  readonly address: string
  readonly isTls: boolean
}

/** The result of a handshake. */
export interface SecuredConnection {
  /** For example `TLSv1.3`. */
  readonly version: string
  /** Whether an earlier session was resumed. */
  readonly isResumed: boolean
  readonly protocol: 'h1' | 'h2'
  readonly durationMs: number
}

/** The stage of a connection. */
export type Stage = 'opening' | 'handshake' | 'h1' | 'h2' | 'upgraded'

/** A connection with the state that the listener needs. */
export class ClientConnection implements Connection {
  readonly id: number
  readonly raw: Socket
  /** The stream that requests are read from: the TLS socket or the raw one. */
  stream: Socket
  readonly isTls: boolean
  readonly peerAddress: string
  readonly localPort: number
  address: string
  port: number
  isTrusted = false
  isJa4Hop = false
  protocol: 'h1' | 'h2' = 'h1'
  serverName: string | null = null
  print: ConnectionPrint = NOTHING_KNOWN
  conduct: Conduct | null = null
  admittedAuthority: string | null = null
  introduction: Introduction | null = null
  stage: Stage = 'opening'
  /** The key under which this connection counts for its address. `null` if it is not counted. */
  countedAs: string | null = null
  hasFailed = false

  constructor(id: number, raw: Socket, isTls: boolean, peerAddress: string, localPort = raw.localPort ?? 0) {
    this.id = id
    this.raw = raw
    this.stream = raw
    this.isTls = isTls
    this.peerAddress = peerAddress
    this.localPort = localPort
    this.address = peerAddress
    this.port = raw.remotePort ?? 0
  }

  /** A getter, because it is seldom needed. */
  get localAddress(): string {
    return this.raw.localAddress ?? ''
  }
}

/** For a connection without fingerprints. */
export const NOTHING_KNOWN: ConnectionPrint = {
  ja4: null,
  unresumed: null,
  stable: null,
  traits: null,
  ja4s: null,
  ja4x: null,
  http2: null,
  pageWeight: null,
  noHello: 'not-tls',
  ja4Source: null,
}

import type { Socket } from 'node:net'
import type { Conduct } from '../../classify/verdict/conduct.ts'
import type { ConnectionPrint } from '../../fingerprint/print.ts'
import type { Introduction } from './app-headers.ts'

/** One client connection, made once and asked by every request on it. */
export interface Connection {
  /** Distinct within the process. */
  readonly id: number
  /** The client's address: the peer's own, or what a trusted proxy's PROXY header says. */
  readonly address: string
  readonly port: number
  /** The address of who connected, which only differs from `address` behind a trusted proxy. */
  readonly peerAddress: string
  readonly localPort: number
  /** Where it has connected to. */
  readonly localAddress: string
  readonly protocol: 'h1' | 'h2'
  readonly isTls: boolean
  readonly serverName: string | null
  readonly print: ConnectionPrint
  /** What the client has done on it so far; `null` before its first request, and of who sends for others. */
  conduct: Conduct | null
  /** Of its last request; `null` where none was passed on yet, or a trusted hop sends them. */
  introduction: Introduction | null
  /** The host of an earlier request on it that settings admit (`HostGate`). */
  admittedAuthority: string | null
  /** `address` is a trusted proxy's: what its requests say of where they come from is to be believed. */
  readonly isTrusted: boolean
  /** `address` is that of a hop whose JA4 header is taken over. */
  readonly isJa4Hop: boolean
}

/** Why a connection, or a request on it, came to nothing before anybody was asked to serve it. */
export type FailureReason =
  /** Over `connectionsMax` (code `total`) or `connectionsPerAddressMax` (code `address`). */
  | 'too-many-connections'
  /** The PROXY header is broken (its fault is the code), `missing`, or from a peer that is `untrusted`. */
  | 'proxy-protocol'
  /** Went away before its first bytes were whole: `silent` without any, else `cut`. */
  | 'gone'
  /** Not whole in time: `silent` or `cut`. */
  | 'hello-timeout'
  | 'hello-too-long'
  /** Something else than TLS where TLS is spoken: `http` or `other`. */
  | 'not-tls'
  /** TLS was tried with a hello that cannot be read, and gave up. The code is that of TLS. */
  | 'malformed-hello'
  /** TLS failed, or the peer left it: the code says how. */
  | 'handshake'
  | 'handshake-timeout'
  /** A request head (in HTTP/2: the opening of the connection) that was not whole in time: `silent` or `cut`. */
  | 'header-timeout'
  /** A request that is not to be forwarded: the code says what is wrong with it. */
  | 'bad-request'
  /** A breach of HTTP/2, or its abuse; the code is Node's. */
  | 'h2-protocol'
  /** Cut off by a drain before its first bytes were whole. */
  | 'draining'

export interface ConnectionFailure {
  readonly reason: FailureReason
  readonly code: string | null
  readonly address: string
  readonly isTls: boolean
}

/** What a handshake has come to. */
export interface SecuredConnection {
  /** `TLSv1.3` */
  readonly version: string
  /** A session of before goes on. */
  readonly isResumed: boolean
  readonly protocol: 'h1' | 'h2'
  readonly durationMs: number
}

/** How far a connection has come. */
export type Stage = 'opening' | 'handshake' | 'h1' | 'h2' | 'upgraded'

/** A connection as the listener has it. */
export class ClientConnection implements Connection {
  readonly id: number
  readonly raw: Socket
  /** What requests are read from: the socket of TLS, or the raw one. */
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
  /** What is counted for the address of this connection; `null` while nothing is. */
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

  /** Asked for by few. */
  get localAddress(): string {
    return this.raw.localAddress ?? ''
  }
}

/** Of a connection that has shown nothing of its own. */
export const NOTHING_KNOWN: ConnectionPrint = {
  ja4: null,
  unresumed: null,
  stable: null,
  traits: null,
  ja4s: null,
  ja4x: null,
  http2: null,
  noHello: 'not-tls',
  ja4Source: null,
}

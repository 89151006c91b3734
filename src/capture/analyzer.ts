import type { CaptureSink } from './capture-file.ts'
import type { Endpoints, FindingSink } from './finding.ts'
import { type Ends, type Flow, FlowTable } from './flow-table.ts'
import type { KeyLog } from './key-log.ts'
import { addressText, PacketDecoder } from './packet.ts'
import { type Side, StreamLayer } from './stream-layer.ts'
import { type HeldBytes, type StreamSink, TcpStream } from './tcp-stream.ts'
import { UdpConversation } from './udp-conversation.ts'

/**
 * Takes frames and reports findings: every TLS handshake and HTTP request of a capture. Memory is bounded,
 * whatever the size of the capture.
 */
export class Analyzer implements CaptureSink {
  readonly #sink: FindingSink
  readonly #keys: KeyLog
  readonly #packet = new PacketDecoder()
  readonly #flows = new FlowTable<Conversation>(FLOWS_MAX, (flow) => this.#close(flow))
  readonly #held: HeldBytes = { total: 0 }
  /** Bytes of packets since the last check of how much all conversations hold. */
  #unweighed = 0

  constructor(sink: FindingSink, keys: KeyLog) {
    this.#sink = sink
    this.#keys = keys
  }

  packet(frame: number, linkType: number, bytes: Buffer, at: number, end: number): void {
    const packet = this.#packet
    if (!packet.decode(linkType, bytes, at, end)) return
    if (packet.protocol === TCP) this.#tcp(packet, frame)
    else this.#udp(packet, frame)
    this.#unweighed += end - at
    if (this.#unweighed >= WEIGHED_EVERY_BYTES) this.#makeRoom()
  }

  secrets(text: string): void {
    this.#keys.add(text)
    this.#keys.end()
  }

  /** Ends the capture: reports everything that was waiting for more data. */
  end(): void {
    this.#flows.clear()
  }

  #tcp(packet: PacketDecoder, frame: number): void {
    const { bytes, at, end } = packet
    const header = (bytes[at + 12]! >> 4) * 4
    if (header < TCP_HEADER_BYTES) return
    const sourcePort = bytes.readUInt16BE(at)
    const destinationPort = bytes.readUInt16BE(at + 2)
    const sequence = bytes.readInt32BE(at + 4)
    const flags = bytes[at + 13]!
    const isSyn = (flags & SYN) !== 0
    const length = Math.max(0, end - at - header)

    let flow = this.#flows.find(packet, sourcePort, destinationPort)
    if (flow === null) {
      if (!isSyn && length === 0) return // an empty segment of an unknown flow
      flow = this.#flows.begin(packet, sourcePort, destinationPort, (ends) => this.#connection(ends))
    }
    const side = this.#flows.side
    if (isSyn && !takesSyn(flow.state, side, sequence)) {
      this.#close(flow) // a new connection reuses the ports
      flow.state = this.#connection(flow.ends)
      takesSyn(flow.state, side, sequence)
    }
    const connection = flow.state
    if (connection.kind !== 'tcp') return
    const stream = connection.streams[side]
    const first = isSyn ? (sequence + 1) | 0 : sequence
    if (length > 0) stream.segment(first, bytes.subarray(end - length, end), frame)
    if ((flags & FIN) !== 0 && stream.reached((first + length) | 0)) connection.finished[side] = true

    const finished = connection.finished[0] && connection.finished[1]
    if (finished || (flags & RST) !== 0 || connection.layer.done) this.#close(flow)
  }

  #udp(packet: PacketDecoder, frame: number): void {
    const { bytes, at } = packet
    if (at + UDP_HEADER_BYTES >= packet.end) return
    const sourcePort = bytes.readUInt16BE(at)
    const destinationPort = bytes.readUInt16BE(at + 2)
    const flow =
      this.#flows.find(packet, sourcePort, destinationPort) ??
      this.#flows.begin(packet, sourcePort, destinationPort, (ends) => this.#conversation(ends))
    if (flow.state.kind !== 'udp') return
    flow.state.conversation.datagram(
      this.#flows.side,
      bytes.subarray(at + UDP_HEADER_BYTES, packet.end),
      frame,
    )
  }

  /** Limits the memory for incomplete messages: closes the oldest of the conversations that hold a lot. */
  #makeRoom(): void {
    this.#unweighed = 0
    let total = 0
    for (const { state } of this.#flows.oldestFirst()) total += heldBy(state)
    if (total <= HALF_READ_BYTES_MAX) return
    for (const flow of this.#flows.oldestFirst()) {
      const held = heldBy(flow.state)
      if (held < HALF_READ_BYTES_MAX / FLOWS_MAX) continue
      total -= held
      this.#close(flow)
      if (total <= HALF_READ_BYTES_MAX / 2) return
    }
  }

  #connection(ends: Ends): TcpConnection {
    const layer = new StreamLayer(this.#sink, this.#keys, (client) => endpoints(ends, client))
    return {
      kind: 'tcp',
      layer,
      streams: [this.#stream(layer, 0), this.#stream(layer, 1)],
      finished: [false, false],
    }
  }

  #stream(layer: StreamLayer, side: Side): TcpStream {
    const sink: StreamSink = {
      data: (bytes, frame) => layer.data(side, bytes, frame),
      gap: (length) => layer.gap(side, length),
    }
    return new TcpStream(sink, this.#held)
  }

  #conversation(ends: Ends): UdpFlow {
    return {
      kind: 'udp',
      conversation: new UdpConversation(this.#sink, this.#keys, (client) => endpoints(ends, client)),
    }
  }

  /** Reports what is left. A closed flow stays in the table, so that late packets do not begin a new one. */
  #close(flow: Flow<Conversation>): void {
    const state = flow.state
    if (state.kind === 'tcp') {
      for (const stream of state.streams) stream.flush()
      state.layer.end()
      flow.state = { kind: 'closed', syns: [state.streams[0].syn, state.streams[1].syn] }
    } else if (state.kind === 'udp') {
      state.conversation.end()
    }
  }
}

type Conversation = TcpConnection | ClosedConnection | UdpFlow

interface TcpConnection {
  readonly kind: 'tcp'
  readonly layer: StreamLayer
  readonly streams: readonly [TcpStream, TcpStream]
  readonly finished: [boolean, boolean]
}

interface ClosedConnection {
  readonly kind: 'closed'
  readonly syns: readonly [number | null, number | null]
}

interface UdpFlow {
  readonly kind: 'udp'
  readonly conversation: UdpConversation
}

/** Whether a SYN belongs to the current connection, or to the one just closed. */
function takesSyn(state: Conversation, side: Side, sequence: number): boolean {
  return state.kind === 'tcp'
    ? state.streams[side].begin(sequence)
    : state.kind === 'closed' && state.syns[side] === sequence
}

function heldBy(state: Conversation): number {
  if (state.kind === 'tcp') return state.layer.heldBytes
  return state.kind === 'udp' ? state.conversation.heldBytes : 0
}

function endpoints({ isIpv6, addresses, ports }: Ends, client: Side): Endpoints {
  const server = client === 0 ? 1 : 0
  return {
    src: addressText(addresses[client], isIpv6),
    src_port: ports[client],
    dst: addressText(addresses[server], isIpv6),
    dst_port: ports[server],
  }
}

/** The number of conversations followed at once. Each keeps a few hundred bytes after its handshake. */
const FLOWS_MAX = 32_768
/**
 * Incomplete heads, hellos and messages of all conversations together. A real conversation may hold up to 256
 * KiB.
 */
const HALF_READ_BYTES_MAX = 128 * 1024 * 1024
/** Adding up what 32,768 conversations hold takes some milliseconds. */
const WEIGHED_EVERY_BYTES = 8 * 1024 * 1024

const TCP = 6
const TCP_HEADER_BYTES = 20
const UDP_HEADER_BYTES = 8
const FIN = 1
const SYN = 2
const RST = 4

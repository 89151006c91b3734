import { once } from 'node:events'
import { createWriteStream } from 'node:fs'

/**
 * Writes a capture as a busy gateway would see it: connections that open, say a ClientHello or an HTTP request,
 * move some bulk data, and close, many of them at a time.
 */
export async function writeLargeCapture(file: string, bytes: number, hello: Buffer): Promise<number> {
  const out = createWriteStream(file)
  out.write(pcapHeader())
  let written = 24
  let packets = 0
  let open: Connection[] = []
  for (let serial = 0; written < bytes; serial++) {
    open.push(new Connection(serial, serial % 4 === 0 ? REQUEST : hello))
    const parts: Buffer[] = []
    // Each open connection sends its next packet in turn, so that flows are interleaved as on a wire.
    for (let turn = 0; turn < 24; turn++) {
      for (const connection of open) {
        const packet = connection.next()
        if (packet !== null) parts.push(packet)
      }
    }
    open = open.filter((connection) => !connection.closed)
    const batch = Buffer.concat(parts)
    written += batch.length
    packets += parts.length
    if (!out.write(batch)) await once(out, 'drain')
  }
  out.end()
  await once(out, 'close')
  return packets
}

class Connection {
  closed = false
  readonly #serial: number
  readonly #opening: Buffer
  #step = 0
  readonly #sequence = [1000, 2000]

  constructor(serial: number, opening: Buffer) {
    this.#serial = serial
    this.#opening = opening
  }

  next(): Buffer | null {
    const step = this.#step++
    if (step === 0) return this.#packet(0, SYN, EMPTY)
    if (step === 1) return this.#packet(1, SYN | ACK, EMPTY)
    if (step === 2) return this.#packet(0, ACK, EMPTY)
    if (step === 3) return this.#packet(0, ACK | PUSH, this.#opening.subarray(0, MSS))
    if (step === 4) return this.#packet(0, ACK | PUSH, this.#opening.subarray(MSS))
    if (step < DATA_PACKETS) return step % 3 === 0 ? this.#packet(0, ACK, EMPTY) : this.#packet(1, ACK, BULK)
    if (step < DATA_PACKETS + 2) return this.#packet(step === DATA_PACKETS ? 0 : 1, FIN | ACK, EMPTY)
    this.closed = true
    return null
  }

  #packet(side: 0 | 1, flags: number, payload: Buffer): Buffer {
    const packet = Buffer.alloc(16 + 14 + 20 + 20 + payload.length)
    const length = packet.length - 16
    packet.writeUInt32LE(1_700_000_000, 0)
    packet.writeUInt32LE(length, 8)
    packet.writeUInt32LE(length, 12)
    packet.writeUInt16BE(0x0800, 28)
    packet[30] = 0x45
    packet.writeUInt16BE(length - 14, 32)
    packet[38] = 64
    packet[39] = 6
    const client = [0x0a000001 + (this.#serial >> 14), 0xc6336401] as const
    packet.writeUInt32BE(client[side], 42)
    packet.writeUInt32BE(client[side === 0 ? 1 : 0], 46)
    const ports = [20_000 + (this.#serial & 0x3fff), this.#opening === REQUEST ? 80 : 443] as const
    packet.writeUInt16BE(ports[side], 50)
    packet.writeUInt16BE(ports[side === 0 ? 1 : 0], 52)
    packet.writeUInt32BE(this.#sequence[side]!, 54)
    packet.writeUInt32BE(this.#sequence[side === 0 ? 1 : 0]!, 58)
    packet[62] = 0x50
    packet[63] = flags
    packet.writeUInt16BE(0xffff, 64)
    payload.copy(packet, 70)
    this.#sequence[side]! += payload.length + (flags & (SYN | FIN) ? 1 : 0)
    return packet
  }
}

function pcapHeader(): Buffer {
  const header = Buffer.alloc(24)
  header.writeUInt32LE(0xa1b2c3d4, 0)
  header.writeUInt16LE(2, 4)
  header.writeUInt16LE(4, 6)
  header.writeUInt32LE(262_144, 16)
  header.writeUInt32LE(1, 20)
  return header
}

const EMPTY = Buffer.alloc(0)
const FIN = 1
const SYN = 2
const PUSH = 8
const ACK = 16
const MSS = 1400
const DATA_PACKETS = 40
/** One full TLS application data record a packet, with unreadable content. */
const BULK = Buffer.concat([Buffer.from('1703030573', 'hex'), Buffer.alloc(0x573, 0xa5)])
const REQUEST = Buffer.from(
  'GET /index.html HTTP/1.1\r\nHost: shop.example.test\r\nUser-Agent: bench\r\nAccept: */*\r\nCookie: a=1; b=2\r\n\r\n',
)

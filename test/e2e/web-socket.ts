import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** The app's side of a WebSocket (RFC 6455): every message comes back as it came, in the same frames. */
export function echoWebSocket(request: IncomingMessage, socket: Duplex): void {
  const key = request.headers['sec-websocket-key'] ?? ''
  const protocol = request.headers['sec-websocket-protocol']?.split(',')[0]
  socket.write(
    [
      'HTTP/1.1 101 Switching Protocols',
      'Upgrade: websocket',
      'Connection: Upgrade',
      `Sec-WebSocket-Accept: ${createHash('sha1').update(`${key}${GUID}`).digest('base64')}`,
      ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
      '\r\n',
    ].join('\r\n'),
  )
  let unread = Buffer.alloc(0)
  socket.on('error', () => socket.destroy())
  socket.on('data', (bytes: Buffer) => {
    unread = Buffer.concat([unread, bytes])
    for (let frame = frameAt(unread); frame !== null; frame = frameAt(unread)) {
      unread = unread.subarray(frame.end)
      const opcode = frame.first & 0x0f
      const answer = frameOf(opcode === PING ? (frame.first & 0xf0) | PONG : frame.first, frame.payload)
      if (opcode === CLOSE) socket.end(answer)
      else socket.write(answer)
    }
  })
}

interface Frame {
  readonly first: number
  readonly payload: Buffer
  readonly end: number
}

/** A client's frame, which is always masked; `null` until it is whole. */
function frameAt(bytes: Buffer): Frame | null {
  if (bytes.length < 2) return null
  const short = bytes[1]! & 0x7f
  const maskAt = short === 126 ? 4 : short === 127 ? 10 : 2
  if (bytes.length < maskAt + 4) return null
  const length =
    short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short
  const end = maskAt + 4 + length
  if (bytes.length < end) return null
  const payload = Buffer.from(bytes.subarray(maskAt + 4, end))
  for (let i = 0; i < length; i++) payload[i]! ^= bytes[maskAt + (i & 3)]!
  return { first: bytes[0]!, payload, end }
}

function frameOf(first: number, payload: Buffer): Buffer {
  const { length } = payload
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = first
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, payload])
}

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const CLOSE = 8
const PING = 9
const PONG = 10

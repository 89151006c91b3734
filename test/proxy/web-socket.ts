import { createHash } from 'node:crypto'

/** As much of RFC 6455 as an echo takes. */
export const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='

/** A client's request; `more` are further header lines. */
export function opening(path: string, host: string, ...more: readonly string[]): string {
  const lines = [`GET ${path} HTTP/1.1`, `Host: ${host}`, 'Upgrade: websocket', 'Connection: Upgrade']
  return [...lines, `Sec-WebSocket-Key: ${KEY}`, 'Sec-WebSocket-Version: 13', ...more, '', ''].join('\r\n')
}

/** A server's answer to the head of a request. */
export function agreement(head: string, ...more: readonly string[]): string {
  const key = /^Sec-WebSocket-Key: *(.*)\r$/im.exec(head)?.[1] ?? ''
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
  return [...lines, `Sec-WebSocket-Accept: ${acceptOf(key)}`, ...more, '', ''].join('\r\n')
}

export function acceptOf(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}

/** What a server sends is not masked. */
export function frame(opcode: number, payload: Uint8Array, isLast = true): Buffer {
  const { length } = payload
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = (isLast ? 0x80 : 0) | opcode
  if (length < 126) head[1] = length
  else if (length < 65_536) {
    head[1] = 126
    head.writeUInt16BE(length, 2)
  } else {
    head[1] = 127
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  return Buffer.concat([head, payload])
}

/** What a client sends is. */
export function maskedFrame(opcode: number, payload: Uint8Array, mask = Buffer.of(1, 2, 3, 4)): Buffer {
  const plain = frame(opcode, payload)
  const headLength = plain.length - payload.length
  plain[1]! |= 0x80
  const masked = payload.map((byte, index) => byte ^ mask[index % 4]!)
  return Buffer.concat([plain.subarray(0, headLength), mask, masked])
}

/** Takes bytes as they come, and gives back what answers them: each frame as it is, and a close for a close. */
export function echoer(closed = () => {}): (bytes: Uint8Array) => Buffer {
  let waiting = Buffer.alloc(0)
  return (bytes) => {
    waiting = Buffer.concat([waiting, bytes])
    const answers: Buffer[] = []
    for (let read = readFrame(waiting); read !== null; read = readFrame(waiting)) {
      waiting = waiting.subarray(read.length)
      if (read.opcode === CLOSE) setImmediate(closed)
      answers.push(frame(read.opcode === PING ? PONG : read.opcode, read.payload, read.isLast))
    }
    return Buffer.concat(answers)
  }
}

/** `null` while there is less than a whole one. */
function readFrame(
  bytes: Buffer,
): { opcode: number; isLast: boolean; payload: Buffer; length: number } | null {
  const short = (bytes[1] ?? 0) & 0x7f
  const at = short === 126 ? 4 : short === 127 ? 10 : 2
  if (bytes.length < at + 4) return null
  const size =
    short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short
  const length = at + 4 + size
  if (bytes.length < length) return null
  const mask = bytes.subarray(at, at + 4)
  const payload = Buffer.from(bytes.subarray(at + 4, length).map((byte, index) => byte ^ mask[index % 4]!))
  return { opcode: bytes[0]! & 0x0f, isLast: bytes[0]! >= 0x80, payload, length }
}

export const TEXT = 1
export const BINARY = 2
export const CLOSE = 8
const PING = 9
const PONG = 10

import tls from 'node:tls'

/**
 * `node waiting-connections.ts PORT COUNT [h1 | h2]`: so many connections that have made one request each, and then wait.
 * For each COUNT on a line of its standard input it opens more, up to that number.
 */
const [port, first] = process.argv.slice(2).map(Number) as [number, number]
const protocol = process.argv[4] === 'h2' ? 'h2' : 'h1'
const BATCH = 50

// SETTINGS, WINDOW_UPDATE, and HEADERS of `GET /` with END_STREAM, as RFC 9113 §6 and RFC 7541 §6 write them.
const OPENING = [
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(4, 0, 0, Buffer.from('000300000064000400a00000000200000000', 'hex')),
  frame(8, 0, 0, Buffer.from('3e7f0001', 'hex')),
  frame(1, 5, 1, Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x41, 9]), Buffer.from('localhost')])),
]
const REQUEST =
  protocol === 'h2' ? Buffer.concat(OPENING) : Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')

let made = 0
await open(first)
for await (const line of process.stdin) await open(Number(line))

async function open(count: number): Promise<void> {
  for (; made < count; made += Math.min(BATCH, count - made))
    await Promise.all(Array.from({ length: Math.min(BATCH, count - made) }, dial))
  process.stdout.write('ready\n')
}

function dial(): Promise<void> {
  return new Promise((resolve, reject) => {
    const ALPNProtocols = [protocol === 'h2' ? 'h2' : 'http/1.1']
    const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols })
    let rest: Buffer = Buffer.alloc(0)
    socket.once('secureConnect', () => socket.write(REQUEST))
    socket.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes])
      if (protocol === 'h1' || hasAnswer(rest)) resolve()
    })
    socket.on('error', reject).on('close', () => reject(new Error('closed')))
  })
}

/** Whether a frame of stream 1 has END_STREAM. */
function hasAnswer(bytes: Buffer): boolean {
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3))
    if (bytes[at + 3]! <= 1 && (bytes[at + 4]! & 1) === 1) return true
  return false
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

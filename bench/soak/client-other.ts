import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { Answer } from './answer.ts'
import { headOf, readHead } from './client-h1.ts'
import { Pattern } from './pattern.ts'
import type { Plan } from './plan.ts'
import type { Random } from './random.ts'
import { Wire } from './wire.ts'

/** An upgraded connection, ping and pong; the answer is whole when it ended as planned. */
export async function converse(
  socket: TLSSocket,
  plan: Plan,
  random: Random,
): Promise<{ answer: Answer; hasLeft: boolean }> {
  const answer = new Answer(plan)
  const wire = new Wire(socket)
  socket.write(headOf(plan, UPGRADE))
  const head = await wire.until('\r\n\r\n', 65_536)
  if (head === null) return { answer, hasLeft: false }
  readHead(answer, head)
  if (answer.status !== 101) {
    const length = Number(answer.header('content-length') ?? 0)
    for (let left = length; left > 0; ) {
      const bytes = await wire.some(left)
      if (bytes === null) return { answer, hasLeft: false }
      answer.body(bytes)
      left -= bytes.length
    }
    answer.isWhole = await wire.endsClean()
    return { answer, hasLeft: false }
  }
  const pattern = new Pattern(`down ${plan.id}`)
  for (let left = plan.size; left > 0; ) {
    if (plan.leaves !== 'never' && left < plan.size / 2) {
      socket.destroy()
      return { answer, hasLeft: true }
    }
    const ping = pattern.next(Math.min(left, random.between(1, plan.pieceMax)))
    left -= ping.length
    socket.write(ping)
    for (let due = ping.length; due > 0; ) {
      const pong = await wire.some(due)
      if (pong === null) return { answer, hasLeft: false }
      answer.body(pong)
      due -= pong.length
    }
  }
  answer.isWhole = await wire.endsClean()
  if (!answer.isWhole) answer.wrong ??= 'more than was sent'
  socket.end()
  return { answer, hasLeft: false }
}

/** Invalid requests. Resolves with what was wrong about the end of the connection, which must come. */
export async function misbehave(
  { port, ca, serverName }: { readonly port: number; readonly ca: string; readonly serverName: string },
  random: Random,
): Promise<string | null> {
  const raw = connectTcp(port, '127.0.0.1').on('error', () => undefined)
  const { garbage, isTls } = random.pick(GARBAGE)
  const socket: Socket = isTls
    ? connectTls({ socket: raw, ca, servername: serverName, ALPNProtocols: ['http/1.1'] })
    : raw
  socket.on('error', () => undefined)
  let said = ''
  socket.on('data', (bytes) => {
    said += bytes.toString('latin1')
  })
  const closed = new Promise<boolean>((resolve) => socket.once('close', () => resolve(true)))
  await once(socket, isTls ? 'secureConnect' : 'connect').catch(() => undefined)
  const bytes = garbage(random)
  if (bytes === null) socket.destroy()
  else socket.write(bytes)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), GARBAGE_MS_MAX)
  })
  const hasEnded = await Promise.race([closed, late])
  clearTimeout(timer)
  socket.destroy()
  raw.destroy()
  if (!hasEnded) return `a connection with garbage is kept (${garbage.name})`
  return said.includes('x-soak-id') ? `garbage had an answer: ${said.slice(0, 200)}` : null
}

interface Garbage {
  readonly isTls: boolean
  /** `null`: leaves at once. */
  readonly garbage: (random: Random) => Buffer | string | null
}

function halfHello(random: Random): Buffer {
  return HELLO_START.subarray(0, random.between(1, HELLO_START.length))
}

/** A handshake record that announces a ClientHello of 512 bytes, and some of it. */
const HELLO_START = Buffer.from(`1603010200010001fc0303${'5a'.repeat(120)}`, 'hex')
const UPGRADE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
]
const GARBAGE: readonly Garbage[] = [
  { isTls: false, garbage: () => null },
  { isTls: false, garbage: halfHello },
  { isTls: false, garbage: (random) => randomBytes(random.between(1, 2000)) },
  { isTls: false, garbage: () => 'GET / HTTP/1.1\r\nHost: a\r\n\r\n' },
  { isTls: true, garbage: () => null },
  { isTls: true, garbage: (random) => randomBytes(random.between(20, 2000)) },
  { isTls: true, garbage: () => 'GET / HTTP/1.1\r\nHost: a\r\nX-Half: ' },
  {
    isTls: true,
    garbage: () => 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
  },
  { isTls: true, garbage: () => 'GET / HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n' },
]
/** Well above every time-out of the soak's configuration. */
const GARBAGE_MS_MAX = 45_000

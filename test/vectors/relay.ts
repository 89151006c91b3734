import { type ChildProcess, spawn } from 'node:child_process'
import dgram from 'node:dgram'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A program and its arguments; `$PORT` stands for the port to connect to. */
export type CommandLine = readonly string[]

/** The messages with their senders, in order. */
export type Sent = readonly (readonly [from: 'client' | 'server', bytes: Buffer])[]

/** Runs a client against a TCP server and keeps what passes between them until both have been silent for a while. */
export async function relayStream(client: CommandLine, serverPort: number): Promise<Sent> {
  const sent: [from: 'client' | 'server', bytes: Buffer][] = []
  const relay = net.createServer((near) => {
    const far = net.connect(serverPort, '127.0.0.1')
    keep(near, far, (bytes) => sent.push(['client', bytes]))
    keep(far, near, (bytes) => sent.push(['server', bytes]))
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  await runClient(client, (relay.address() as AddressInfo).port)
  relay.close()
  return sent
}

function keep(from: Socket, to: Socket, onBytes: (bytes: Buffer) => void): void {
  from.on('data', onBytes)
  from.on('error', () => to.destroy())
  from.pipe(to)
}

/** The same over UDP: each entry is a datagram. */
export async function relayDatagrams(client: CommandLine, serverPort: number): Promise<Sent> {
  const sent: [from: 'client' | 'server', bytes: Buffer][] = []
  const near = dgram.createSocket('udp4')
  const far = dgram.createSocket('udp4')
  let clientPort = 0
  near.on('message', (bytes, { port }) => {
    clientPort = port
    sent.push(['client', bytes])
    far.send(bytes, serverPort, '127.0.0.1')
  })
  far.on('message', (bytes) => {
    sent.push(['server', bytes])
    near.send(bytes, clientPort, '127.0.0.1')
  })
  near.bind(0, '127.0.0.1')
  await once(near, 'listening')
  await runClient(client, near.address().port)
  near.close()
  far.close()
  return sent
}

/** Long enough for a handshake on one machine; then its input ends, and it is stopped if that does not end it. */
async function runClient([program, ...argv]: CommandLine, port: number): Promise<void> {
  const filledIn = argv.map((word) => word.replaceAll('$PORT', `${port}`))
  const child = spawn(program!, filledIn, { stdio: ['pipe', 'ignore', 'ignore'], env: CLIENT_ENV })
  await sleep(700)
  child.stdin.end()
  await sleep(300)
  child.kill()
}

export interface Server {
  readonly port: number
  readonly process: ChildProcess
}

/** `openssl s_server` on a port of its own. */
export async function startServer(argv: CommandLine): Promise<Server> {
  const process = spawn('openssl', ['s_server', '-accept', '127.0.0.1:0', ...argv], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  let said = ''
  for await (const chunk of process.stdout) {
    said += chunk
    const [, port] = /ACCEPT \S*:(\d+)/.exec(said) ?? []
    if (port !== undefined) return { port: Number(port), process }
  }
  throw new Error(`openssl s_server ${argv.join(' ')} does not listen`)
}

/** No credentials, proxies or settings of the user; certificates made a moment ago are believed. */
const CLIENT_ENV = {
  PATH: process.env['PATH'],
  HOME: '/nonexistent',
  LANG: 'C',
  NODE_TLS_REJECT_UNAUTHORIZED: '0',
}

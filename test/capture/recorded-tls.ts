import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import tls from 'node:tls'

/** Real TLS connections, recorded as a capture would show them: by Node with itself, and by the openssl command. */

/** What one side wrote at a time, on the wire. */
export interface Chunk {
  readonly fromClient: boolean
  readonly bytes: Buffer
}

export interface Recording {
  readonly chunks: readonly Chunk[]
  readonly keyLog: string
  /** What the applications at both ends wrote. */
  readonly request: Buffer
  readonly response: Buffer
}

export interface Connection {
  readonly server?: tls.TlsOptions
  readonly client?: tls.ConnectionOptions
  readonly request?: Buffer
  readonly response?: Buffer
  /** Called between two halves of the request. */
  readonly midway?: (socket: tls.TLSSocket) => Promise<void>
}

/** The client writes a request, the server answers it once it is whole. */
export async function record(connection: Connection): Promise<Recording> {
  const server = tls.createServer({ ...IDENTITY, ...connection.server })
  try {
    const [recording] = await recordAll(server, [connection])
    return recording!
  } finally {
    server.close()
  }
}

/** Two connections to one server: the second goes on with the session of the first. */
export async function recordResumption(connection: Connection): Promise<Recording> {
  const server = tls.createServer({ ...IDENTITY, ...connection.server })
  let session: Buffer | undefined
  const first = { ...connection, keepSession: (ticket: Buffer) => (session = ticket) }
  try {
    await recordAll(server, [first])
    const [recording] = await recordAll(server, [
      { ...connection, client: { ...connection.client, session } },
    ])
    return recording!
  } finally {
    server.close()
  }
}

async function recordAll(
  server: tls.Server,
  connections: readonly (Connection & { keepSession?: (ticket: Buffer) => void })[],
): Promise<Recording[]> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  const recordings: Recording[] = []
  for (const { client, request = REQUEST, response = RESPONSE, midway, keepSession } of connections) {
    const pipe = await recordingPipe((server.address() as AddressInfo).port)
    let keyLog = ''
    const addLine = (line: Buffer): unknown => (keyLog += line.toString('latin1'))
    server.on('keylog', addLine)
    server.once('secureConnection', (socket) => answer(socket, request.length, response))
    const socket = tls.connect({ port: pipe.port, host: '127.0.0.1', rejectUnauthorized: false, ...client })
    if (keepSession !== undefined) socket.on('session', keepSession)
    await once(socket, 'secureConnect')
    socket.write(request.subarray(0, request.length / 2))
    if (midway !== undefined) await midway(socket)
    socket.write(request.subarray(request.length / 2))
    await readAll(socket)
    server.off('keylog', addLine)
    recordings.push({ chunks: await pipe.end(), keyLog, request, response })
  }
  return recordings
}

function answer(socket: tls.TLSSocket, requestBytes: number, response: Buffer): void {
  let read = 0
  socket.on('error', () => {})
  socket.on('data', (bytes: Buffer) => {
    read += bytes.length
    if (read === requestBytes) socket.end(response)
  })
}

async function readAll(socket: tls.TLSSocket): Promise<void> {
  socket.resume()
  await once(socket, 'end')
  socket.end()
  await once(socket, 'close')
}

/** Passes bytes between its own port and `port`, and keeps them. */
async function recordingPipe(port: number): Promise<{ port: number; end: () => Promise<Chunk[]> }> {
  const chunks: Chunk[] = []
  const pipe = net.createServer((client) => {
    const server = net.connect(port, '127.0.0.1')
    relay(client, server, (bytes) => chunks.push({ fromClient: true, bytes }))
    relay(server, client, (bytes) => chunks.push({ fromClient: false, bytes }))
  })
  await once(pipe.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (pipe.address() as AddressInfo).port,
    end: async () => {
      await once(pipe.close(), 'close')
      return chunks
    },
  }
}

function relay(from: net.Socket, to: net.Socket, keep: (bytes: Buffer) => void): void {
  from.on('data', (bytes) => {
    keep(bytes)
    to.write(bytes)
  })
  from.on('end', () => to.end())
  from.on('error', () => to.destroy())
}

export interface OpensslConnection {
  /** Whose session the client offers, together with early data: of this server, or of one that knows other tickets. */
  readonly session?: 'known' | 'unknown'
  readonly serverArguments?: readonly string[]
  readonly clientArguments?: readonly string[]
  /** What is typed at both ends in turn. A `K` alone is a command: update the keys. */
  readonly lines: readonly string[]
}

export async function recordOpenssl(
  connection: OpensslConnection,
): Promise<Omit<Recording, 'request' | 'response'>> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-tls-'))
  const [identity, early, session, keys] = ['identity', 'early', 'session', 'keys'].map((name) =>
    join(folder, name),
  )
  writeFileSync(identity!, PEM)
  writeFileSync(early!, EARLY_DATA)
  const serverArguments = ['-cert', identity!, '-key', identity!, ...(connection.serverArguments ?? [])]
  const clientArguments = ['-keylogfile', keys!, ...(connection.clientArguments ?? [])]
  const servers = [await startServer(serverArguments)]
  try {
    if (connection.session !== undefined) {
      if (connection.session === 'unknown') servers.push(await startServer(serverArguments))
      await converse(servers.at(-1)!, servers.at(-1)!.port, ['-tls1_3', '-sess_out', session!], ['hello'])
      clientArguments.push('-sess_in', session!, '-early_data', early!)
    }
    const pipe = await recordingPipe(servers[0]!.port)
    await converse(servers[0]!, pipe.port, clientArguments, connection.lines)
    return { chunks: await pipe.end(), keyLog: readFileSync(keys!, 'latin1') }
  } finally {
    for (const { process } of servers) process.kill()
    rmSync(folder, { recursive: true })
  }
}

interface OpensslServer {
  readonly process: ChildProcessWithoutNullStreams
  readonly port: number
}

function startServer(serverArguments: readonly string[]): Promise<OpensslServer> {
  const process = spawn('openssl', ['s_server', '-accept', '127.0.0.1:0', '-early_data', ...serverArguments])
  return new Promise((resolve, reject) => {
    let text = ''
    process.on('exit', () => reject(new Error(`openssl s_server did not start: ${text}`)))
    process.stderr.on('data', (bytes: Buffer) => (text += bytes))
    process.stdout.on('data', (bytes: Buffer) => {
      text += bytes
      const port = /ACCEPT .*:(\d+)\n/.exec(text)?.[1]
      if (port !== undefined) resolve({ process, port: Number(port) })
    })
  })
}

async function converse(
  server: OpensslServer,
  port: number,
  clientArguments: readonly string[],
  lines: readonly string[],
): Promise<void> {
  const client = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, ...clientArguments])
  client.stdout.resume()
  client.stderr.resume()
  for (const line of lines) {
    const [first, second] = line === 'K' ? COMMAND_ANSWERS : [line, line]
    await type(line, client, line === 'K' ? client.stderr : server.process.stdout, first)
    await type(line, server.process, line === 'K' ? server.process.stdout : client.stdout, second)
  }
  client.stdin.write('Q\n')
  await once(client, 'exit')
}

/** openssl knows a command only where its reading begins: the next line has to wait until this one was read. */
async function type(
  line: string,
  into: ChildProcessWithoutNullStreams,
  out: Readable,
  text: string,
): Promise<void> {
  let heard = ''
  const found = new Promise<void>((resolve) => {
    const listen = (bytes: Buffer): void => {
      heard += bytes
      if (!heard.includes(text)) return
      out.off('data', listen)
      resolve()
    }
    out.on('data', listen)
  })
  into.stdin.write(`${line}\n`)
  await found
}

const PEM = readFileSync(new URL('../vectors/localhost.pem', import.meta.url))
export const IDENTITY = { key: PEM, cert: PEM }
export const CERTIFICATE_DER = new X509Certificate(PEM).raw

const REQUEST = Buffer.from(
  `POST /upload HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50000\r\n\r\n${'request '.repeat(6250)}`,
)
const RESPONSE = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: 90000\r\n\r\n${'response '.repeat(10_000)}`)
export const EARLY_DATA = Buffer.from('GET /early HTTP/1.1\r\nhost: localhost\r\n\r\n')
/** What s_client and s_server say when they update their keys. */
const COMMAND_ANSWERS = ['KEYUPDATE', 'SSL_do_handshake'] as const

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort, untilOpen } from '../e2e/ports.ts'
import { endWith, plainEnvironment, temporaryFolder } from '../e2e/programs.ts'
import { type Framing, type Message, MessageReader, REQUESTS, valuesOf } from './desync-messages.ts'

/** A request as a server has read it. `null` is what it does not tell. */
export interface Seen {
  /** Method and target. */
  readonly line: string
  readonly host: string | null
  readonly framing: Framing | null
  readonly body: string | null
  readonly isWhole: boolean | null
  /** By which of the proxy's connections it came. */
  readonly connection: number | null
}

/** The server behind the proxy. It answers each request with its own name: method, target and the length of its body. */
export interface Upstream {
  readonly name: string
  readonly url: string
  /** What it has read, in order; it reads no more after this. */
  seen(): Promise<readonly Seen[]>
  /** What came through it whole, where it has an app of its own behind it. */
  readonly behind: readonly Seen[] | null
  /** What it could not read. */
  readonly faults: readonly string[]
}

export const UPSTREAMS: Readonly<Record<string, (t: Test) => Promise<Upstream>>> = {
  bytes: startBytes,
  node: startNode,
  nginx: startNginx,
  apache2: startApache,
}

export const HTTP2_UPSTREAMS: typeof UPSTREAMS = {
  'node over h2c': startNodeHttp2,
  'nginx over h2c': (t) => startNginx(t, 'h2c'),
}

/** Servers that must answer with their own name. */
export function ownName(method: string, target: string, bodyLength: number): string {
  return `${method} ${target} ${bodyLength}`
}

/** Sockets: every byte that comes is read by the letter, and none may be left over. */
async function startBytes(t: Test): Promise<Upstream> {
  const seen: Seen[] = []
  const faults: string[] = []
  let connections = 0
  const server = createTcpServer({ noDelay: true }, (socket) => {
    const reader = new MessageReader(REQUESTS)
    const connection = ++connections
    let isContinued = false
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      try {
        reader.add(bytes)
        if (!isContinued && EXPECTS.test(reader.rest)) {
          isContinued = true
          socket.write('HTTP/1.1 100 Continue\r\n\r\n')
        }
        for (let message = reader.next(); message !== null; message = reader.next()) {
          isContinued = false
          seen.push(seenOf(message, connection))
          socket.write(answerTo(message), 'latin1')
        }
      } catch (error) {
        faults.push((error as Error).message)
        socket.destroy()
      }
    })
    socket.on('close', () => {
      if (reader.rest !== '') seen.push(brokenOff(reader.rest))
    })
  })
  const url = await listening(t, server)
  return { name: 'bytes', url, seen: async () => seen, behind: null, faults }
}

function seenOf({ start, fields, framing, body }: Message, connection: number): Seen {
  const [method, target] = start.split(' ')
  const host = valuesOf(fields, 'host')[0] ?? null
  return { line: `${method} ${target}`, host, framing, body, isWhole: true, connection }
}

function brokenOff(rest: string): Seen {
  const [line = ''] = rest.split(' HTTP/1.1\r\n')
  const host = /^Host: (.*)\r$/im.exec(rest)?.[1] ?? null
  return { line, host, framing: null, body: null, isWhole: false, connection: null }
}

function answerTo({ start, body }: Message): string {
  const [method = '', target = ''] = start.split(' ')
  const name = ownName(method, target, body.length)
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${name.length}\r\n\r\n`
  return method === 'HEAD' ? head : head + name
}

/** By the parser that repairs most: what it reads as the proxy meant it, stricter ones do. */
async function startNode(t: Test): Promise<Upstream> {
  const { url, seen, faults } = await startApp(t)
  return { name: 'node', url, seen: async () => seen, behind: null, faults }
}

async function startApp(t: Test) {
  const seen: Seen[] = []
  const faults: string[] = []
  const settings = { insecureHTTPParser: true, keepAliveTimeout: 120_000, requestTimeout: 0 }
  const server = createServer(settings, (request, response) => read(request, response, seen))
  server.on('checkContinue', (request, response) => {
    response.writeContinue()
    read(request, response, seen)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code?.startsWith('HPE_') && error.code !== 'HPE_INVALID_EOF_STATE') faults.push(error.code)
    socket.destroy()
  })
  return { url: await listening(t, server), seen, faults }
}

function read(request: IncomingMessage, response: ServerResponse, seen: Seen[]): void {
  const method = request.method!
  const target = request.url!
  let body = ''
  request.setEncoding('latin1').on('data', (text) => {
    body += text
  })
  request.on('error', () => {})
  const { host = null, 'transfer-encoding': coding, 'content-length': length } = request.headers
  const framing: Framing = coding !== undefined ? 'chunked' : length !== undefined ? 'length' : 'none'
  request.once('close', () => {
    const isWhole = request.complete
    const line = `${method} ${target}`
    seen.push({ line, host, framing, body, isWhole, connection: null })
  })
  request.on('end', () => response.end(ownName(method, target, body.length)))
}

/** HTTP/2 without TLS. */
async function startNodeHttp2(t: Test): Promise<Upstream> {
  const seen: Seen[] = []
  const server = createHttp2Server()
  server.on('stream', (stream, headers) => {
    const [method, target] = [headers[':method']!, headers[':path']!]
    let [body, isWhole] = ['', false]
    if (headers.expect !== undefined) stream.additionalHeaders({ ':status': 100 })
    stream.setEncoding('latin1').on('data', (text) => {
      body += text
    })
    stream.on('error', () => {})
    stream.on('end', () => {
      isWhole = !stream.aborted
      if (stream.destroyed) return
      const name = ownName(method, target, body.length)
      stream.respond({ ':status': 200, 'content-length': name.length }, { endStream: method === 'HEAD' })
      if (method !== 'HEAD') stream.end(name)
    })
    stream.on('close', () => {
      const host = headers[':authority'] ?? null
      seen.push({ line: `${method} ${target}`, host, framing: null, body, isWhole, connection: null })
    })
  })
  const url = await listening(t, server)
  return { name: 'node', url: url.replace('http:', 'h2c:'), seen: async () => seen, behind: null, faults: [] }
}

async function startNginx(t: Test, protocol: 'http' | 'h2c' = 'http'): Promise<Upstream> {
  const folder = temporaryFolder(t)
  const app = await startApp(t)
  const port = await freePort()
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = `
    daemon off; master_process off; pid ${folder}/pid; error_log stderr crit;
    events { }
    http {
      log_format seen escape=json '{"line":"$request","host":"$http_host"}';
      access_log ${folder}/log seen; merge_slashes off; underscores_in_headers on;
      ${places.map((place) => `${place}_temp_path ${folder}/${place};`).join(' ')}
      keepalive_requests 1000000; keepalive_timeout 120s; large_client_header_buffers 4 64k; client_header_buffer_size 64k;
      server {
        listen 127.0.0.1:${port}${protocol === 'h2c' ? ' http2' : ''};
        location / { proxy_pass ${app.url}; proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection ""; }
      }
    }`
  writeFileSync(join(folder, 'nginx.conf'), config)
  return startProgram(t, { program: 'nginx', argv: ['-p', folder, '-c', join(folder, 'nginx.conf')] }, app, {
    ...{ folder, port, protocol, stop: 'SIGQUIT' },
    readLine: (text) => JSON.parse(text),
  })
}

async function startApache(t: Test): Promise<Upstream> {
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o755)
  const app = await startApp(t)
  const port = await freePort()
  const modules = ['mpm_event', 'authz_core', 'proxy', 'proxy_http']
  const config = `
    ServerRoot ${folder}
    ServerName localhost
    PidFile ${folder}/pid
    DefaultRuntimeDir ${folder}
    ${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
    ${process.getuid?.() === 0 ? 'User www-data\nGroup www-data' : ''}
    Listen 127.0.0.1:${port}
    ErrorLog ${folder}/errors
    LogLevel crit
    LogFormat "%r\\t%{Host}i" seen
    CustomLog ${folder}/log seen
    StartServers 1
    ServerLimit 1
    ThreadsPerChild 16
    MaxRequestWorkers 16
    MinSpareThreads 1
    MaxSpareThreads 16
    KeepAliveTimeout 120
    MaxKeepAliveRequests 0
    TraceEnable On
    MergeSlashes Off
    AllowEncodedSlashes NoDecode
    LimitRequestLine 65536
    LimitRequestFieldSize 65536
    LimitRequestFields 400
    HttpProtocolOptions Unsafe
    ProxyPreserveHost On
    ProxyPass / ${app.url}/ disablereuse=On nocanon
  `
  writeFileSync(join(folder, 'apache.conf'), config)
  const argv = ['-f', join(folder, 'apache.conf'), '-DFOREGROUND']
  return startProgram(t, { program: 'apache2', argv }, app, {
    ...{ folder, port, protocol: 'http', stop: 'SIGWINCH' },
    readLine: readApacheLine,
  })
}

/** Where a program listens, how it ends in peace, and what a line of its log says. */
interface Place {
  readonly folder: string
  readonly port: number
  readonly protocol: 'http' | 'h2c'
  readonly stop: NodeJS.Signals
  readLine(text: string): { readonly line: string; readonly host: string }
}

async function startProgram(
  t: Test,
  { program, argv }: { readonly program: string; readonly argv: readonly string[] },
  app: { readonly seen: Seen[]; readonly faults: string[] },
  { folder, port, protocol, stop, readLine }: Place,
): Promise<Upstream> {
  const child = spawn(program, argv, {
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  endWith(t, child)
  await untilOpen(port, child)
  const seen = async () => {
    child.kill(stop)
    if (child.exitCode === null) await once(child, 'exit')
    const lines = readFileSync(join(folder, 'log'), 'latin1').split('\n').slice(0, -1)
    // What looked whether it listens has asked nothing.
    return lines.map((text) => fromLog(readLine(text))).filter(({ line }) => line !== '' && line !== '-')
  }
  return { name: program, url: `${protocol}://127.0.0.1:${port}`, seen, behind: app.seen, faults: app.faults }
}

function fromLog({ line, host }: ReturnType<Place['readLine']>): Seen {
  return {
    line: line.replace(/ HTTP\/(?:1\.1|2\.0)$/, ''),
    host: host === '' || host === '-' ? null : host,
    ...{ framing: null, body: null, isWhole: null, connection: null },
  }
}

/** As Apache writes quotes, backslashes and what cannot be printed. */
function readApacheLine(text: string): ReturnType<Place['readLine']> {
  const [line = '', host = ''] = text
    .split('\t')
    .map((part) =>
      part.replace(/\\(?:x([0-9a-f]{2})|(.))/g, (_, hex, character) =>
        hex === undefined ? character : String.fromCharCode(Number.parseInt(hex, 16)),
      ),
    )
  return { line, host }
}

async function listening(t: Test, server: Server): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** In the head. */
const EXPECTS = /^(?:.+\r\n)+?Expect: 100-continue\r\n(?:.+\r\n)*\r\n/

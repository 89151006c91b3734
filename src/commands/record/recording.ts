import { randomBytes } from 'node:crypto'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { TLSSocket } from 'node:tls'
import { REQUESTS_MAX } from '../../classify/known/corpus.ts'
import { Fault } from '../../shared/fault.ts'
import { type Http2Said, http2Fingerprint } from '../../fingerprint/http2.ts'
import { ja4h } from '../../fingerprint/ja4plus/ja4h.ts'
import type { Connection } from '../../proxy/connection/connection.ts'
import type { Tap } from '../../proxy/connection/tap.ts'
import { CLIENT_HELLO, HELLO_BYTES_MAX } from '../../wire/client-hello.ts'
import { HandshakeReader, RECORD_HEADER_BYTES, RecordReader } from '../../wire/record.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import { redactHead } from './redaction.ts'

/** The operator's description of the client. */
interface RecordedClient {
  readonly client: string
  readonly version: string | null
  readonly label: string
  readonly situation: string | null
}

/** Writes each connection seen by the tap as a line of JSON once it ends. */
export class Recording implements Tap {
  connections = 0
  requests = 0
  /** Called after each request. */
  onRequest: () => void = () => undefined
  /** Rejects when writing fails. */
  readonly failed: Promise<never>
  readonly #client: RecordedClient
  readonly #keepsQueries: boolean
  readonly #out: Writable
  /** Distinguishes recordings in one file. */
  readonly #prefix = randomBytes(3).toString('hex')
  readonly #open = new Map<number, OpenRow>()

  constructor(client: RecordedClient, keepsQueries: boolean, out: Writable) {
    this.#client = client
    this.#keepsQueries = keepsQueries
    this.#out = out
    this.failed = new Promise((_, reject) => out.on('error', (error) => reject(writeFault(error))))
    this.failed.catch(() => undefined) // finish() reports it
  }

  opened({ id }: Connection, records: Uint8Array): void {
    const length = helloLength(records)
    this.#open.set(id, {
      startedMs: Date.now(),
      hello: Buffer.from(records.subarray(0, length)).toString('hex'),
      extraBytes: records.length - length,
      tls: NO_TLS,
      http2: null,
      requests: [],
    })
  }

  secured({ id, serverName }: Connection, socket: TLSSocket): void {
    const row = this.#open.get(id)
    if (row === undefined) return
    row.tls = {
      alpn: socket.alpnProtocol || null,
      tls_version: socket.getProtocol(),
      cipher: socket.getCipher().standardName,
      resumed: socket.isSessionReused(),
      sni: serverName,
    }
  }

  http2({ id }: Connection, said: Http2Said | null): void {
    const row = this.#open.get(id)
    if (row !== undefined) row.http2 = said
  }

  request({ id }: Connection, head: RequestHead, bodyLength: number | null): void {
    const row = this.#open.get(id)
    if (row === undefined || row.requests.length === REQUESTS_MAX) return
    const redacted = redactHead(head, this.#keepsQueries)
    row.requests.push({ head: redacted, bodyLength, atMs: Date.now() - row.startedMs })
    this.requests++
    this.onRequest()
  }

  closed({ id }: Connection): void {
    this.#write(id)
  }

  /** Also writes connections that are still open. */
  async finish(): Promise<void> {
    for (const id of [...this.#open.keys()]) this.#write(id)
    this.#out.end()
    await finished(this.#out).catch((error) => {
      throw writeFault(error)
    })
  }

  #write(id: number): void {
    const row = this.#open.get(id)
    if (row === undefined) return
    this.#open.delete(id)
    this.connections++
    this.#out.write(`${JSON.stringify(this.#document(row))}\n`)
  }

  #document({ startedMs, hello, extraBytes, tls, http2, requests }: OpenRow): object {
    const { client, version, label, situation } = this.#client
    const first = requests[0]?.head ?? null
    return {
      id: `${this.#prefix}-${this.connections}`,
      client,
      version,
      runtime: null,
      label,
      situation,
      ts: new Date(startedMs).toISOString(),
      client_hello_hex: hello,
      first_flight_extra_bytes: extraBytes,
      ...tls,
      requests: requests.map((request) => requestDocument(request, situation)),
      ...(http2 !== null && { h2: http2Document(http2, first) }),
    }
  }
}

interface OpenRow {
  readonly startedMs: number
  readonly hello: string
  readonly extraBytes: number
  tls: TlsFacts
  http2: Http2Said | null
  readonly requests: SeenRequest[]
}

/** The negotiated TLS parameters. */
interface TlsFacts {
  readonly alpn: string | null
  readonly tls_version: string | null
  readonly cipher: string | null
  readonly resumed: boolean
  readonly sni: string | null
}

interface SeenRequest {
  readonly head: RequestHead
  readonly bodyLength: number | null
  readonly atMs: number
}

/** The number of bytes that are records of the hello; all bytes if they cannot be parsed. */
function helloLength(bytes: Uint8Array): number {
  const records = new RecordReader()
  const messages = new HandshakeReader(HELLO_BYTES_MAX)
  records.push(bytes)
  let length = 0
  for (let record = records.next(); record !== null; record = records.next()) {
    length += RECORD_HEADER_BYTES + record.fragment.length
    messages.push(record.fragment)
    if (messages.type !== CLIENT_HELLO) return bytes.length
    if (messages.next() !== null) return length
  }
  return bytes.length
}

function writeFault(error: Error): Fault {
  return new Fault('FILE_UNWRITABLE', `the recording cannot be written: ${error.message}`, { cause: error })
}

function requestDocument({ head, bodyLength, atMs }: SeenRequest, situation: string | null): object {
  return {
    http: HTTP_VERSIONS[head.version],
    method: head.method,
    path: head.target,
    headers: pairsOf(head.rawHeaders),
    body_bytes: bodyLength,
    situation,
    t: atMs,
    ja4h: ja4h(head),
  }
}

function http2Document(said: Http2Said, first: RequestHead | null): object {
  return {
    settings: said.settings.map(({ id, value }) => [id, value]),
    window_update: said.windowUpdate,
    priority: said.priorities.map(({ stream, isExclusive, dependsOn, weight }) => {
      return { stream, exclusive: isExclusive ? 1 : 0, dep: dependsOn, weight }
    }),
    weight: said.headersWeight,
    akamai: first === null ? null : http2Fingerprint(said, first.rawHeaders),
  }
}

function pairsOf(flat: readonly string[]): (readonly string[])[] {
  return Array.from({ length: flat.length / 2 }, (_, index) => flat.slice(2 * index, 2 * index + 2))
}

const NO_TLS: TlsFacts = { alpn: null, tls_version: null, cipher: null, resumed: false, sni: null }
const HTTP_VERSIONS = { '10': '1.0', '11': '1.1', '20': '2.0', '30': '3.0' } as const

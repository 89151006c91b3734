import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import type { Test } from 'tap'

/** What is asked: a name in lower case without a dot at its end, and a type. */
export interface DnsQuestion {
  readonly name: string
  readonly type: DnsType
  readonly isUdp: boolean
  /** The message as it came, for answers that are no answers. */
  readonly message: Buffer
}

export interface DnsAnswer {
  /** 0: NOERROR, 2: SERVFAIL, 3: NXDOMAIN, 5: REFUSED. */
  readonly code?: number
  readonly records?: readonly DnsRecord[]
  /** Whether it says that there is more of it over TCP. */
  readonly isCut?: boolean
}

export interface DnsRecord {
  /** Whose it is; without, of what was asked. */
  readonly name?: string
  readonly type: DnsType
  readonly ttl?: number
  /** A name, an address, or the bytes themselves. */
  readonly data: string | Buffer
}

export type DnsType = keyof typeof TYPES

/** `null`: silence. A Buffer: sent as it is; several, one after another. */
export type DnsReply = DnsAnswer | Buffer | readonly Buffer[] | null

/**
 * A DNS server for tests, over UDP and TCP at one port of this machine, that answers what it is told to, right or wrong.
 */
export class DnsServer {
  readonly #udp: Socket
  readonly #tcp: Server
  readonly questions: DnsQuestion[] = []

  static async start(t: Test, answer: (question: DnsQuestion) => DnsReply): Promise<DnsServer> {
    const server = new DnsServer(answer)
    t.teardown(() => server.close())
    server.#tcp.listen(0, '127.0.0.1')
    await once(server.#tcp, 'listening')
    server.#udp.bind(server.#port, '127.0.0.1')
    await once(server.#udp, 'listening')
    return server
  }

  private constructor(answer: (question: DnsQuestion) => DnsReply) {
    const replies = (message: Buffer, isUdp: boolean): readonly Buffer[] => {
      const question = { ...questionIn(message), isUdp, message }
      this.questions.push(question)
      const reply = answer(question)
      if (reply === null) return []
      if (Buffer.isBuffer(reply)) return [reply]
      return Array.isArray(reply) ? reply : [encodeAnswer(message, reply as DnsAnswer)]
    }
    this.#udp = createSocket('udp4', (message, { address, port }) => {
      for (const reply of replies(message, true)) this.#udp.send(reply, port, address)
    })
    this.#tcp = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.on('data', (data) => {
        for (const reply of replies(data.subarray(2), false)) {
          const length = Buffer.alloc(2)
          length.writeUInt16BE(reply.length)
          socket.write(Buffer.concat([length, reply]))
        }
      })
    })
  }

  get place(): string {
    return `127.0.0.1:${this.#port}`
  }

  get #port(): number {
    return (this.#tcp.address() as AddressInfo).port
  }

  close(): void {
    this.#udp.close()
    this.#tcp.close()
  }
}

/** The answer as it travels, to the question in `message`. */
export function encodeAnswer(
  message: Buffer,
  { code = 0, records = [], isCut = false }: DnsAnswer,
  id = message.readUInt16BE(0),
): Buffer {
  const header = Buffer.alloc(12)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(0x8180 | (isCut ? 0x0200 : 0) | code, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  const question = message.subarray(12, questionEnd(message))
  return Buffer.concat([header, question, ...records.map((record) => encodeRecord(record))])
}

function encodeRecord({ name, type, ttl = 300, data }: DnsRecord): Buffer {
  const owner = name === undefined ? Buffer.from([0xc0, 12]) : encodeName(name)
  const fixed = Buffer.alloc(10)
  const bytes =
    typeof data !== 'string' ? data : type === 'A' || type === 'AAAA' ? encodeAddress(data) : encodeName(data)
  fixed.writeUInt16BE(TYPES[type], 0)
  fixed.writeUInt16BE(1, 2)
  fixed.writeUInt32BE(ttl, 4)
  fixed.writeUInt16BE(bytes.length, 8)
  return Buffer.concat([owner, fixed, bytes])
}

export function encodeName(name: string): Buffer {
  const labels = name === '' ? [] : name.split('.')
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([Buffer.byteLength(label)]), Buffer.from(label)])),
    Buffer.from([0]),
  ])
}

function encodeAddress(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const groups = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const first = groups(head)
  const last = tail === undefined ? [] : groups(tail)
  const all = [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

function questionIn(message: Buffer): Pick<DnsQuestion, 'name' | 'type'> {
  const labels: string[] = []
  let at = 12
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const number = message.readUInt16BE(at + 1)
  const type = (Object.keys(TYPES) as DnsType[]).find((each) => TYPES[each] === number)!
  return { name: labels.join('.').toLowerCase(), type }
}

function questionEnd(message: Buffer): number {
  let at = 12
  while (message[at]! > 0) at += 1 + message[at]!
  return at + 5
}

const TYPES = { A: 1, CNAME: 5, PTR: 12, AAAA: 28 } as const

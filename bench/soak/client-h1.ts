import type { TLSSocket } from 'node:tls'
import { Answer, fieldsOf } from './answer.ts'
import { FORGED } from './app-view.ts'
import { Pattern } from './pattern.ts'
import { encodePlan, type Plan, pathOf } from './plan.ts'
import type { Random } from './random.ts'
import { Wire } from './wire.ts'

/** HTTP/1.1 by hand: a client of node:http would not say what it lets pass. */
export class H1Client {
  readonly #socket: TLSSocket
  readonly #wire: Wire
  readonly #random: Random
  hasLeft = false

  constructor(socket: TLSSocket, random: Random) {
    this.#socket = socket
    this.#wire = new Wire(socket)
    this.#random = random
  }

  /** One request and its answer; the request may still be on its way when the answer is there. */
  async exchange(plan: Plan): Promise<Answer> {
    const sending = this.send(plan)
    const answer = await this.receive(plan)
    // A client that was told about the end sends no more requests.
    if (!this.keepsAlive(answer)) this.#socket.destroySoon()
    else if (plan.upload > 0) await sending
    return answer
  }

  async send(plan: Plan): Promise<void> {
    this.#socket.write(headOf(plan))
    if (plan.upload > 0) await this.#sendBody(plan)
  }

  async receive(plan: Plan): Promise<Answer> {
    const answer = new Answer(plan)
    do {
      const head = await this.#wire.until('\r\n\r\n', HEAD_BYTES_MAX)
      if (head === null) return answer
      readHead(answer, head)
    } while (answer.status >= 100 && answer.status < 200 && answer.status !== 101)
    answer.isWhole = await this.#receiveBody(plan, answer)
    return answer
  }

  /** Whether another request may follow on this connection. */
  keepsAlive(answer: Answer): boolean {
    return answer.isWhole && answer.header('connection')?.toLowerCase() !== 'close' && !this.hasLeft
  }

  /** What is left when nothing should come any more. */
  get surplus(): string | null {
    const { surplus } = this.#wire
    return surplus.length === 0
      ? null
      : `${surplus.length} bytes too many: ${surplus.toString('latin1', 0, 80)}`
  }

  leave(): void {
    this.hasLeft = true
    this.#socket.destroy() // what has come and was not read makes it a reset
  }

  async #sendBody(plan: Plan): Promise<void> {
    const { id, upload, uploadIsChunked, pieceMax, pauseMs, leaves, hasTrailers } = plan
    const pattern = new Pattern(`up ${id}`)
    const end = leaves === 'in-request' ? this.#random.between(0, upload - 1) : upload
    for (let left = end; left > 0; ) {
      const piece = pattern.next(Math.min(left, this.#random.between(1, pieceMax)))
      left -= piece.length
      if (!(await this.#write(uploadIsChunked ? chunk(piece) : piece))) return
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
    if (leaves === 'in-request') return this.leave()
    if (uploadIsChunked) this.#socket.write(`0\r\n${hasTrailers ? `X-Soak-Trailer: ${id}\r\n` : ''}\r\n`)
  }

  /** Whether the connection is still there. */
  #write(bytes: Uint8Array): Promise<boolean> | boolean {
    const socket = this.#socket
    if (!socket.writable) return false
    if (socket.write(bytes)) return true
    return new Promise((resolve) => {
      const go = () => {
        socket.off('drain', go).off('close', go)
        resolve(socket.writable)
      }
      socket.on('drain', go).on('close', go)
    })
  }

  /** Whether it came to its end. */
  async #receiveBody(plan: Plan, answer: Answer): Promise<boolean> {
    const { status } = answer
    if (status === 101 || plan.method === 'HEAD' || status === 204 || status === 304) return true
    if (answer.header('transfer-encoding') === 'chunked') return this.#receiveChunks(plan, answer)
    const length = answer.header('content-length')
    if (length !== null) return (await this.#receiveBytes(plan, answer, Number(length))) === 0
    if (answer.header('connection') !== 'close') answer.wrong ??= 'its length is unknown'
    await this.#receiveBytes(plan, answer, Number.POSITIVE_INFINITY)
    return !this.hasLeft
  }

  /** How many did not come. */
  async #receiveBytes(plan: Plan, answer: Answer, length: number): Promise<number> {
    let left = length
    while (left > 0) {
      if (this.#leavesNow(plan, answer)) return left
      const bytes = await this.#wire.some(Math.min(left, 65_536))
      if (bytes === null) return left
      answer.body(bytes)
      left -= bytes.length
      if (plan.readsSlowly) await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
    }
    return left
  }

  async #receiveChunks(plan: Plan, answer: Answer): Promise<boolean> {
    for (;;) {
      const line = await this.#wire.until('\r\n', 100)
      if (line === null) return false
      if (!/^[0-9a-f]+\r\n$/i.test(line)) answer.wrong ??= `a chunk of ${JSON.stringify(line)}`
      const length = Number.parseInt(line, 16)
      if (length === 0) return this.#receiveTrailers(answer)
      if ((await this.#receiveBytes(plan, answer, length)) > 0) return false
      const end = await this.#wire.until('\r\n', 2)
      if (end === null) return false
      if (end !== '\r\n') answer.wrong ??= 'a chunk longer than it says'
    }
  }

  async #receiveTrailers(answer: Answer): Promise<boolean> {
    const raw: string[] = []
    for (;;) {
      const line = await this.#wire.until('\r\n', HEAD_BYTES_MAX)
      if (line === null) return false
      if (line === '\r\n') break
      raw.push(...fieldOf(line))
    }
    answer.trailers = fieldsOf(raw)
    return true
  }

  #leavesNow({ leaves, size }: Plan, answer: Answer): boolean {
    if (leaves !== 'in-answer' || !answer.isFromApp || answer.bytes < size / 3) return false
    this.leave()
    return true
  }
}

export function headOf(plan: Plan, more: readonly string[] = []): string {
  const { method, upload, uploadIsChunked, hasTrailers, forges } = plan
  const lines = [`${method} ${pathOf(plan)} HTTP/1.1`, 'Host: soak.example.test', 'Cookie: a=1; b=2']
  lines.push(`X-Soak-Plan: ${encodePlan(plan)}`, ...more)
  if (forges) for (const name of FORGED_NAMES) lines.push(`${name}: ${FORGED}`)
  if (hasTrailers) lines.push('TE: trailers')
  if (upload > 0) lines.push(uploadIsChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${upload}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

export function readHead(answer: Answer, head: string): void {
  const [first = '', ...lines] = head.slice(0, -4).split('\r\n')
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]
  if (status === undefined) answer.wrong ??= `no answer begins with ${JSON.stringify(first.slice(0, 80))}`
  answer.head(Number(status), fieldsOf(lines.flatMap(fieldOf)))
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}

function chunk(piece: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
}

/** Requests that may be sent without waiting: each is small, and nothing happens to it. */
export function isPipelinable({ upload, size, fault, leaves, readsSlowly, framing }: Plan): boolean {
  if (readsSlowly || leaves !== 'never' || framing === 'close') return false
  return upload < 5000 && size < 5000 && fault === 'none'
}

export function bodyOf(plan: Plan): Buffer {
  const bytes = new Pattern(`up ${plan.id}`).next(plan.upload)
  if (plan.upload === 0 || !plan.uploadIsChunked) return bytes
  const trailer = plan.hasTrailers ? `X-Soak-Trailer: ${plan.id}\r\n` : ''
  return Buffer.concat([chunk(bytes), Buffer.from(`0\r\n${trailer}\r\n`)])
}

export const FORGED_NAMES = ['X-Agent-Verdict', 'x_ja4_fingerprint', 'X-AGENT-NAME', 'X-Agent-Revision']
const HEAD_BYTES_MAX = 65_536
const SLOW_MS = 5

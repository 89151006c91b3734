import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { AppRequest, AppResponse } from './app.ts'
import type { View } from './app-view.ts'
import type { AppClose } from './messages.ts'
import { Pattern } from './pattern.ts'
import { hasBody, type Plan } from './plan.ts'

/** The app's answer to one request, or what the plan says instead. */
export class AppAnswer {
  readonly #plan: Plan
  readonly #request: AppRequest
  readonly #response: AppResponse
  readonly #view: View
  readonly #closes: (connection: EventEmitter, close: AppClose) => void

  /** `closes` is told of each connection that is closed here. */
  constructor(
    plan: Plan,
    request: AppRequest,
    response: AppResponse,
    view: View,
    closes: (connection: EventEmitter, close: AppClose) => void,
  ) {
    this.#plan = plan
    this.#request = request
    this.#response = response
    this.#view = view
    this.#closes = closes
  }

  async send(): Promise<void> {
    const { fault, size } = this.#plan
    if (fault === 'silent') return
    if (fault === 'cut-head') return this.#cut()
    this.#writeHead()
    const isWhole = fault !== 'cut-body' && fault !== 'stalled'
    if (hasBody(this.#plan)) await this.#writeBody(isWhole ? size : Math.floor(size * Math.random()))
    if (fault === 'cut-body') return this.#cut()
    if (isWhole) this.#end()
    if (fault === 'early-close') this.#closeConnection()
  }

  /** Each piece goes back before the next one comes. */
  async echo(): Promise<void> {
    this.#writeHead()
    try {
      for await (const piece of this.#request as AsyncIterable<Buffer>)
        if (!(await this.#write(piece))) return
    } catch {
      return // the client has left
    }
    this.#end()
  }

  #writeHead(): void {
    const { id, status, size, framing } = this.#plan
    const headers: Record<string, string | string[]> = {
      'x-soak-id': id,
      'x-soak-view': JSON.stringify(this.#view),
      'set-cookie': [`one=${id}`, `two=${id}; Path=/`],
    }
    if (framing === 'length' && status !== 204 && status !== 304) headers['content-length'] = String(size)
    if (framing === 'close' && !this.#isHttp2) headers['connection'] = 'close'
    if (this.#plan.hasTrailers && !this.#isHttp2) headers['trailer'] = 'X-Soak-Trailer'
    const response = this.#response as { writeHead(status: number, headers: object): void }
    if (framing === 'close') this.#endsWithConnection()
    if (!this.#isGone) response.writeHead(status, headers)
    // Else Node waits for the first bytes of the body, which in an echo wait for this.
    if ('flushHeaders' in this.#response) this.#response.flushHeaders()
  }

  async #writeBody(length: number): Promise<void> {
    const { id, pieceMax, pauseMs } = this.#plan
    const pattern = new Pattern(`down ${id}`)
    for (let left = length; left > 0; ) {
      const piece = pattern.next(Math.min(left, 1 + Math.floor(Math.random() * pieceMax)))
      left -= piece.length
      if (!(await this.#write(piece))) return
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  /** Whether the client is still connected. */
  async #write(piece: Uint8Array): Promise<boolean> {
    if (this.#isGone) return false
    const response = this.#response as NodeJS.WritableStream
    if (response.write(piece)) return true
    await new Promise<void>((resolve) => {
      const go = () => {
        response.off('drain', go).off('close', go)
        resolve()
      }
      response.on('drain', go).on('close', go)
    })
    return !this.#isGone
  }

  #end(): void {
    if (this.#isGone) return
    const { id, hasTrailers } = this.#plan
    if (hasTrailers) this.#response.addTrailers({ 'x-soak-trailer': id })
    this.#response.end()
  }

  get #isHttp2(): boolean {
    return 'stream' in this.#response
  }

  get #isGone(): boolean {
    if (!('stream' in this.#response)) return this.#response.destroyed || this.#response.closed
    const { stream } = this.#response
    return stream === undefined || stream.destroyed || stream.closed
  }

  /** Node would send chunks, unless it is told that they are not understood. */
  #endsWithConnection(): void {
    if (!('stream' in this.#response)) this.#response.useChunkedEncodingByDefault = false
  }

  #cut(): void {
    // Not `close`: Node (24.21) may go round for ever when that is called within its own callbacks.
    if ('stream' in this.#response) return void this.#response.stream?.destroy(new Error('cut'))
    // The request's: a response has none while Node has not done with the one before it on the connection.
    const socket = this.#request.socket as Socket
    this.#closes(socket, { why: 'cut', id: this.#plan.id })
    if (Math.random() < 0.5) socket.resetAndDestroy()
    else socket.destroy()
  }

  #closeConnection(): void {
    if ('stream' in this.#response) return
    const socket = this.#request.socket as Socket
    this.#response.once('finish', () => {
      this.#closes(socket, { why: 'early-close', id: this.#plan.id })
      socket.destroySoon()
    })
  }
}

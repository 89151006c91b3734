import type { ClientRequest, IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import httpProxy from 'http-proxy'
import { cutOff } from '../connection/cut-off.ts'
import { limitPieces } from './upgrade-pieces.ts'
import { failureOf, type UpstreamAddress } from '../upstream/upstream-dial.ts'
import type { UpstreamFailure } from '../upstream/upstream-stream.ts'

export type UpgradeOutcome =
  /** The app agreed, and the connection has ended. */
  | { readonly kind: 'ended' }
  /** The app answered with an ordinary response, which was passed on. */
  | { readonly kind: 'declined'; readonly status: number }
  | { readonly kind: 'client-gone' }
  /** Nothing was sent to the client: the caller must answer. */
  | { readonly kind: 'failed'; readonly reason: UpstreamFailure }

export interface Upgrading {
  readonly socket: Socket
  /** The bytes that the client sent after its request. */
  readonly head: Buffer
  /** In origin form. */
  readonly path: string
  /** The value of the Upgrade header. */
  readonly protocol: string
  /** All headers for the app, except Connection and Upgrade. */
  readonly headers: readonly string[]
  readonly target: Pick<UpstreamAddress, 'tls' | 'host' | 'port' | 'socketPath'>
  /** 0: no limit. */
  readonly times: {
    readonly connectTimeoutMs: number
    readonly headTimeoutMs: number
    readonly idleTimeoutMs: number
  }
  /** How long both sides may be silent. 0: no limit. */
  readonly idleMs: number
  /** Called if they were silent for too long. */
  idled(): void
  /** Called if the app declines: an ordinary answer follows. */
  declined(): void
  /** Called once. */
  done(outcome: UpgradeOutcome): void
}

/**
 * Carries WebSockets and other upgrades with http-proxy: once the app agrees, bytes pass both ways until one
 * side ends. This class adds what http-proxy lacks. The request is written as it was judged. The end of one
 * side ends the other, also before the app has answered. A response that is not an upgrade gets framing of
 * its own.
 */
export class Upgrades {
  readonly #proxy = httpProxy.createProxyServer({})
  readonly #underway = new Map<IncomingMessage, Carried>()

  constructor() {
    // http-proxy rejects everything except WebSocket. Here the app decides on upgrades.
    const passes = this.#proxy as unknown as { wsPasses: { readonly name: string }[] }
    passes.wsPasses = passes.wsPasses.filter((pass) => pass.name !== 'checkMethodAndHeader')
    this.#proxy.on('proxyReqWs', (outgoing, request) => this.#underway.get(request)?.ask(outgoing))
  }

  /** The number of current upgrades. */
  get count(): number {
    return this.#underway.size
  }

  carry(upgrading: Upgrading): void {
    const { socket, target } = upgrading
    // Not the client's request: http-proxy would parse its path and headers again, with a different result
    // than was judged.
    const request = { method: 'GET', url: '/', headers: {} } as IncomingMessage
    const carried = new Carried(upgrading, () => this.#underway.delete(request))
    this.#underway.set(request, carried)
    try {
      hushed(() => {
        this.#proxy.ws(request, socket, NOTHING, optionsFor(target), (error) => carried.failed(error))
      })
      carried.asked()
    } catch {
      carried.unwritable()
    }
  }

  /** Ends all current upgrades. */
  close(): void {
    for (const carried of this.#underway.values()) carried.end()
  }
}

/** One upgrade, from the request to the end of both connections. */
class Carried {
  readonly #upgrading: Upgrading
  readonly #forget: () => void
  #outgoing: ClientRequest | null = null
  #timer: NodeJS.Timeout | undefined
  #stage: 'connecting' | 'asking' | 'answered' | 'over' = 'connecting'
  readonly #clientGone = () => {
    this.#finish({ kind: 'client-gone' })
    this.#outgoing?.destroy()
    this.#upgrading.socket.destroy()
  }

  constructor(upgrading: Upgrading, forget: () => void) {
    this.#upgrading = upgrading
    this.#forget = forget
  }

  /** Called before the request is sent, and before http-proxy adds its listeners. */
  ask(outgoing: ClientRequest): void {
    const { socket, headers, path, protocol, target, times } = this.#upgrading
    this.#outgoing = outgoing
    outgoing.path = path
    for (const name of outgoing.getHeaderNames()) outgoing.removeHeader(name)
    for (let i = 0; i < headers.length; i += 2) {
      if (!TRAILER.test(headers[i]!)) outgoing.appendHeader(headers[i]!, headers[i + 1]!)
    }
    outgoing.setHeader('Connection', 'Upgrade')
    outgoing.setHeader('Upgrade', protocol)
    this.#limit(times.connectTimeoutMs, 'connect-timeout')
    outgoing.once('socket', (appSocket) => {
      appSocket.once(target.tls === null ? 'connect' : 'secureConnect', () => this.#connected())
    })
    // A client that closes even only its own side before an answer no longer wants it.
    socket.once('end', this.#clientGone).once('close', this.#clientGone)
    outgoing.once('upgrade', (response, appSocket) => this.#agreed(response, appSocket))
  }

  /**
   * Called after that. Replaces listeners of http-proxy, which would end the client's socket on any error,
   * although an answer may have to be written or cut off, and would pass on an ordinary response without
   * framing.
   */
  asked(): void {
    this.#outgoing
      ?.removeAllListeners('error')
      .on('error', (error) => this.failed(error))
      .removeAllListeners('response')
      .once('response', (response: IncomingMessage) => this.#declined(response))
  }

  failed(error: NodeJS.ErrnoException): void {
    if (this.#stage !== 'connecting' && this.#stage !== 'asking') return
    const isParsers = error.code?.startsWith('HPE_') === true
    const reason = isParsers ? 'bad-response' : failureOf(error, this.#stage === 'connecting')
    this.#finish({ kind: 'failed', reason })
  }

  /** Called if Node refused to write the request. */
  unwritable(): void {
    this.#finish({ kind: 'failed', reason: 'bad-request' })
    this.#outgoing?.on('error', () => {}).destroy()
  }

  end(): void {
    this.#upgrading.socket.destroy()
  }

  #connected(): void {
    if (this.#stage !== 'connecting') return
    this.#stage = 'asking'
    this.#limit(this.#upgrading.times.headTimeoutMs, 'head-timeout')
  }

  #limit(timeoutMs: number, reason: UpstreamFailure): void {
    clearTimeout(this.#timer)
    if (timeoutMs === 0) return
    this.#timer = setTimeout(() => {
      this.#finish({ kind: 'failed', reason })
      this.#outgoing?.destroy()
    }, timeoutMs)
  }

  /** http-proxy then writes the head of the answer and passes bytes on. */
  #agreed(response: IncomingMessage, app: Socket): void {
    const { socket, head, idleMs } = this.#upgrading
    this.#answered()
    // Not earlier: a socket with unread data does not report that the client has closed its side.
    if (head.length > 0) socket.unshift(head)
    response.headers = headersAsSent(response.rawHeaders)
    socket.setDefaultEncoding('latin1')
    if (idleMs > 0) socket.setTimeout(idleMs, () => this.#idled())
    socket.once('pipe', () => limitPieces(app, socket))
    app.once('pipe', () => limitPieces(socket, app))
    // When one side ends, for any reason, the other ends too.
    app.on('error', () => app.destroy())
    app.once('close', () => socket.destroySoon())
    socket.once('close', () => {
      app.destroy()
      this.#finish({ kind: 'ended' })
    })
  }

  #idled(): void {
    this.#upgrading.idled()
    this.#upgrading.socket.destroy()
  }

  /** The app's own answer. Node has decoded its chunks, so its end is the end of the connection. */
  #declined(response: IncomingMessage): void {
    const { socket } = this.#upgrading
    this.#answered()
    this.#upgrading.declined()
    const { idleTimeoutMs } = this.#upgrading.times
    if (idleTimeoutMs > 0) response.setTimeout(idleTimeoutMs, () => response.destroy())
    const lines = [`HTTP/1.1 ${response.statusCode} ${response.statusMessage}`]
    const raw = response.rawHeaders
    for (let i = 0; i < raw.length; i += 2) if (!FRAMING.test(raw[i]!)) lines.push(`${raw[i]}: ${raw[i + 1]}`)
    socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`, 'latin1')
    response.pipe(socket, { end: false })
    response.once('end', () => endSoftly(socket)).on('error', () => {})
    response.once('close', () => {
      if (!response.complete) cutOff(socket)
      this.#finish({ kind: 'declined', status: response.statusCode ?? 0 })
    })
    socket.once('close', () => response.destroy())
  }

  /** From here on the app answers the client. */
  #answered(): void {
    this.#stage = 'answered'
    clearTimeout(this.#timer)
    const { socket } = this.#upgrading
    socket.off('end', this.#clientGone).off('close', this.#clientGone)
  }

  #finish(outcome: UpgradeOutcome): void {
    if (this.#stage === 'over') return
    this.#answered()
    this.#stage = 'over'
    this.#forget()
    this.#upgrading.done(outcome)
  }
}

/** Ends our side of an upgraded connection, and reads on for a moment what the client still sends. */
export function endSoftly(socket: Socket): void {
  socket.end(() => {
    const timer = setTimeout(() => socket.destroy(), LINGER_MS)
    socket.once('close', () => clearTimeout(timer))
  })
  socket.once('end', () => socket.destroySoon()).resume()
}

/** The headers as the app spelled and repeated them. http-proxy writes the values of a list one by one. */
function headersAsSent(rawHeaders: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = Object.create(null)
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    headers[name] = [...(headers[name] ?? []), rawHeaders[i + 1]!]
  }
  return headers
}

function optionsFor({ tls, host, port, socketPath }: Upgrading['target']): httpProxy.ServerOptions {
  const protocol = tls === null ? 'http:' : 'https:'
  const place = socketPath === null ? { protocol, host, port } : { protocol, host, port, socketPath }
  if (tls === null) return { target: place }
  const name = tls.serverName ?? host
  // An address is not a server name (RFC 6066 §3). Without one, Node would use the client's Host instead.
  const ssl = { servername: isIP(name) === 0 ? name : '' }
  return { target: { ...place, ...(tls.ca !== null && { ca: tls.ca }) }, secure: tls.verify, ssl }
}

/**
 * http-proxy (1.18.1) uses `util._extend`. Without this, Node would print a deprecation warning (DEP0060) at
 * the first upgrade, which the operator cannot fix. Other warnings must still appear.
 */
function hushed(work: () => void): void {
  const { noDeprecation = false } = process
  process.noDeprecation = true
  try {
    work()
  } finally {
    process.noDeprecation = noDeprecation
  }
}

const NOTHING = Buffer.alloc(0)
const FRAMING = /^(?:connection|keep-alive|transfer-encoding|upgrade)$/i
/** Announces trailers of a body. There is no body here, so Node would throw. */
const TRAILER = /^trailer$/i
/** How long a client that has its answer may take to close the connection. */
const LINGER_MS = 2000

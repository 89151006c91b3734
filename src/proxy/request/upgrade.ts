import type { ClientRequest, IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import httpProxy from 'http-proxy'
import { cutOff } from '../connection/cut-off.ts'
import { limitPieces } from './upgrade-pieces.ts'
import { failureOf, type UpstreamAddress } from '../upstream/upstream-dial.ts'
import type { UpstreamFailure } from '../upstream/upstream-stream.ts'

export type UpgradeOutcome =
  /** The app agreed, and the connection has ended since. */
  | { readonly kind: 'ended' }
  /** The app answered with an ordinary response, which was passed on. */
  | { readonly kind: 'declined'; readonly status: number }
  | { readonly kind: 'client-gone' }
  /** Nothing has been sent to the client: the answer is the caller's. */
  | { readonly kind: 'failed'; readonly reason: UpstreamFailure }

export interface Upgrading {
  readonly socket: Socket
  /** What the client sent behind its request. */
  readonly head: Buffer
  /** In origin form. */
  readonly path: string
  /** What the connection is to become: the Upgrade header. */
  readonly protocol: string
  /** The complete list for the app, but for Connection and Upgrade. */
  readonly headers: readonly string[]
  readonly target: Pick<UpstreamAddress, 'tls' | 'host' | 'port' | 'socketPath'>
  /** 0 is for ever. */
  readonly times: {
    readonly connectTimeoutMs: number
    readonly headTimeoutMs: number
    readonly idleTimeoutMs: number
  }
  /** How long both sides may be silent; 0 is for ever. */
  readonly idleMs: number
  /** They were. */
  idled(): void
  /** The app declines: what goes to the client now is an answer like any other. */
  declined(): void
  /** Called once. */
  done(outcome: UpgradeOutcome): void
}

/**
 * WebSockets and other upgrades, carried by http-proxy: once the app agrees, bytes pass both ways until one side ends.
 * What http-proxy leaves open is seen to here: the request is written as it was judged, each side's end is the other's,
 * also before the app has answered, and an answer that is no upgrade is written with framing of its own.
 */
export class Upgrades {
  readonly #proxy = httpProxy.createProxyServer({})
  readonly #underway = new Map<IncomingMessage, Carried>()

  constructor() {
    // http-proxy destroys what is no WebSocket; whether something may be upgraded is for the app to say.
    const passes = this.#proxy as unknown as { wsPasses: { readonly name: string }[] }
    passes.wsPasses = passes.wsPasses.filter((pass) => pass.name !== 'checkMethodAndHeader')
    this.#proxy.on('proxyReqWs', (outgoing, request) => this.#underway.get(request)?.ask(outgoing))
  }

  /** How many are going on. */
  get count(): number {
    return this.#underway.size
  }

  carry(upgrading: Upgrading): void {
    const { socket, target } = upgrading
    // Not the client's own: http-proxy would read its path and headers anew, and otherwise than they were judged.
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

  /** Ends what is still going on. */
  close(): void {
    for (const carried of this.#underway.values()) carried.end()
  }
}

/** One of them, from the request to the end of both connections. */
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

  /** Called before the request goes out, and before http-proxy listens for what becomes of it. */
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
    // Who closes only its own side before there is an answer has lost interest in it.
    socket.once('end', this.#clientGone).once('close', this.#clientGone)
    outgoing.once('upgrade', (response, appSocket) => this.#agreed(response, appSocket))
  }

  /**
   * Called after that. http-proxy would end the client's socket on any error, where there may be an answer to be written
   * or one to be cut off, and pass on an ordinary response without framing.
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

  /** Node has refused to write the request. */
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

  /** http-proxy writes the head of the answer after this, and passes bytes on. */
  #agreed(response: IncomingMessage, app: Socket): void {
    const { socket, head, idleMs } = this.#upgrading
    this.#answered()
    // Not before: a socket that has something to be read does not tell that the client has closed its side.
    if (head.length > 0) socket.unshift(head)
    response.headers = headersAsSent(response.rawHeaders)
    socket.setDefaultEncoding('latin1')
    if (idleMs > 0) socket.setTimeout(idleMs, () => this.#idled())
    socket.once('pipe', () => limitPieces(app, socket))
    app.once('pipe', () => limitPieces(socket, app))
    // A side that is gone, however it went, takes the other with it.
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

  /** The app's own answer, whose body http has already freed of its chunks: it ends with the connection. */
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

  /** From here on the client hears the app. */
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

/** Ends our side of a connection that has left HTTP, and for a moment goes on reading what the client still sends. */
export function endSoftly(socket: Socket): void {
  socket.end(() => {
    const timer = setTimeout(() => socket.destroy(), LINGER_MS)
    socket.once('close', () => clearTimeout(timer))
  })
  socket.once('end', () => socket.destroySoon()).resume()
}

/** In the spelling of the app, and each as often as it sent it; http-proxy writes the values of a list one by one. */
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
  // An address is no server name (RFC 6066 §3); said nothing, Node would take the client's Host for it.
  const ssl = { servername: isIP(name) === 0 ? name : '' }
  return { target: { ...place, ...(tls.ca !== null && { ca: tls.ca }) }, secure: tls.verify, ssl }
}

/**
 * http-proxy (1.18.1) copies objects by `util._extend`. At the first upgrade Node would tell whoever runs us that this is
 * deprecated (DEP0060), about which they can do nothing; what else is deprecated they shall still hear.
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
/** Announces trailers behind a body, and there is none: Node would throw. */
const TRAILER = /^trailer$/i
/** How long a client that has its answer may take to close the connection. */
const LINGER_MS = 2000

import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import httpProxy from 'http-proxy'

/** Where an upgraded connection goes. */
export interface UpgradeTarget {
  readonly tls: {
    readonly verify: boolean
    readonly ca: string | null
    readonly serverName: string | null
  } | null
  readonly host: string
  readonly port: number
  /** In place of host and port. */
  readonly socketPath: string | null
}

export type UpgradeOutcome =
  /** The app agreed, and the connection has ended since. */
  | { readonly kind: 'ended' }
  /** The app answered with an ordinary response, which was passed on. */
  | { readonly kind: 'declined'; readonly status: number }
  | { readonly kind: 'client-gone' }
  /** Nothing has been sent to the client: what is written to it during the call is the answer. */
  | { readonly kind: 'failed'; readonly code: string }

export interface Upgrading {
  readonly request: IncomingMessage
  readonly socket: Socket
  /** What the client sent behind its request. */
  readonly head: Buffer
  /** The complete list for the app, but for Connection and Upgrade. */
  readonly headers: readonly string[]
  readonly target: UpgradeTarget
  /** How long both sides may be silent; 0 is for ever. */
  readonly idleMs: number
  /** Called once. */
  done(outcome: UpgradeOutcome): void
}

/**
 * WebSockets and other upgrades, carried by http-proxy: once the app agrees, bytes pass both ways until one side ends.
 * What http-proxy leaves open is seen to here: each side's end is the other's, also before the app has answered, and
 * an answer that is no upgrade is written with framing of its own.
 */
export class Upgrades {
  readonly #proxy = httpProxy.createProxyServer({})
  readonly #underway = new Map<IncomingMessage, Upgrading>()

  constructor() {
    // http-proxy destroys what is no WebSocket; whether something may be upgraded is for the app to say.
    const passes = this.#proxy as unknown as { wsPasses: { readonly name: string }[] }
    passes.wsPasses = passes.wsPasses.filter((pass) => pass.name !== 'checkMethodAndHeader')
    this.#proxy.on('proxyReqWs', (outgoing, request) => {
      const upgrading = this.#underway.get(request)
      if (upgrading !== undefined) ask(outgoing, upgrading)
    })
  }

  /** How many are going on. */
  get count(): number {
    return this.#underway.size
  }

  carry(upgrading: Upgrading): void {
    const { request, socket, head, target, idleMs } = upgrading
    let ended = false
    const done = (outcome: UpgradeOutcome) => {
      if (ended) return
      ended = true
      this.#underway.delete(request)
      upgrading.done(outcome)
    }
    this.#underway.set(request, { ...upgrading, done })
    if (idleMs > 0) socket.setTimeout(idleMs, () => socket.destroy())
    this.#proxy.ws(request, socket, head, optionsFor(target), (error) => {
      // http-proxy ends the socket after this.
      done({ kind: 'failed', code: (error as NodeJS.ErrnoException).code ?? 'ERROR' })
    })
  }

  /** Ends what is still going on. */
  close(): void {
    for (const { socket } of this.#underway.values()) socket.destroy()
  }
}

/** Called before the request goes out. */
function ask(outgoing: ClientRequest, upgrading: Upgrading): void {
  const { request, socket, headers, done } = upgrading
  for (const name of outgoing.getHeaderNames()) outgoing.removeHeader(name)
  for (let i = 0; i < headers.length; i += 2) outgoing.appendHeader(headers[i]!, headers[i + 1]!)
  outgoing.setHeader('Connection', 'Upgrade')
  outgoing.setHeader('Upgrade', request.headers.upgrade ?? '')

  const gone = () => {
    outgoing.destroy()
    done({ kind: 'client-gone' })
  }
  socket.once('close', gone)
  socket.on('error', () => socket.destroy())
  outgoing.once('upgrade', (_, appSocket: Socket) => {
    socket.off('close', gone)
    tie(socket, appSocket, () => done({ kind: 'ended' }))
  })
  outgoing.prependOnceListener('response', (response: IncomingMessage & { upgrade?: boolean }) => {
    response.upgrade = true // http-proxy then leaves it to us
    decline(socket, response)
    socket.off('close', gone)
    socket.once('close', () => response.destroy())
    done({ kind: 'declined', status: response.statusCode ?? 0 })
  })
}

/** A side that is gone, however it went, takes the other with it. */
function tie(client: Socket, app: Duplex, ended: () => void): void {
  app.on('error', () => app.destroy())
  app.once('close', () => client.destroySoon())
  client.once('close', () => {
    app.destroy()
    ended()
  })
}

/** The app's own answer, whose body http has already freed of its chunks: it ends with the connection. */
function decline(socket: Socket, response: IncomingMessage): void {
  const lines = [`HTTP/1.1 ${response.statusCode} ${response.statusMessage}`]
  const raw = response.rawHeaders
  for (let i = 0; i < raw.length; i += 2) if (!FRAMING.test(raw[i]!)) lines.push(`${raw[i]}: ${raw[i + 1]}`)
  socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`, 'latin1')
  response.pipe(socket)
}

function optionsFor({ tls, host, port, socketPath }: UpgradeTarget): httpProxy.ServerOptions {
  const protocol = tls === null ? 'http:' : 'https:'
  const place = socketPath === null ? { protocol, host, port } : { protocol, host, port, socketPath }
  if (tls === null) return { target: place }
  const { verify, ca, serverName } = tls
  const trust = { ...(ca !== null && { ca }), ...(serverName !== null && { servername: serverName }) }
  return { target: { ...place, ...trust }, secure: verify, ssl: trust }
}

const FRAMING = /^(?:connection|keep-alive|transfer-encoding|upgrade)$/i

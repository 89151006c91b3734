import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** What the relay does with the connections to an app. */
export type RelayMode =
  | 'passes'
  /** No server listens, and open connections are gone. */
  | 'refuses'
  /** Connections are taken, and nothing moves. */
  | 'hangs'
  /** Whatever is open is reset, again and again. */
  | 'resets'
  /** Each piece takes its time. */
  | 'is slow'

/** Stands before the app, as a network does: ends, resets and back-pressure are passed on as they come. */
export class AppRelay {
  readonly port: number
  readonly #appPort: number
  readonly #sockets = new Set<Socket>()
  #server: Server
  #mode: RelayMode = 'passes'
  #resets: NodeJS.Timeout | undefined

  static async before(appPort: number): Promise<AppRelay> {
    const server = createServer({ allowHalfOpen: true })
    return new AppRelay(appPort, server, await listening(server, 0))
  }

  private constructor(appPort: number, server: Server, port: number) {
    this.#appPort = appPort
    this.port = port
    this.#server = this.#serving(server)
  }

  async be(mode: RelayMode): Promise<void> {
    const before = this.#mode
    this.#mode = mode
    clearInterval(this.#resets)
    if (before === 'refuses') {
      const server = createServer({ allowHalfOpen: true })
      await listening(server, this.port)
      this.#server = this.#serving(server)
    }
    if (before === 'hangs') for (const socket of this.#sockets) socket.resume()
    if (mode === 'hangs') for (const socket of this.#sockets) socket.pause()
    if (mode === 'resets') this.#resets = setInterval(() => this.#reset(), RESET_MS)
    if (mode !== 'refuses') return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#reset()
    await closed
  }

  async close(): Promise<void> {
    if (this.#mode !== 'refuses') await this.be('refuses')
  }

  #reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  #serving(server: Server): Server {
    return server.on('connection', (here) => {
      const there = connect({ port: this.#appPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
      here.setNoDelay(true)
      this.#join(here, there)
      this.#join(there, here)
    })
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from)
    let delayed = 0
    let hasEnded = false
    const pass = (bytes: Buffer) => {
      if (!to.write(bytes)) from.pause()
    }
    const endIfAllPassed = () => {
      if (hasEnded && delayed === 0) to.end()
    }
    from.on('data', (bytes) => {
      if (this.#mode !== 'is slow' && delayed === 0) return pass(bytes)
      delayed++
      from.pause()
      setTimeout(() => {
        delayed--
        from.resume()
        pass(bytes)
        endIfAllPassed()
      }, SLOW_MS)
    })
    if (this.#mode === 'hangs') from.pause()
    to.on('drain', () => this.#mode === 'hangs' || from.resume())
    // A socket says so also while it is paused.
    from.on('end', () => {
      hasEnded = true
      endIfAllPassed()
    })
    from.on('error', () => to.resetAndDestroy())
    from.on('close', () => {
      this.#sockets.delete(from)
      // Both ends have been passed on, or it was cut.
      if (!from.readableEnded) to.resetAndDestroy()
    })
  }
}

async function listening(server: Server, port: number): Promise<number> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const RESET_MS = 100
const SLOW_MS = 40

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { cutOff } from '../../src/proxy/connection/cut-off.ts'

/** Stands before a server, as a network does, and breaks as one does. */
export class Relay {
  readonly url: string
  readonly #to: { readonly host: string; readonly port: number }
  readonly #port: number
  readonly #sockets = new Set<Socket>()
  #server: Server | null
  #isStalled = false
  #delayMs = 0

  static async before(url: string): Promise<Relay> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Relay(new URL(url), server)
  }

  private constructor(url: URL, server: Server) {
    this.#to = { host: url.hostname, port: Number(url.port || 5432) }
    this.#port = (server.address() as AddressInfo).port
    this.#server = this.#serving(server)
    const here = new URL(url)
    here.hostname = '127.0.0.1'
    here.port = String(this.#port)
    this.url = here.href
  }

  /** Connections break; new ones are taken. */
  cut(): void {
    for (const socket of this.#sockets) cutOff(socket)
  }

  /** The server is gone. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = null
    server?.close()
    this.cut()
    if (server !== null) await once(server, 'close')
  }

  /** The server is back. */
  async start(): Promise<void> {
    const server = createServer()
    server.listen(this.#port, '127.0.0.1')
    await once(server, 'listening')
    this.#server = this.#serving(server)
  }

  /** Nothing goes through, and nothing is said. */
  stall(isStalled: boolean): void {
    this.#isStalled = isStalled
    for (const socket of this.#sockets) isStalled ? socket.pause() : socket.resume()
  }

  /** What goes through takes so long, each way. */
  delay(delayMs: number): void {
    this.#delayMs = delayMs
  }

  #serving(server: Server): Server {
    return server.on('connection', (here) => {
      const there = connect(this.#to)
      this.#join(here, there)
      this.#join(there, here)
    })
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from)
    from.on('data', (bytes) => {
      // Timers that are as long end in their order.
      if (this.#delayMs === 0) to.write(bytes)
      else setTimeout(() => to.write(bytes), this.#delayMs)
    })
    if (this.#isStalled) from.pause()
    from.on('error', () => undefined)
    from.on('close', () => {
      this.#sockets.delete(from)
      to.destroy()
    })
  }
}

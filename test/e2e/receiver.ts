import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'

export interface Received {
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** A server that says yes to all, and shows what it was sent. */
export class Receiver {
  readonly url: string
  readonly #received: Received[] = []
  #arrived = Promise.withResolvers<void>()

  static async start(t: Test): Promise<Receiver> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close().closeAllConnections())
    const receiver = new Receiver(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    server.on('request', async (asked: IncomingMessage, response) => {
      receiver.#received.push({ headers: asked.headers, body: await buffer(asked) })
      receiver.#arrived.resolve()
      response.end('ok')
    })
    return receiver
  }

  private constructor(url: string) {
    this.url = url
  }

  async next(): Promise<Received> {
    await this.#arrived.promise
    this.#arrived = Promise.withResolvers()
    return this.#received.shift()!
  }
}

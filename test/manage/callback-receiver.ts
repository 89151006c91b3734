import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import type { Owner } from '../store/databases.ts'

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  readonly body: any
}

/** A server that is told things. */
export class Receiver {
  readonly received: Received[] = []
  readonly url: string

  /** `answer`: in place of a 200. */
  static async start(
    t: Owner,
    answer: (response: ServerResponse, number: number) => unknown = (response) => response.end(),
  ): Promise<Receiver> {
    const server = createServer(async (request, response) => {
      const body = await text(request)
      receiver.received.push({ path: request.url!, headers: request.headers, body: JSON.parse(body) })
      answer(response, receiver.received.length)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    const receiver = new Receiver(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return receiver
  }

  private constructor(url: string) {
    this.url = url
  }

  /** Resolves when there are as many. */
  async has(count: number): Promise<readonly Received[]> {
    const untilMs = Date.now() + 10_000
    while (this.received.length < count && Date.now() < untilMs) await wait(10)
    return this.received
  }
}

import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import type { Owner } from '../store/databases.ts'

export interface Delivered {
  readonly id: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  readonly body: any
  readonly atMs: number
}

/** Answers the so manieth, which has been read. */
export type Answering = (response: ServerResponse, number: number, delivered: Delivered) => unknown

/** A server that webhooks lead to. Where it has a secret it verifies all that comes, as those who use either package do. */
export class HookReceiver {
  readonly all: Delivered[] = []
  readonly unverified: string[] = []
  readonly url: string
  /** Connections there have been. */
  connections = 0
  /** What is verified with: set once it is known. */
  secret: string | null = null
  answer: Answering = (response) => response.end()

  static async start(t: Owner, answer?: Answering): Promise<HookReceiver> {
    const server = createServer((request, response) => receiver.#take(request, response))
    server.on('connection', () => void receiver.connections++)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    const receiver = new HookReceiver(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    if (answer !== undefined) receiver.answer = answer
    return receiver
  }

  private constructor(url: string) {
    this.url = url
  }

  /** The ids of events, in the order in which they came. */
  get ids(): readonly string[] {
    return this.all.map(({ id }) => id)
  }

  /** Resolves when there are as many. */
  async has(count: number, withinMs = 10_000): Promise<readonly Delivered[]> {
    const untilMs = Date.now() + withinMs
    while (this.all.length < count && Date.now() < untilMs) await wait(5)
    return this.all
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined)
    const sent = await text(request).catch(() => null)
    if (sent === null) return
    const { headers, url } = request
    const id = String(headers['webhook-id'])
    const delivered = { id, path: url!, headers, text: sent, body: JSON.parse(sent), atMs: Date.now() }
    if (this.secret !== null) this.#verify(delivered, this.secret)
    this.all.push(delivered)
    this.answer(response, this.all.length, delivered)
  }

  #verify({ id, headers, text }: Delivered, secret: string): void {
    const given = headers as Record<string, string>
    for (const verifier of [new StandardWebhook(secret), new SvixWebhook(secret)])
      try {
        verifier.verify(text, given)
      } catch (error) {
        this.unverified.push(`${id}: ${(error as Error).message}`)
      }
  }
}

import { once } from 'node:events'
import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo, LookupFunction } from 'node:net'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import type { Owner } from '../store/databases.ts'

export type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

const ca = await testCa()
const leaf = await testLeaf(ca, ['localhost', 'example.test', '*.example.test'])
/** What vouches for the servers of tests. */
export const TEST_CA = ca.certificate

/** A server of documents on this machine, which says what it was asked for. */
export class DocumentServer {
  readonly port: number
  readonly asked: IncomingMessage[]
  readonly #answers: Map<string, Answer>
  readonly #scheme: string

  static async start(t: Owner, scheme: 'http' | 'https' = 'https'): Promise<DocumentServer> {
    const asked: IncomingMessage[] = []
    const answers = new Map<string, Answer>()
    const listener: Answer = (request, response) => {
      asked.push(request)
      const answer = answers.get(request.url!) ?? answers.get('*')
      return answer === undefined ? response.writeHead(404).end() : answer(request, response)
    }
    const server =
      scheme === 'https'
        ? createServer({ cert: leaf.certificate, key: leaf.key }, listener)
        : createPlainServer(listener)
    server.on('tlsClientError', () => undefined)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    return new DocumentServer(scheme, (server.address() as AddressInfo).port, asked, answers)
  }

  private constructor(scheme: string, port: number, asked: IncomingMessage[], answers: Map<string, Answer>) {
    this.port = port
    this.asked = asked
    this.#scheme = scheme
    this.#answers = answers
  }

  url(path: string, host = 'agent.example.test'): string {
    return `${this.#scheme}://${host}:${this.port}${path}`
  }

  serve(path: string, answer: Answer): void {
    this.#answers.set(path, answer)
  }

  /** With these headers besides. */
  serveJson(path: string, value: unknown, headers: Readonly<Record<string, string>> = {}): void {
    this.serve(path, (_, response) =>
      response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value)),
    )
  }
}

/** Every name is this machine. */
export const HERE: LookupFunction = (_name, options, callback) =>
  options.all ? callback(null, [{ address: '127.0.0.1', family: 4 }]) : callback(null, '127.0.0.1', 4)

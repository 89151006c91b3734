import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** How it answers instead of its work. */
type LicenseMood = 'honest' | 'broken' | 'silent' | 'senseless' | 'endless' | 'redirecting'

/** A license server on loopback that says which tokens are valid for which URLs. */
export class TestLicenseServer {
  /** What it was asked, as in the form that was sent. */
  readonly asked: { readonly token: string; readonly resource: string; readonly authorization: string }[] = []
  /** By token: the URL for which it is valid, and what else is said of it. */
  readonly licenses = new Map<string, { readonly url: string; readonly more?: object }>()
  mood: LicenseMood = 'honest'
  readonly #server = createServer((request, response) => void this.#answer(request, response))

  static async start(t: Test): Promise<TestLicenseServer> {
    const server = new TestLicenseServer()
    server.#server.listen(0, '127.0.0.1')
    await once(server.#server, 'listening')
    t.teardown(() => {
      server.#server.close()
      server.#server.closeAllConnections()
    })
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/introspect`
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const form = new URLSearchParams(Buffer.concat(pieces).toString())
    const [token, resource] = [form.get('token') ?? '', form.get('resource') ?? '']
    this.asked.push({ token, resource, authorization: request.headers.authorization ?? '' })
    if (this.mood === 'silent') return
    if (this.mood === 'broken') return void response.writeHead(500).end('no')
    if (this.mood === 'endless') return void response.end('x'.repeat(1_000_000))
    if (this.mood === 'redirecting') return void response.writeHead(302, { location: '/yes' }).end()
    response.setHeader('Content-Type', 'application/json')
    if (this.mood === 'senseless') return void response.end('{"active":"yes"}')
    const license = this.licenses.get(token)
    const isActive = license !== undefined && resource.startsWith(license.url)
    response.end(JSON.stringify(isActive ? { active: true, ...license.more } : { active: false }))
  }
}

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'

/** How it answers instead of its work. Each answer would let the token in if it were taken. */
export const WRONG_MOODS = [
  ...(['broken', 'silent', 'senseless', 'endless', 'redirecting'] as const),
  ...(['redirecting the form', 'dripping', 'announcing too much', 'of spaces', 'cut off'] as const),
  ...(['a page', 'text', 'without a type', 'signed', 'compressed', 'a list', 'created'] as const),
] as const
export type LicenseMood = 'honest' | (typeof WRONG_MOODS)[number]

const YES = '{"active":true}'

/** A license server on loopback that says which tokens are valid for which URLs. */
export class TestLicenseServer {
  /** What it was asked, as in the form that was sent. */
  readonly asked: { readonly token: string; readonly resource: string; readonly authorization: string }[] = []
  /** By token: the URL for which it is valid, and what else is said of it. */
  readonly licenses = new Map<string, { readonly url: string; readonly more?: object }>()
  /** The protocols in which it was asked. */
  readonly protocols = new Set<string>()
  mood: LicenseMood = 'honest'
  /** CA for its certificate; `null`: it has none. */
  readonly ca: string | null
  readonly #server: Pick<ReturnType<typeof createServer>, 'listen' | 'address' | 'close'>

  /** `tls`: what it speaks over TLS. Omitted: plain HTTP/1.1. */
  static async start(t: Test, tls?: 'h2' | 'h2 and http/1.1' | 'http/1.1'): Promise<TestLicenseServer> {
    const ca = await testCa()
    const { certificate: cert, key } = await testLeaf(ca, ['localhost'])
    const asked = (request: unknown, response: unknown) =>
      void server.#answer(request as IncomingMessage, response as ServerResponse)
    const listener =
      tls === undefined
        ? createServer(asked)
        : tls === 'http/1.1'
          ? createTlsServer({ cert, key }, asked)
          : createSecureServer({ cert, key, allowHTTP1: tls !== 'h2' }, asked)
    listener.on('tlsClientError', () => undefined).on('sessionError', () => undefined)
    const sockets = new Set<{ destroy(): void }>()
    listener.on('connection', (socket: { destroy(): void }) => sockets.add(socket))
    const server = new TestLicenseServer(listener as never, tls === undefined ? null : ca.certificate)
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    t.teardown(() => {
      listener.close()
      for (const socket of sockets) socket.destroy()
    })
    return server
  }

  private constructor(listener: ReturnType<typeof createServer>, ca: string | null) {
    this.#server = listener
    this.ca = ca
  }

  get url(): string {
    const scheme = this.ca === null ? 'http' : 'https'
    return `${scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}/introspect`
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const form = new URLSearchParams(Buffer.concat(pieces).toString())
    const [token, resource] = [form.get('token') ?? '', form.get('resource') ?? '']
    this.asked.push({ token, resource, authorization: request.headers.authorization ?? '' })
    this.protocols.add(request.httpVersion)
    if (this.mood !== 'honest') return this.#misanswer(this.mood, response)
    response.setHeader('Content-Type', 'application/json; charset=utf-8')
    const license = this.licenses.get(token)
    const isActive = license !== undefined && resource.startsWith(license.url)
    response.end(JSON.stringify(isActive ? { active: true, ...license.more } : { active: false }))
  }

  #misanswer(mood: Exclude<LicenseMood, 'honest'>, response: ServerResponse): void {
    const answer = (body: string | Buffer, headers: Record<string, string> = {}, status = 200) =>
      void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
    switch (mood) {
      case 'silent':
        return
      case 'broken':
        return answer(YES, {}, 500)
      case 'created':
        return answer(YES, {}, 201)
      case 'senseless':
        return answer('{"active":"yes"}')
      case 'a list':
        return answer(`[${YES}]`)
      case 'redirecting':
        return answer(YES, { location: '/introspect' }, 302)
      case 'redirecting the form':
        return answer(YES, { location: '/introspect' }, 307)
      case 'endless':
        return answer(`{"active":true,"more":"${'x'.repeat(1_000_000)}"}`)
      case 'of spaces':
        return answer(YES + ' '.repeat(65_536))
      case 'announcing too much':
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000000000' })
        return void response.write(YES)
      case 'cut off':
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
        return void response.write(YES, () => response.destroy())
      case 'a page':
        return answer(YES, { 'content-type': 'text/html' })
      case 'text':
        return answer(YES, { 'content-type': 'text/plain; x=application/json' })
      case 'without a type':
        return void response.writeHead(200).end(YES)
      case 'signed':
        return answer('e30.eyJhY3RpdmUiOnRydWV9.AA', {
          'content-type': 'application/token-introspection+jwt',
        })
      case 'compressed':
        return answer(gzipSync(YES), { 'content-encoding': 'gzip' })
      case 'dripping':
        return drip(response)
    }
  }
}

/** A byte now and then, so that no time limit between two bytes ends it. */
function drip(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  let at = 0
  const timer = setInterval(() => {
    if (response.destroyed || at > 200) return clearInterval(timer)
    // It would be complete after a while.
    response.write(at < YES.length ? YES[at] : ' ')
    at++
  }, 40)
  response.on('close', () => clearInterval(timer))
}

import type { ClientRequest } from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import { Fault } from '../../../shared/fault.ts'
import { request } from '../../../shared/node-http.ts'

/** The upstream, as the gateway reaches it. */
export interface RobotsUpstream {
  /** `http://`, `https://` or `unix:/PATH`. An upstream that only speaks HTTP/2 cannot be asked. */
  readonly url: string
  /** Whether the upstream gets the client's Host header or the host of its own URL. */
  readonly host: 'preserve' | 'upstream'
  readonly tls: { readonly verify: boolean; readonly ca: string | null; readonly serverName: string | null }
}

export function canAsk({ url }: RobotsUpstream): boolean {
  return /^(?:https?:\/\/|unix:\/)/.test(url)
}

/** The robots.txt of a host; empty if the upstream has none. Throws if the upstream cannot answer now. */
export async function robotsFrom(upstream: RobotsUpstream, host: string | null): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const request = start(upstream, host)
  request.on('error', reject)
  request.on('response', (response) => {
    const status = response.statusCode!
    // RFC 9309 §2.3.1: a missing file allows everything. Errors and redirects tell nothing about the file.
    if (status < 200 || (status >= 300 && (status < 400 || status === 429)) || status >= 500)
      return request.destroy(new Fault('ROBOTS_UNREADABLE', `it is answered with ${status}`))
    if (status >= 400) {
      response.resume()
      return resolve('')
    }
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (part: string) => {
      text += part
      if (text.length < TEXT_MAX) return
      resolve(text.slice(0, TEXT_MAX))
      request.destroy()
    })
    response.on('end', () => resolve(text))
    response.on('error', reject)
  })
  request.end()
  return promise
}

function start({ url, tls, host: seenHost }: RobotsUpstream, host: string | null): ClientRequest {
  const options = {
    path: '/robots.txt',
    agent: false,
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: {
      'User-Agent': 'gatehouse',
      Accept: 'text/plain',
      ...(seenHost === 'preserve' && host !== null ? { Host: host } : {}),
    },
  } as const
  if (url.startsWith('unix:')) return request({ ...options, socketPath: url.slice('unix:'.length) })
  const { protocol, hostname, port } = new URL(url)
  const place = { ...options, hostname: hostname.replace(/^\[|\]$/g, ''), port: port || undefined }
  if (protocol === 'http:') return request(place)
  const name = tls.serverName ?? place.hostname
  return https.request({
    ...place,
    rejectUnauthorized: tls.verify,
    ...(tls.ca === null ? {} : { ca: tls.ca }),
    ...(isIP(name) === 0 ? { servername: name } : {}),
  })
}

const TIMEOUT_MS = 5_000
/** The maximum number of characters to read. */
const TEXT_MAX = 512_000

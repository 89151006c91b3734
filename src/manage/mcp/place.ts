import type { IncomingMessage } from 'node:http'
import { Refusal } from '../http/refusal.ts'

/**
 * Protects against DNS rebinding, where a page makes its own name resolve to this machine. The Host must be
 * one of our names, and the page's origin must be allowed to use the API.
 */
export function checkPlace(
  { headers, socket }: IncomingMessage,
  publicUrl: string,
  origins: readonly string[],
): void {
  const host = headers.host ?? ''
  const asked = /[/?#@\\]/.test(host) ? null : URL.parse(`http://${host}`)
  const own = new URL(publicUrl)
  if (asked === null || !isOwnName(asked.hostname, own.hostname, localAddress(socket.localAddress)))
    throw refused(
      `the Host ${quoted(host)} does not belong to this server: set manage.public_url to the URL that clients use`,
    )
  const { origin } = headers
  if (origin === undefined || origin === own.origin || origins.includes(origin)) return
  const from = URL.parse(origin)
  // A page served from this host and port.
  if (from !== null && from.origin !== 'null' && from.host === asked.host) return
  throw refused(`the origin ${quoted(origin)} is not allowed: add it to manage.cors_origins`)
}

function isOwnName(name: string, own: string, address: string): boolean {
  if (name === own) return true
  // A name can resolve to any address, so it must match the address of the connection.
  if (LOOPBACK_NAMES.has(name)) return isLoopback(address)
  return name.replace(/^\[(.*)\]$/, '$1') === address
}

/** The local address of the connection. */
function localAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/, '')
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.')
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, QUOTED_MAX))
}

function refused(detail: string): Refusal {
  return new Refusal('origin_not_allowed', detail)
}

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])
const QUOTED_MAX = 100

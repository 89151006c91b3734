import type { IncomingMessage } from 'node:http'
import { Refusal } from '../http/refusal.ts'

/**
 * Against pages that have their own name lead to this machine (DNS rebinding): the Host has to be a name of ours, and a
 * page has to be one that may use the API.
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
    throw refused(`the Host ${quoted(host)} is none of this server; manage.public_url says how it is reached`)
  const { origin } = headers
  if (origin === undefined || origin === own.origin || origins.includes(origin)) return
  const from = URL.parse(origin)
  // A page of this very port.
  if (from !== null && from.origin !== 'null' && from.host === asked.host) return
  throw refused(`pages of ${quoted(origin)} may not ask here; manage.cors_origins says which may`)
}

function isOwnName(name: string, own: string, address: string): boolean {
  if (name === own) return true
  // A name can be made to lead anywhere, an address cannot.
  if (LOOPBACK_NAMES.has(name)) return isLoopback(address)
  return name.replace(/^\[(.*)\]$/, '$1') === address
}

/** Where the connection came in. */
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

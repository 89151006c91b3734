import { isAuthority } from '../../wire/host.ts'
import type { Connection } from '../connection/connection.ts'
import type { UpstreamGroup } from '../upstream/upstream.ts'

/**
 * The host of an HTTP/1.0 request without one. Rules and the app see it: the name in the TLS hello, which RFC
 * 9112 §3.3 allows because the client chose it, or the upstream's own.
 */
export function suppliedHost({ serverName }: Connection, upstream: UpstreamGroup): string {
  return serverName !== null && isAuthority(serverName) && !serverName.includes(':')
    ? serverName
    : upstream.authority
}

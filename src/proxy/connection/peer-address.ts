import type { Ja4 } from '../../fingerprint/ja4.ts'
import { addressBehind, type HopClaims, pathBehind } from '../../wire/hop-address.ts'
import type { AddressSet } from '../../wire/ip-address.ts'
import type { Connection } from './connection.ts'

/** The client's address: the connection's, or the one that trusted hops report (see wire/hop-address.ts). */
export function clientAddress(connection: Connection, claims: HopClaims, trusted: AddressSet): string {
  return connection.isTrusted ? addressBehind(connection.address, claims, trusted) : connection.address
}

/** The addresses from the client (as in `clientAddress`) to the connected proxy. At least one. */
export function clientPath(
  connection: Connection,
  claims: HopClaims,
  trusted: AddressSet,
): readonly string[] {
  const { address, isTrusted } = connection
  return isTrusted ? pathBehind(address, claims, trusted) : [address]
}

/**
 * The JA4 computed by the hop in front of the proxy, which saw the client's own hello. It counts only from
 * the configured hops, if sent exactly once and in JA4 form. `header` is in lower case.
 */
export function hopJa4(connection: Connection, rawHeaders: readonly string[], header: string): Ja4 | null {
  if (!connection.isJa4Hop) return null
  let found: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length !== header.length || name.toLowerCase() !== header) continue
    if (found !== null) return null // sent twice: the origin of each is unclear
    found = rawHeaders[i + 1]!
  }
  return found !== null && JA4.test(found) ? (found as Ja4) : null
}

const JA4 = /^[tqd](?:1[0-3]|s[23]|d[123]|00)[di]\d{4}[0-9a-zA-Z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/

import type { Ja4 } from '../../fingerprint/ja4.ts'
import { addressBehind, type HopClaims, pathBehind } from '../../wire/hop-address.ts'
import type { AddressSet } from '../../wire/ip-address.ts'
import type { Connection } from './connection.ts'

/** The client's address: the connection's, or what trusted hops say (see wire/hop-address.ts). */
export function clientAddress(connection: Connection, claims: HopClaims, trusted: AddressSet): string {
  return connection.isTrusted ? addressBehind(connection.address, claims, trusted) : connection.address
}

/** The addresses from the client, as `clientAddress` has it, to the proxy that has connected. At least one. */
export function clientPath(
  connection: Connection,
  claims: HopClaims,
  trusted: AddressSet,
): readonly string[] {
  const { address, isTrusted } = connection
  return isTrusted ? pathBehind(address, claims, trusted) : [address]
}

/**
 * The JA4 that the hop before us computed, which saw the client's own hello: from the hops listed for it only, said
 * once, and written like a JA4. `header` is in lower case.
 */
export function hopJa4(connection: Connection, rawHeaders: readonly string[], header: string): Ja4 | null {
  if (!connection.isJa4Hop) return null
  let found: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length !== header.length || name.toLowerCase() !== header) continue
    if (found !== null) return null // two of them: who wrote which cannot be told
    found = rawHeaders[i + 1]!
  }
  return found !== null && JA4.test(found) ? (found as Ja4) : null
}

const JA4 = /^[tqd](?:1[0-3]|s[23]|d[123]|00)[di]\d{4}[0-9a-zA-Z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/

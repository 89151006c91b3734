import type { Brand } from '../shared/brand.ts'
import type { ClientHello, Transport } from '../wire/client-hello.ts'
import { prefix, sortedExtensions } from './ja4.ts'
import { FLEETING, GREASE } from './left-out.ts'
import { FingerprintText } from './text.ts'

/**
 * What the first, resumed and retried hellos of a client have in common. Not a JA4, and not formatted like
 * one.
 */
export type StableKey = Brand<string, 'StableKey'>

/**
 * A JA4 changes when a client resumes a session, retries after a HelloRetryRequest or pads its hello. This
 * key leaves the extensions that vary with that out of the count and the hash. Otherwise it is made like a
 * JA4: `gs1-<a>-<b>-<c>`, where `gs1` names this definition. Clients with the same JA4 have the same key, and
 * so has a client with several JA4 that differ only in those extensions.
 */
export function stableKey(hello: ClientHello, transport: Transport, text = new FingerprintText()): StableKey {
  const a = prefix(hello, transport, LEFT_OUT)
  const b = text.hashSorted(hello.ciphers)
  return `gs1-${a}-${b}-${sortedExtensions(hello, text, LEFT_OUT).hash12()}` as StableKey
}

const LEFT_OUT = GREASE | FLEETING

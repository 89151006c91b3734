import type { Brand } from '../shared/brand.ts'
import type { ClientHello, Transport } from '../wire/client-hello.ts'
import { ciphersHash, prefix, sortedExtensions } from './ja4.ts'
import { FLEETING, GREASE } from './left-out.ts'

/** What a client's first, resumed and retried hellos have in common. Not a JA4, and not written like one. */
export type StableKey = Brand<string, 'StableKey'>

/**
 * A JA4 changes when the same client resumes a session, retries after a HelloRetryRequest or pads its hello. This
 * key leaves out the extensions that come and go with that, from the count as from the hash, and is otherwise made
 * like a JA4: `gs1-<a>-<b>-<c>`, `gs1` naming this definition. Two clients with one JA4 have one key; one client
 * with several JA4 that differ only so has one key too.
 */
export function stableKey(hello: ClientHello, transport: Transport): StableKey {
  const a = prefix(hello, transport, LEFT_OUT)
  return `gs1-${a}-${ciphersHash(hello)}-${sortedExtensions(hello, LEFT_OUT).hash12()}` as StableKey
}

const LEFT_OUT = GREASE | FLEETING

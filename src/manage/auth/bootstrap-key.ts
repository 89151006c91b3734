import { ALL_APPS } from '../../apps/app-scope.ts'
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Principal } from '../http/access/principal.ts'

/** The admin key from the configuration. It gives access before any other key exists. */
export class BootstrapKey {
  readonly #digest: Buffer

  constructor(key: string) {
    this.#digest = digestOf(Buffer.from(key))
  }

  /** Compares in constant time. `token`: as Node reads it from a header, one byte per character. */
  isThis(token: string): boolean {
    return timingSafeEqual(digestOf(Buffer.from(token, 'latin1')), this.#digest)
  }
}

function digestOf(key: Buffer): Buffer {
  return createHash('sha256').update(key).digest()
}

export const BOOTSTRAP: Principal = {
  id: 'bootstrap',
  name: 'bootstrap',
  scopes: new Set(['admin'] as const),
  apps: ALL_APPS,
  plan: 'unlimited',
  expiresAtMs: null,
}

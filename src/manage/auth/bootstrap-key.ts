import { createHash, timingSafeEqual } from 'node:crypto'
import type { Principal } from '../http/access/principal.ts'

/** The key of an administrator that stands in the configuration: the way in before there is another. */
export class BootstrapKey {
  readonly #digest: Buffer

  constructor(key: string) {
    this.#digest = digestOf(Buffer.from(key))
  }

  /** Takes as long whatever is wrong with it. `token`: as Node has it from a header, a byte a character. */
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
  plan: 'unlimited',
  expiresAtMs: null,
}

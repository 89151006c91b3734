import { createPrivateKey } from 'node:crypto'

/** A private key for Ed25519 in PEM, always the same one: what is signed with it is the same in every run. */
export function fixedKey(): string {
  const der = Buffer.concat([PKCS8_START, Buffer.alloc(32, 'the same for all')])
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ format: 'pem', type: 'pkcs8' })
    .toString()
}

/** What stands before the 32 bytes (RFC 8410 §7). */
const PKCS8_START = Buffer.from('302e020100300506032b657004220420', 'hex')

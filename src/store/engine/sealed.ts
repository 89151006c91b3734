import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { Fault } from '../../shared/fault.ts'

/** A digest of secrets, enough to recognize them again. */
export function digestOf(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/** Encrypts a text so that only the holder of `word` can decrypt it. */
export function sealed(text: string, word: string): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, keyOf(word), nonce)
  const bytes = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]
  return Buffer.concat(bytes).toString('base64')
}

export function unsealed(text: string, word: string): string {
  const bytes = Buffer.from(text, 'base64')
  const key = keyOf(word)
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    return (
      decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
    )
  } catch (error) {
    throw new Fault('STORE_DAMAGED', 'what is kept of an answer is not what was written', { cause: error })
  }
}

/** Not the digest of the word, because the digest is stored beside the ciphertext. */
function keyOf(word: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', word, '', 'gatehouse sealed answer', KEY_BYTES))
}

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

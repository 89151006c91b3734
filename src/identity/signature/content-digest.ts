import { hash, timingSafeEqual } from 'node:crypto'
import { isInnerList, parseDictionary } from 'structured-headers'
import { fieldValue } from './signature-base.ts'

/** The expected digests of a body (RFC 9530), by supported algorithm. */
export type ContentDigest = ReadonlyMap<DigestAlgorithm, Buffer>

type DigestAlgorithm = keyof typeof DIGESTS

/** `null`: the header is missing, invalid, or has no supported algorithm. */
export function readContentDigest(rawHeaders: readonly string[]): ContentDigest | null {
  const text = fieldValue(rawHeaders, 'content-digest')
  if (text === null || text.length > LENGTH_MAX) return null
  const digests = new Map<DigestAlgorithm, Buffer>()
  try {
    for (const [name, member] of parseDictionary(text)) {
      if (!Object.hasOwn(DIGESTS, name)) continue
      const algorithm = name as DigestAlgorithm
      if (isInnerList(member) || !(member[0] instanceof ArrayBuffer)) return null
      const bytes = Buffer.from(member[0])
      if (bytes.length !== DIGESTS[algorithm].length) return null
      digests.set(algorithm, bytes)
    }
  } catch {
    return null
  }
  return digests.size === 0 ? null : digests
}

/** Compares the bytes as sent, so including any compression. All digests must match. */
export function isDigestOf(digests: ContentDigest, body: Uint8Array): boolean {
  return [...digests].every(([algorithm, bytes]) =>
    timingSafeEqual(hash(DIGESTS[algorithm].name, body, 'buffer'), bytes),
  )
}

/** Other algorithms are broken or unused. */
const DIGESTS = {
  'sha-256': { name: 'sha256', length: 32 },
  'sha-512': { name: 'sha512', length: 64 },
} as const
const LENGTH_MAX = 1_024

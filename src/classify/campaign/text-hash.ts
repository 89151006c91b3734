import { mixed } from '../../wire/network-hash.ts'

/** A 32-bit hash of a short text; FNV-1a, mixed. */
export function textHash(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return mixed(hash)
}

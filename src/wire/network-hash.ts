import type { Address } from './address-ranges.ts'

/**
 * A 32-bit, evenly spread hash of a client's network: an IPv4 address, or for IPv6 the /64, the least that a
 * client gets. With a secret `salt`, a client cannot choose addresses whose hashes collide.
 */
export function networkHashOf({ words, family }: Address, salt = 0): number {
  return family === 6
    ? mixed(words[0]! ^ mixed(words[1]! ^ salt) ^ salt)
    : mixed(words[3]! ^ family ^ mixed(salt))
}

/** The same of a client that is known by a hash, and not by its network. */
export function saltedHash(visitor: number, salt: number): number {
  return mixed(visitor ^ mixed(salt))
}

/** The finalizer of MurmurHash3. `mixed(0)` is 0. */
export function mixed(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

import { createHmac } from 'node:crypto'
import { addressKey, parseAddressRange, rangeKeys } from '../../wire/address-ranges.ts'
import { clientNetwork, ipFamily, normalAddress, shownNetwork } from '../../wire/ip-address.ts'

/**
 * How addresses of clients are stored. `full`: as they are. `network`: the IPv4 /24 or IPv6 /48. `keyed_hash`: a hash
 * that is equal for equal addresses, and that only the holder of the key can compute.
 */
export type AddressForm = 'full' | 'network' | 'keyed_hash'

/** The form of a stored address. `unknown`: it is empty, or no address at all. */
export function formOf(stored: string): AddressForm | 'unknown' {
  if (stored.startsWith(HASH_PREFIX)) return 'keyed_hash'
  if (stored.includes('/')) return parseAddressRange(stored) === null ? 'unknown' : 'network'
  return ipFamily(stored) === 0 ? 'unknown' : 'full'
}

/** As callers see a stored address that may see networks only. */
export function shownAddress(stored: string): string {
  if (isHash(stored)) return SHOWN_HASH
  return shownNetwork(stored) ?? (formOf(stored) === 'network' ? stored : '')
}

/**
 * Hashes addresses with a key. An IPv4 address becomes `hash:` and 16 characters. An IPv6 address also has the hash of
 * its /64, which is the network of one client: `hash:` and 16 characters for the network, a dot, and 8 for the address.
 */
export class AddressHasher {
  readonly #key: string
  readonly #hashes = new Map<string, string>()
  readonly #numbers = new Map<number, number>()

  constructor(key: string) {
    this.#key = key
  }

  hashOf(address: string): string {
    const known = this.#hashes.get(address)
    if (known !== undefined) return known
    if (this.#hashes.size >= KEPT_MAX) this.#hashes.clear()
    const normal = normalAddress(address) ?? address
    const network = this.#digest('network', clientNetwork(normal))
      .toString('base64url')
      .slice(0, NETWORK_LENGTH)
    const own = normal.includes(':')
      ? `.${this.#digest('address', normal).toString('base64url').slice(0, OWN_LENGTH)}`
      : ''
    const hash = `${HASH_PREFIX}${network}${own}`
    this.#hashes.set(address, hash)
    return hash
  }

  /** 32 bits that campaigns count clients by. */
  visitorOf(address: string): number {
    return visitorIn(this.hashOf(address))
  }

  /** A number that is equal for equal numbers, and from which only the holder of the key can find them. */
  numberFor(number: number): number {
    const known = this.#numbers.get(number)
    if (known !== undefined) return known
    if (this.#numbers.size >= KEPT_MAX) this.#numbers.clear()
    const hidden = this.#digest('number', String(number)).readUInt32BE()
    this.#numbers.set(number, hidden)
    return hidden
  }

  #digest(kind: string, text: string): Buffer {
    return createHmac('sha256', this.#key).update(`${kind} ${text}`).digest()
  }
}

/** The number of `visitorOf`, from a hash of `hashOf`. */
export function visitorIn(hash: string): number {
  return Buffer.from(hash.slice(HASH_PREFIX.length, HASH_PREFIX.length + 6), 'base64url').readUInt32BE()
}

export function isHash(stored: string): boolean {
  return HASH.test(stored)
}

/**
 * A text by which an index finds a stored address. An address: see `addressKey`. A network: the key of its first
 * address and `/`, so that it is among the addresses of a wider network. A hash: its part for the network.
 */
export function storedAddressKey(stored: string): string | null {
  if (isHash(stored)) return hashKey(stored)
  const slash = stored.indexOf('/')
  if (slash === -1) return addressKey(stored)
  const key = addressKey(stored.slice(0, slash))
  return key === null ? null : `${key}/`
}

/** What to look for: an address or a network, or the hash of one. */
export interface WantedAddresses {
  /** Ranges of keys that contain those of all wanted addresses, and more. */
  readonly keys: readonly (readonly [first: string, last: string])[]
  /** Whether a stored address is wanted. A stored network is if it may contain a wanted address. */
  has(stored: string): boolean
}

/**
 * The stored addresses that a text means: an address, a network or a stored hash. `hashers`: of the present key and of
 * earlier ones. A network finds hashes only if it is the /64 of an IPv6 address. `null`: it is neither.
 */
export function wantedAddresses(text: string, hashers: readonly AddressHasher[]): WantedAddresses | null {
  if (isHash(text)) return wantedOf([[hashKey(text), hashKey(text)]], (stored) => stored === text)
  const range = parseAddressRange(text)
  if (range === null) return null
  const [first, last] = rangeKeys(range)
  const around = shownNetwork(textOfFirst(text))
  const network = around === null ? null : storedAddressKey(around)
  const isAddress = range.length === (range.isIpv4 ? 32 : 128)
  const isClient = isAddress || (!range.isIpv4 && range.length === 64)
  const hashes = isClient ? hashers.map((hasher) => hasher.hashOf(textOfFirst(text))) : []
  const networks = network === null || (network >= first && network <= last) ? [] : [network]
  const keys = [...networks, ...hashes.map(hashKey)].map((key) => [key, key] as const)
  return wantedOf([[first, last], ...keys], (stored) => {
    if (isHash(stored))
      return hashes.some((hash) => (isAddress ? stored === hash : hashKey(stored) === hashKey(hash)))
    const key = storedAddressKey(stored)
    return key !== null && ((key >= first && key <= last) || networks.includes(key))
  })
}

function wantedOf(keys: WantedAddresses['keys'], has: WantedAddresses['has']): WantedAddresses {
  return { keys, has }
}

/** The address in a written address or network. */
function textOfFirst(text: string): string {
  const slash = text.indexOf('/')
  return slash === -1 ? text : text.slice(0, slash)
}

function hashKey(hash: string): string {
  return hash.slice(0, HASH_PREFIX.length + NETWORK_LENGTH)
}

const HASH_PREFIX = 'hash:'
const SHOWN_HASH = 'hash:[redacted]'
const NETWORK_LENGTH = 16
const OWN_LENGTH = 8
const HASH = /^hash:[\w-]{16}(?:\.[\w-]{8})?$/
/** About 1 MB. */
const KEPT_MAX = 8_192

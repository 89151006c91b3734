import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** The result of a reverse DNS lookup. */
export interface HostFinding {
  /** Confirmed host names: lower case, without a trailing dot. */
  readonly hosts: readonly string[]
  /** With `late`, `failed` and `too-many`, the address may have names that were not checked. */
  readonly outcome: HostOutcome
  /** How long the names are valid, by their TTL; 0 without names. */
  readonly ttlS: number
}

export type HostOutcome = (typeof HOST_OUTCOMES)[number]

export interface ReverseDnsSettings {
  /** `ADDRESS:PORT`; empty: the system's resolvers. */
  readonly resolvers: readonly string[]
  /** `queryMs` limits one query to one server, `timeoutMs` the whole lookup of an address. */
  readonly queryMs?: number
  readonly timeoutMs?: number
}

/**
 * Forward-confirmed reverse DNS (RFC 8499 §3, FCrDNS). The owner of an address can point it at any name, but
 * only the owner of the name can point it back. Queries skip the hosts file and search domains: those are
 * local.
 */
export class ReverseDns {
  readonly #resolver: Resolver
  readonly #timeoutMs: number

  constructor({ resolvers, queryMs = QUERY_MS, timeoutMs = TIMEOUT_MS }: ReverseDnsSettings) {
    this.#resolver = new Resolver({ timeout: queryMs, tries: TRIES, maxTimeout: 2 * queryMs })
    if (resolvers.length > 0) this.#resolver.setServers(resolvers)
    this.#timeoutMs = timeoutMs
  }

  /** Never rejects. */
  async find(address: string): Promise<HostFinding> {
    const { promise, resolve } = Promise.withResolvers<HostFinding>()
    const timer = setTimeout(() => resolve(nothing('late')), this.#timeoutMs)
    const found = this.#find(address)
    const finding = await Promise.race([found, promise])
    clearTimeout(timer)
    return finding
  }

  /** Cancels lookups in progress. */
  close(): void {
    this.#resolver.cancel()
  }

  async #find(address: string): Promise<HostFinding> {
    const name = reverseName(address)
    const names = name === null ? [] : await this.#names(name)
    if (typeof names === 'string') return nothing(names)
    const likely = [...new Set(names.slice(0, NAMES_READ_MAX).flatMap((each) => plainHost(each) ?? []))]
    const looked = likely.slice(0, NAMES_MAX)
    const forward = await Promise.all(looked.map((host) => this.#isAt(host, address)))
    const confirmed = looked.filter((_host, at) => typeof forward[at] === 'number')
    const ttls = forward.filter((each) => typeof each === 'number')
    const ttlS = ttls.length === 0 ? 0 : Math.min(...ttls)
    const lost = forward.find((each) => each === 'late' || each === 'failed' || each === 'too-many')
    const isMore = likely.length > looked.length || names.length > NAMES_READ_MAX
    if (lost !== undefined || isMore) return { hosts: confirmed, outcome: lost ?? 'too-many', ttlS }
    if (confirmed.length > 0) return { hosts: confirmed, outcome: 'confirmed', ttlS }
    return nothing(names.length === 0 ? 'no-name' : 'unconfirmed')
  }

  async #names(reversed: string): Promise<readonly string[] | 'late' | 'failed'> {
    try {
      return await this.#resolver.resolvePtr(reversed)
    } catch (error) {
      const why = whyNot(error)
      return why === 'none' ? [] : why
    }
  }

  /** For how many seconds the host has this address, or why that is unknown or false. */
  async #isAt(host: string, address: string): Promise<number | 'none' | 'late' | 'failed' | 'too-many'> {
    try {
      const found =
        isIP(address) === 4
          ? await this.#resolver.resolve4(host, { ttl: true })
          : await this.#resolver.resolve6(host, { ttl: true })
      const same = found.slice(0, ADDRESSES_MAX).find((each) => plainAddress(each.address) === address)
      if (same !== undefined) return same.ttl
      return found.length > ADDRESSES_MAX ? 'too-many' : 'none'
    } catch (error) {
      return whyNot(error)
    }
  }
}

/** The normal form in which addresses are compared; `null`: not an address. */
export function plainAddress(text: string): string | null {
  // Some libraries accept `10.1` or an address with a zone; this function does not.
  if (isIP(text) === 0 || text.includes('%')) return null
  return ipaddr.process(text).toString()
}

/** The reverse DNS name of an address in normal form (RFC 1035 §3.5, RFC 3596 §2.5). */
function reverseName(address: string): string | null {
  const family = isIP(address)
  if (family === 0) return null
  const bytes = ipaddr.parse(address).toByteArray().reverse()
  if (family === 4) return `${bytes.join('.')}.in-addr.arpa`
  return `${bytes.map((byte) => `${(byte & 15).toString(16)}.${(byte >> 4).toString(16)}`).join('.')}.ip6.arpa`
}

/**
 * The owner of an address controls its PTR record, so a name that is not a valid host name is neither queried
 * nor shown.
 */
function plainHost(name: string): string | null {
  const host = name.replace(/\.$/, '').toLowerCase()
  return host.length <= HOST_LENGTH_MAX && HOST.test(host) ? host : null
}

function whyNot(error: unknown): 'none' | 'late' | 'failed' {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOTFOUND' || code === 'ENODATA') return 'none'
  return code === 'ETIMEOUT' ? 'late' : 'failed'
}

function nothing(outcome: HostOutcome): HostFinding {
  return { hosts: [], outcome, ttlS: 0 }
}

export const HOST_OUTCOMES = ['confirmed', 'unconfirmed', 'no-name', 'late', 'failed', 'too-many'] as const
const QUERY_MS = 1_500
const TRIES = 2
const TIMEOUT_MS = 5_000
/** Crawlers have one name. Each name costs a query. */
const NAMES_MAX = 4
/** Number of records that are read from an answer. */
const NAMES_READ_MAX = 64
/** Number of addresses read for a name: about 4,000 fit into the largest answer. */
const ADDRESSES_MAX = 512
const HOST_LENGTH_MAX = 253
/** Requires at least two labels: `localhost` proves nothing. */
const HOST = /^[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62}){1,126}$/

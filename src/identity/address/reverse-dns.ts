import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** What DNS says of an address. */
export interface HostFinding {
  /** Names that it has, and that have it: in lower case, without a dot at the end. */
  readonly hosts: readonly string[]
  /** `late` and `failed`, `too-many`: there may be a name that nobody has looked at. */
  readonly outcome: HostOutcome
  /** As long as the names are good for, by their server; 0 where there are none. */
  readonly ttlS: number
}

export type HostOutcome = (typeof HOST_OUTCOMES)[number]

export interface ReverseDnsSettings {
  /** `ADDRESS:PORT`; none: those of the system. */
  readonly resolvers: readonly string[]
  /** For one question to one server, and for all that is asked of one address. */
  readonly queryMs?: number
  readonly timeoutMs?: number
}

/**
 * Forward-confirmed reverse DNS (RFC 8499 §3, FCrDNS): whoever has an address can give it any name, and only whoever has
 * the name can give that the address. What is not asked of the hosts file, nor with search domains: those are ours.
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

  /** What is under way comes to nothing. */
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

  /** For how long it has the address, in seconds; or why that is not known, or not so. */
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

/** An address in the one form in which it is compared; `null`: it is none. */
export function plainAddress(text: string): string | null {
  // Of libraries, some take `10.1` for an address, and one with a zone.
  if (isIP(text) === 0 || text.includes('%')) return null
  return ipaddr.process(text).toString()
}

/** The name under which DNS has the names of an address in its plain form (RFC 1035 §3.5, RFC 3596 §2.5). */
function reverseName(address: string): string | null {
  const family = isIP(address)
  if (family === 0) return null
  const bytes = ipaddr.parse(address).toByteArray().reverse()
  if (family === 4) return `${bytes.join('.')}.in-addr.arpa`
  return `${bytes.map((byte) => `${(byte & 15).toString(16)}.${(byte >> 4).toString(16)}`).join('.')}.ip6.arpa`
}

/** Whoever has an address writes what he likes there: what is no name of a host is not asked for, and told nobody. */
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
/** Crawlers have one; each costs a question. */
const NAMES_MAX = 4
/** Of an answer of any length so many are looked at. */
const NAMES_READ_MAX = 64
/** Of a name: some 4,000 fit into the largest answer. */
const ADDRESSES_MAX = 512
const HOST_LENGTH_MAX = 253
/** Two labels at least: nobody is believed who is called `localhost`. */
const HOST = /^[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62}){1,126}$/

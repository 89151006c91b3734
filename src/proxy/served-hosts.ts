import { isIP } from 'node:net'
import type { HostOwner } from '../identity/signature-check.ts'
import type { Connection } from './connection.ts'
import { normalAddress } from '../wire/ip-address.ts'

/** Which hosts are ours: those that settings say, or, where they say none, those of the certificates we show. */
export class ServedHosts {
  readonly #names: ReadonlySet<string>
  /** What follows a `*.`: of any one label. */
  readonly #parents: ReadonlySet<string>
  readonly #certificates: { covers(name: string): boolean }

  constructor(hosts: readonly string[], certificates: { covers(name: string): boolean }) {
    const names = hosts.map((host) => host.toLowerCase())
    this.#names = new Set(names.filter((name) => !name.startsWith('*.')))
    this.#parents = new Set(names.filter((name) => name.startsWith('*.')).map((name) => name.slice(2)))
    this.#certificates = certificates
  }

  /**
   * `authority`: as it was sent, with a port or without. An address is ours where the client has connected to it. Behind
   * who ends TLS for us, our certificates need not be those that clients see, and only settings can say what is not ours.
   */
  ownerOf(authority: string, connection: Connection): HostOwner {
    const host = hostOf(authority)
    if (this.#names.size + this.#parents.size > 0)
      return this.#names.has(host) || this.#parents.has(parentOf(host)) ? 'ours' : 'other'
    if (this.#isShown(host, connection)) return 'ours'
    return connection.isTls && !connection.isTrusted ? 'other' : 'unknown'
  }

  #isShown(host: string, { localAddress }: Connection): boolean {
    return isIP(host) === 0
      ? this.#certificates.covers(host)
      : normalAddress(host) === normalAddress(localAddress)
  }
}

function hostOf(authority: string): string {
  const [, bracketed, name] = AUTHORITY.exec(authority) ?? []
  return (bracketed ?? name ?? '').toLowerCase()
}

function parentOf(host: string): string {
  const dot = host.indexOf('.')
  return dot < 1 ? '' : host.slice(dot + 1)
}

/** What is in brackets is no name. */
const AUTHORITY = /^(?:\[([^\]:]*:[^\]]*)\]|([^:[\]]+))(?::\d*)?$/

import { isIP } from 'node:net'
import type { HostOwner } from '../../identity/verify/signature-check.ts'
import { HostSet, hostOf, isAuthority } from '../../wire/host.ts'
import type { Connection } from './connection.ts'
import { normalAddress } from '../../wire/ip-address.ts'

/**
 * Decides which hosts are ours: those in the settings or, without such a setting, those of the certificates.
 */
export class ServedHosts {
  readonly #hosts: HostSet
  readonly #certificates: { covers(name: string): boolean }

  constructor(hosts: readonly string[], certificates: { covers(name: string): boolean }) {
    this.#hosts = new HostSet(hosts)
    this.#certificates = certificates
  }

  /**
   * `authority` is as sent, with or without a port. An address is ours if the client connected to it. Behind
   * another TLS terminator clients may see other certificates than ours, so only the settings can tell which
   * hosts are ours.
   */
  ownerOf(authority: string, connection: Connection): HostOwner {
    const host = isAuthority(authority) ? hostOf(authority) : ''
    if (!this.#hosts.isEmpty) return this.#hosts.has(host) ? 'ours' : 'other'
    if (this.#isShown(host, connection)) return 'ours'
    return connection.isTls && !connection.isTrusted ? 'other' : 'unknown'
  }

  #isShown(host: string, { localAddress }: Connection): boolean {
    const address = host.startsWith('[') ? host.slice(1, -1) : host
    return isIP(address) === 0
      ? this.#certificates.covers(host)
      : normalAddress(address) === normalAddress(localAddress)
  }
}

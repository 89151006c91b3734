import { HostSet, hostOf } from '../../wire/host.ts'
import type { Connection } from '../connection/connection.ts'

/** The settings on allowed hosts. */
export interface HostSettings {
  /** Empty: any host. A leading `*.` stands for one label. */
  readonly hosts: readonly string[]
  readonly unknownHost: 'refuse' | 'pass'
  readonly sniMismatch: 'allow' | 'reject'
  readonly requireSni: boolean
}

/** Why the host of a request is refused. */
export type HostBar =
  /** `proxy.hosts` does not contain it. */
  | 'unknown-host'
  /** `proxy.tls.require_sni` is true, and the TLS hello had no server name. */
  | 'no-server-name'
  /** `proxy.tls.sni_mismatch` is `reject`, and the TLS hello named another host. */
  | 'misdirected'

/** Decides by the settings alone whether the host of a request is allowed. */
export class HostGate {
  readonly #settings: HostSettings
  readonly #hosts: HostSet
  readonly #countUnknown: () => void

  private constructor(settings: HostSettings, countUnknown: () => void) {
    this.#settings = settings
    this.#hosts = new HostSet(settings.hosts)
    this.#countUnknown = countUnknown
  }

  /** `null`: the settings allow every host. */
  static for(settings: HostSettings, countUnknown: () => void): HostGate | null {
    const { hosts, sniMismatch, requireSni } = settings
    if (hosts.length === 0 && sniMismatch === 'allow' && !requireSni) return null
    return new HostGate(settings, countUnknown)
  }

  /** Most requests of a connection have the same host as the one before, so an allowed host is remembered. */
  check(connection: Connection, authority: string): HostBar | null {
    if (authority === connection.admittedAuthority) return null
    const host = hostOf(authority)
    const isUnknown = !this.#hosts.isEmpty && !this.#hosts.has(host)
    if (isUnknown) {
      this.#countUnknown()
      if (this.#settings.unknownHost === 'refuse') return 'unknown-host'
    }
    const bar = connection.isTls ? this.#serverNameBar(connection.serverName, host) : null
    if (bar === null && !isUnknown && authority.length <= REMEMBERED_LENGTH_MAX)
      connection.admittedAuthority = authority
    return bar
  }

  #serverNameBar(serverName: string | null, host: string): HostBar | null {
    const { requireSni, sniMismatch } = this.#settings
    if (serverName === null) return requireSni ? 'no-server-name' : null
    return sniMismatch === 'reject' && hostOf(serverName) !== host ? 'misdirected' : null
  }
}

/** Enough for DNS names. Limits the memory of an idle connection. */
const REMEMBERED_LENGTH_MAX = 260

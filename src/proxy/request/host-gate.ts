import { HostSet, hostOf } from '../../wire/host.ts'
import type { Connection } from '../connection/connection.ts'

/** What settings say of the hosts that requests may be for. */
export interface HostSettings {
  /** None: any. `*.` in front of one stands for a label. */
  readonly hosts: readonly string[]
  readonly unknownHost: 'refuse' | 'pass'
  readonly sniMismatch: 'allow' | 'reject'
  readonly requireSni: boolean
}

/** Why the host of a request is refused. */
export type HostBar =
  /** `proxy.hosts` does not name it. */
  | 'unknown-host'
  /** `proxy.tls.require_sni` is true, and the TLS hello named no host. */
  | 'no-server-name'
  /** `proxy.tls.sni_mismatch` is `reject`, and the TLS hello named another host. */
  | 'misdirected'

/** Whether a request may be for its host, by settings alone. */
export class HostGate {
  readonly #settings: HostSettings
  readonly #hosts: HostSet
  readonly #countUnknown: () => void

  private constructor(settings: HostSettings, countUnknown: () => void) {
    this.#settings = settings
    this.#hosts = new HostSet(settings.hosts)
    this.#countUnknown = countUnknown
  }

  /** `null`: the settings refuse nothing, and there is nothing to check. */
  static for(settings: HostSettings, countUnknown: () => void): HostGate | null {
    const { hosts, sniMismatch, requireSni } = settings
    if (hosts.length === 0 && sniMismatch === 'allow' && !requireSni) return null
    return new HostGate(settings, countUnknown)
  }

  /** Most requests of a connection are for the host of the one before, which is remembered. */
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

/** Of DNS names; an idle connection keeps no more. */
const REMEMBERED_LENGTH_MAX = 260

import { HostMap, hostOf } from '../wire/host.ts'
import type { App } from './app.ts'

/** Finds the app of a request. Compiled once for each list of apps. */
export class AppIndex {
  readonly apps: readonly App[]
  readonly #byHost: HostMap<App>

  /** The apps are those of `parseApps`: no host belongs to two of them. */
  constructor(apps: readonly App[]) {
    this.apps = apps
    this.#byHost = new HostMap(apps.flatMap((app) => app.hosts.map((host) => [host, app] as const)))
  }

  /**
   * The app of a Host or `:authority`; `null`: none of them. Takes at most two lookups, whatever the number of apps.
   */
  appOf(authority: string): App | null {
    return this.#byHost.isEmpty ? null : (this.#byHost.get(hostOf(authority)) ?? null)
  }
}

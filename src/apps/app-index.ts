import { HostMap, hostOf } from '../wire/host.ts'
import { ownText } from '../wire/own-text.ts'
import { type App, DEFAULT_APP } from './app.ts'

/** Finds the app of a request. Compiled once for each list of apps. */
export class AppIndex {
  /** The apps, to compare. */
  readonly #text: string
  readonly #fixed: string | null
  readonly #byHost: HostMap<App>
  /** The app of every request, or of a request that no host matches. */
  readonly #rest: App
  readonly #isFixed: boolean
  /** The ids of all apps that requests may be for. */
  readonly ids: ReadonlySet<string>
  /** The apps of authorities, as sent. */
  readonly #known = new Map<string, App>()

  /** The apps are those of `parseApps`. `fixed`: the id of the app of every request, which need not be one of them. */
  constructor(apps: readonly App[], fixed: string | null = null) {
    this.#text = JSON.stringify(apps)
    this.#fixed = fixed
    this.#byHost = new HostMap(apps.flatMap((app) => app.hosts.map((host) => [host, app] as const)))
    this.#rest = apps.find(({ id }) => id === fixed) ?? bareApp(fixed ?? DEFAULT_APP)
    this.#isFixed = fixed !== null || this.#byHost.isEmpty
    this.ids = new Set([this.#rest.id, ...(fixed === null ? apps.map(({ id }) => id) : [])])
  }

  /** The index of these apps: this one if they are the same, because 10,000 apps take 90 ms to compile. */
  having(apps: readonly App[]): AppIndex {
    return JSON.stringify(apps) === this.#text ? this : new AppIndex(apps, this.#fixed)
  }

  /**
   * The app of a Host or `:authority`; without one, the app `default`. Takes at most three lookups, whatever
   * the number of apps, and one for an authority that was sent before.
   */
  appOf(authority: string): App {
    if (this.#isFixed) return this.#rest
    const known = this.#known.get(authority)
    if (known !== undefined) return known
    const app = this.#byHost.get(hostOf(authority)) ?? this.#rest
    if (authority.length > KNOWN_LENGTH_MAX) return app
    if (this.#known.size === KNOWN_MAX) this.#known.clear()
    this.#known.set(ownText(authority), app)
    return app
  }
}

function bareApp(id: string): App {
  return { id, name: id, team: null, hosts: [], upstream: null, labels: [], quota: null }
}

/** More than the hosts of nearly all installations. Takes 400 KB at most. */
const KNOWN_MAX = 1_024
/** Enough for DNS names. */
const KNOWN_LENGTH_MAX = 260

/** How a program logs in to its database: what is renewed counts for each connection that is made afterwards. */
export class StoreLogin {
  readonly passwordFile: string | null
  #password: string | null
  readonly #listeners = new Set<() => void>()

  /** `passwordFile`: where the password comes from, and comes from again. */
  constructor(password: string | null, passwordFile: string | null = null) {
    this.#password = password
    this.passwordFile = passwordFile
  }

  get password(): string | null {
    return this.#password
  }

  /** Another password, or other files of TLS. */
  renew(password: string | null): void {
    this.#password = password
    for (const listener of this.#listeners) listener()
  }

  /** Returns what ends it. */
  onRenewed(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** The files that the URL names: of TLS. */
export function filesInUrl(url: string): readonly string[] {
  const query = URL.parse(url)?.searchParams
  return ['sslrootcert', 'sslcert', 'sslkey'].flatMap((name) => query?.get(name) ?? [])
}

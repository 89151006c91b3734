/** The credentials for the database. A renewal applies to every connection made afterwards. */
export class StoreLogin {
  readonly passwordFile: string | null
  #password: string | null
  readonly #listeners = new Set<() => void>()

  /** `passwordFile`: the file that the password is read from, again on each change. */
  constructor(password: string | null, passwordFile: string | null = null) {
    this.#password = password
    this.passwordFile = passwordFile
  }

  get password(): string | null {
    return this.#password
  }

  /** Call this when the password or the TLS files have changed. */
  renew(password: string | null): void {
    this.#password = password
    for (const listener of this.#listeners) listener()
  }

  /** Returns a function that removes the listener. */
  onRenewed(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** The TLS files that the URL names. */
export function filesInUrl(url: string): readonly string[] {
  const query = URL.parse(url)?.searchParams
  return ['sslrootcert', 'sslcert', 'sslkey'].flatMap((name) => query?.get(name) ?? [])
}

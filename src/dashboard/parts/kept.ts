/**
 * What the browser keeps for the user. Browsers can forbid it, and their storage can be full. Then it is kept until the page
 * is closed or loaded again.
 */
class Kept {
  readonly #storage: () => Storage
  /** What the browser did not keep. */
  readonly #refused = new Map<string, string>()

  constructor(storage: () => Storage) {
    this.#storage = storage
  }

  get(name: string): string | null {
    const refused = this.#refused.get(name)
    if (refused !== undefined) return refused
    try {
      return this.#storage().getItem(name)
    } catch {
      return null
    }
  }

  set(name: string, value: string): void {
    this.#refused.delete(name)
    try {
      this.#storage().setItem(name, value)
    } catch {
      this.#refused.set(name, value)
    }
  }

  delete(name: string): void {
    this.#refused.delete(name)
    try {
      this.#storage().removeItem(name)
    } catch {
      // Nothing is kept there.
    }
  }
}

/** In all tabs, until the user clears it. */
export const IN_BROWSER = new Kept(() => localStorage)
/** In this tab, until it is closed. */
export const IN_TAB = new Kept(() => sessionStorage)

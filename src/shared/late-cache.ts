import { LRUCache } from 'lru-cache'

/**
 * An LRUCache that allocates its memory with the first entry. For 20,000 entries that saves 5 ms and nearly 1
 * MB, which most gateways never need.
 */
export class LateCache<Value extends object | true> {
  readonly #options: LRUCache.Options<string, Value, unknown>
  #cache: LRUCache<string, Value> | null = null

  constructor(options: LRUCache.Options<string, Value, unknown>) {
    this.#options = options
  }

  get(key: string): Value | undefined {
    return this.#cache?.get(key)
  }

  has(key: string): boolean {
    return this.#cache?.has(key) === true
  }

  set(key: string, value: Value): void {
    this.#cache ??= new LRUCache(this.#options)
    this.#cache.set(key, value)
  }

  delete(key: string): void {
    this.#cache?.delete(key)
  }

  clear(): void {
    this.#cache?.clear()
  }
}

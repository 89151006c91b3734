/**
 * What callers of the protocol before 2026-07-28 may cancel: they say so in a request of its own, for leaving is no word
 * of theirs. There are no sessions: a request is known by who sent it and its id. Two clients of one caller may have used
 * the same id, and then it is nobody's.
 */
export class InFlight {
  readonly #open = new Map<string, Set<AbortController>>()

  get size(): number {
    return this.#open.size
  }

  enter(principal: string, id: string | number): { readonly cancelled: AbortSignal; leave(): void } {
    const key = keyOf(principal, id)
    const controller = new AbortController()
    const open = this.#open.get(key) ?? new Set()
    this.#open.set(key, open.add(controller))
    return {
      cancelled: controller.signal,
      leave: () => {
        open.delete(controller)
        if (open.size === 0) this.#open.delete(key)
      },
    }
  }

  cancel(principal: string, id: string | number): void {
    const open = [...(this.#open.get(keyOf(principal, id)) ?? [])]
    if (open.length === 1) open[0]!.abort()
  }
}

function keyOf(principal: string, id: string | number): string {
  return JSON.stringify([principal, id])
}

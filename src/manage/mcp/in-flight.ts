/**
 * Requests that a client may cancel with a protocol version before 2026-07-28. Such a client cancels with a
 * separate request, because a disconnect does not cancel. There are no sessions, so a request is identified
 * by its principal and id. If two clients of one principal use the same id, neither is cancelled.
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

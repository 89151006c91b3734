import type { Kill } from './disturbances.ts'
import type { Failure, FromApp, Outcome, Tally } from './messages.ts'

/** Keeps the account of all that was sent, and finds out of each failure what it goes to. */
export class Ledger {
  readonly wrong: string[] = []
  readonly #lost: { readonly failure: Failure; readonly timesSeen: Promise<number> }[] = []
  readonly #totals = new Map<string, Map<Outcome, number>>()
  readonly #answers: { readonly atMs: number; readonly count: number }[] = []
  readonly #idleClosesMs: number[] = []
  readonly #askApp: (id: string) => Promise<number>

  /** `askApp`: how often a request has come to it. */
  constructor(askApp: (id: string) => Promise<number>) {
    this.#askApp = askApp
  }

  tally(tally: Tally): void {
    let count = 0
    for (const [kind, outcomes] of Object.entries(tally)) {
      const totals = this.#totals.get(kind) ?? new Map<Outcome, number>()
      this.#totals.set(kind, totals)
      for (const [outcome, times] of Object.entries(outcomes) as [Outcome, number][]) {
        totals.set(outcome, (totals.get(outcome) ?? 0) + times)
        if (outcome === 'right') count += times
      }
    }
    this.#answers.push({ atMs: Date.now(), count })
  }

  failure(failure: Failure): void {
    if (failure.outcome === 'wrong') this.wrong.push(`${failure.kind} ${failure.id}: ${failure.what}`)
    else this.#lost.push({ failure, timesSeen: this.#timesSeen(failure) })
  }

  app(message: FromApp): void {
    if (message.kind === 'app:wrong') this.wrong.push(`the app: ${message.what}`)
    if (message.kind === 'app:closed-idle') this.#idleClosesMs.push(message.atMs)
  }

  /** By what accounts for them; `unaccounted` is what should not be. */
  async accounts(kills: readonly Kill[]): Promise<{ accounts: Map<Account, number>; unaccounted: string[] }> {
    const accounts = new Map<Account, number>()
    const unaccounted: string[] = []
    for (const { failure, timesSeen } of this.#lost) {
      const account = this.#accountOf(failure, kills, await timesSeen)
      if (account === null)
        unaccounted.push(`${inWords(failure, await timesSeen)}; ${killsNear(failure, kills)}`)
      else accounts.set(account, (accounts.get(account) ?? 0) + 1)
    }
    return { accounts, unaccounted }
  }

  /** Of one outcome or all, of all kinds. */
  total(outcome: Outcome | null): number {
    let sum = 0
    for (const totals of this.#totals.values())
      for (const [each, count] of totals) if (outcome === null || outcome === each) sum += count
    return sum
  }

  /** Answers in the last moments before these kills, which Gatehouse may have lost the count of. */
  answersBefore(kills: readonly Kill[], withinMs: number): number {
    return kills
      .map(({ atMs }) =>
        this.#answers.filter((each) => each.atMs > atMs - withinMs && each.atMs < atMs + withinMs),
      )
      .reduce((sum, list) => sum + list.reduce((count, each) => count + each.count, 0), 0)
  }

  get byKind(): ReadonlyMap<string, ReadonlyMap<Outcome, number>> {
    return this.#totals
  }

  async #timesSeen({ id }: Failure): Promise<number> {
    return id === null ? 0 : this.#askApp(id)
  }

  #accountOf(failure: Failure, kills: readonly Kill[], timesSeen: number): Account | null {
    const { port, connectedMs, startedMs, endedMs, method, code } = failure
    const isKilled = kills.some(
      ({ atMs, clientPorts }) => clientPorts.has(port) && connectedMs <= atMs && endedMs >= atMs,
    )
    if (isKilled) return 'a kill'
    // What is not idempotent is not sent again when the app closes the connection it is on its way on.
    const isRace = method === 'POST' && code === 'upstream_reset' && timesSeen === 0
    const wasClosed = this.#idleClosesMs.some(
      (atMs) => atMs >= startedMs - UNHEARD_MS && atMs <= endedMs + CLOCK_MS,
    )
    if (isRace && wasClosed) return 'the app closed an idle connection'
    return null
  }
}

function inWords(
  { kind, id, method, what, code, port, connectedMs, startedMs, endedMs }: Failure,
  seen: number,
): string {
  const when = `${new Date(endedMs).toISOString()}, ${endedMs - startedMs} ms after it began`
  const where = `port ${port}, open for ${endedMs - connectedMs} ms`
  return `${kind} ${method} ${id}: ${what} (${code}); ${when}; ${where}; came to the app ${seen} times`
}

function killsNear({ port, endedMs }: Failure, kills: readonly Kill[]): string {
  const had = kills.find(({ clientPorts }) => clientPorts.has(port))
  const nearest = kills.map(({ atMs }) => endedMs - atMs).toSorted((a, b) => Math.abs(a) - Math.abs(b))[0]
  if (nearest === undefined) return 'no kill'
  return `${nearest} ms after the nearest kill, ${had === undefined ? 'none of which had' : 'one of which had'} the port`
}

export type Account = 'a kill' | 'the app closed an idle connection'

/** What a worker that is busy has not heard of yet. */
const UNHEARD_MS = 2000
/** Two processes note the same moment. */
const CLOCK_MS = 100

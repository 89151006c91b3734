import type { Kill } from './kill.ts'
import type { Failure, FromApp, Outcome, Seen, Tally } from './messages.ts'

/** Records everything that was sent, and finds the cause of each failure. */
export class Ledger {
  readonly wrong: string[] = []
  readonly #lost: { readonly failure: Failure; readonly seen: Promise<Seen> }[] = []
  readonly #totals = new Map<string, Map<Outcome, number>>()
  readonly #answers: { readonly atMs: number; readonly count: number }[] = []
  readonly #closesMs: number[] = []
  readonly #askApp: (id: string) => Promise<Seen>

  /** `askApp`: what it knows of a request. */
  constructor(askApp: (id: string) => Promise<Seen>) {
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
    else this.#lost.push({ failure, seen: this.#seen(failure) })
  }

  app(message: FromApp): void {
    if (message.kind === 'app:wrong') this.wrong.push(`the app: ${message.what}`)
    if (message.kind === 'app:closed') this.#closesMs.push(message.atMs)
  }

  /** By what accounts for them; `unaccounted` is what should not be. */
  async accounts(
    kills: readonly Kill[],
    troubles: readonly Trouble[] = [],
  ): Promise<{ accounts: Map<string, number>; unaccounted: string[] }> {
    const accounts = new Map<string, number>()
    const unaccounted: string[] = []
    for (const { failure, seen } of this.#lost) {
      const account = this.#accountOf(failure, kills, await seen) ?? troubleOf(failure, await seen, troubles)
      if (account === null) unaccounted.push(`${inWords(failure, await seen)}; ${killsNear(failure, kills)}`)
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

  /** Right ones that were heard of from the one moment to the other. */
  answersBetween(fromMs: number, toMs: number): number {
    const within = this.#answers.filter(({ atMs }) => atMs > fromMs && atMs < toMs)
    return within.reduce((sum, { count }) => sum + count, 0)
  }

  /** Answers in the last moments before these kills, which Gatehouse may have lost the count of. */
  answersBefore(kills: readonly Kill[], withinMs: number): number {
    return kills.reduce((sum, { atMs }) => sum + this.answersBetween(atMs - withinMs, atMs + withinMs), 0)
  }

  get byKind(): ReadonlyMap<string, ReadonlyMap<Outcome, number>> {
    return this.#totals
  }

  async #seen({ id }: Failure): Promise<Seen> {
    return id === null ? NOT_SEEN : this.#askApp(id)
  }

  #accountOf(failure: Failure, kills: readonly Kill[], seen: Seen): Account | null {
    const { id, port, connectedMs, startedMs, endedMs, method, code } = failure
    const isKilled = kills.some(
      ({ atMs, clientPorts }) => clientPorts.has(port) && connectedMs <= atMs && endedMs >= atMs,
    )
    if (isKilled) return 'a kill'
    // A request that is not idempotent is not retried if the app closes its connection.
    if (method !== 'POST' || code !== 'upstream_reset') return null
    const wasClosed = this.#closesMs.some(
      (atMs) => atMs >= startedMs - UNHEARD_MS && atMs <= endedMs + CLOCK_MS,
    )
    if (seen.times === 0) return wasClosed ? 'the app closed a connection' : null
    // It answered another upload early and closes without having said so. When all of that upload was waiting in its
    // socket, Node reads on behind it until its own turn is over, and hands out the next request, whose connection is
    // gone by then. Its client has had a complete answer to a whole request on a connection that was to be kept.
    const isBehindIt = seen.times === 1 && !seen.isAnswered && seen.close?.why === 'early-close'
    return isBehindIt && seen.close.id !== id ? 'the app was closing its connection as it came' : null
  }
}

function inWords(
  { kind, id, method, what, code, port, connectedMs, startedMs, endedMs }: Failure,
  seen: Seen,
): string {
  const when = `${new Date(endedMs).toISOString()}, ${endedMs - startedMs} ms after it began`
  const where = `port ${port}, open for ${endedMs - connectedMs} ms`
  return `${kind} ${method} ${id}: ${what} (${code}); ${when}; ${where}; ${seenInWords(id, seen)}`
}

function seenInWords(id: string | null, { times, isAnswered, close, ended }: Seen): string {
  const whose = close?.id === null ? 'none' : close?.id === id ? 'this one' : close?.id
  const closed = close === null ? 'which it did not close' : `which it closed (${close.why}, for ${whose})`
  const answered = isAnswered ? 'answered there' : 'not answered'
  return `came to the app ${times} times, ${answered}, on a connection ${closed} (${ended ?? 'open'})`
}

function killsNear({ port, endedMs }: Failure, kills: readonly Kill[]): string {
  const had = kills.find(({ clientPorts }) => clientPorts.has(port))
  const nearest = kills.map(({ atMs }) => endedMs - atMs).toSorted((a, b) => Math.abs(a) - Math.abs(b))[0]
  if (nearest === undefined) return 'no kill'
  return `${nearest} ms after the nearest kill, ${had === undefined ? 'none of which had' : 'one of which had'} the port`
}

/** Something that went on for a while, and made requests fail in ways of its own. */
export interface Trouble {
  readonly name: string
  readonly fromMs: number
  readonly toMs: number
  accountsFor(failure: Failure, seen: Seen): boolean
}

function troubleOf(failure: Failure, seen: Seen, troubles: readonly Trouble[]): string | null {
  const { startedMs, endedMs } = failure
  const trouble = troubles.find(
    (each) => startedMs <= each.toMs && endedMs >= each.fromMs && each.accountsFor(failure, seen),
  )
  return trouble?.name ?? null
}

export type Account =
  | 'a kill'
  | 'the app closed a connection'
  | 'the app was closing its connection as it came'

const NOT_SEEN: Seen = { times: 0, isAnswered: false, close: null, ended: null }

/** What a worker that is busy has not heard of yet. */
const UNHEARD_MS = 2000
/** Two processes note the same moment. */
const CLOCK_MS = 100

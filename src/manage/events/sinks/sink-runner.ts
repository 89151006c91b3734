import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import type { PositionHolder } from '../../../store/events/event-positions.ts'
import type { Store } from '../../../store/store.ts'
import { Doze } from '../../http/doze.ts'
import type { Sink, SinkSource } from './sink.ts'
import type { SinkCounts } from './sink-metrics.ts'

export interface RunnerSettings extends PositionHolder {
  /** Whether several processes write to this sink. Only one of them does so at a time. */
  readonly isShared: boolean
  readonly pollMs?: number
  /** The delay before the first retry. It doubles with each retry, up to 30 s. */
  readonly retryBaseMs?: number
  /** How long this process holds its turn without renewing it. */
  readonly turnMs?: number
  /** Items of one write. */
  readonly atOnce?: number
}

interface RunnerLinks {
  readonly store: Pick<Store, 'eventPositions'>
  readonly log: Log
  nowMs(): number
}

/**
 * Sends events, or requests, to a sink, in order and at least once. The position is stored after the time in which a
 * loss can still show. A failing sink delays nothing else, and at most `atOnce` items are held in memory.
 */
export class SinkRunner<Item> {
  readonly #sink: Sink<Item>
  readonly #source: SinkSource<Item>
  readonly #settings: RunnerSettings
  readonly #links: RunnerLinks
  readonly #counts: SinkCounts
  readonly #closing = new AbortController()
  readonly #doze: Doze
  readonly #ignoreAdded: () => void
  #loop: Promise<void> = Promise.resolve()
  /** 0: another process has the turn, or it is unknown which one has it. */
  #turnUntilMs = 0
  /** The stored position, and the position up to which items were written to the sink. */
  #confirmed = 0
  #position = 0
  #unconfirmed: readonly Written[] = []
  #failuresInARow = 0

  constructor(
    { sink, source }: { readonly sink: Sink<Item>; readonly source: SinkSource<Item> },
    settings: RunnerSettings,
    links: RunnerLinks,
    counts: SinkCounts,
  ) {
    this.#sink = sink
    this.#source = source
    this.#settings = settings
    this.#links = links
    this.#counts = counts
    this.#doze = new Doze(settings.pollMs ?? POLL_MS, this.#closing.signal)
    this.#ignoreAdded = source.onAdded(() => this.#doze.wake())
  }

  /** Resolves when the starting position is known, also on the very first start. */
  async start(): Promise<void> {
    await this.#hasTurn()
    this.#loop = this.#run()
  }

  /** A backup was restored. */
  restored(): void {
    this.#turnUntilMs = 0
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#ignoreAdded()
    this.#doze.wake()
    await this.#sink.close()
    await this.#loop
    await this.#sink.close()
    const { isShared } = this.#settings
    if (isShared && this.#turnUntilMs > 0)
      await this.#links.store.eventPositions.leave(this.#settings).catch(() => undefined)
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const woken = this.#doze.woken
      try {
        const step = (await this.#hasTurn()) ? await this.#step() : 'nothing'
        if (step === 'nothing') await this.#doze.pause(woken)
        // When items arrive one by one, they are grouped into a few writes per second.
        if (step === 'some') await this.#pause(STEP_MS)
      } catch (error) {
        if (this.#closing.signal.aborted) return
        this.#failed(error as Error)
        await this.#pause(this.#delayMs())
      }
    }
  }

  async #hasTurn(): Promise<boolean> {
    const { isShared, turnMs = TURN_MS } = this.#settings
    const { store, nowMs, log } = this.#links
    const atMs = nowMs()
    if (atMs < this.#turnUntilMs - turnMs / 2) return true
    const { last, forgotten } = await this.#source.kept()
    const untilMs = isShared ? atMs + turnMs : Number.MAX_SAFE_INTEGER
    const position = await store.eventPositions.claim(this.#settings, { nowMs: atMs, untilMs }, last)
    if (position === null) {
      this.#turnUntilMs = 0
      await this.#sink.close()
      return false
    }
    if (this.#turnUntilMs <= atMs) {
      // A backup may have been restored.
      this.#goBackTo(Math.min(position, last))
      if (position < forgotten)
        log.warn(`${this.#source.what} were forgotten before a sink has got them`, {
          sink: this.#settings.name,
        })
    }
    this.#turnUntilMs = untilMs
    return true
  }

  async #step(): Promise<'nothing' | 'some' | 'more'> {
    const broken = this.#sink.broken()
    if (broken !== null && this.#unconfirmed.length > 0) throw broken
    const source = this.#source
    const { atOnce = AT_ONCE } = this.#settings
    const items = await source.after(this.#position, atOnce)
    const [oldest] = items
    this.#counts.oldestAtMs = oldest === undefined ? null : source.atMsOf(oldest)
    if (items.length > 0) {
      const wanted = items.filter((item) => source.isWanted(item))
      if (wanted.length > 0) await this.#keepingTurn(this.#sink.write(wanted))
      this.#position = source.numberOf(items.at(-1)!)
      this.#unconfirmed = [...this.#unconfirmed, { number: this.#position, atMs: performance.now() }]
      this.#counts.sent += wanted.reduce((sum, item) => sum + source.sizeOf(item), 0)
      this.#counts.oldestAtMs = null
      this.#succeeded()
    }
    await this.#confirm()
    if (items.length === 0) return 'nothing'
    return items.length === atOnce ? 'more' : 'some'
  }

  /** A write may take longer than a turn. */
  async #keepingTurn(work: Promise<void>): Promise<void> {
    const { isShared, turnMs = TURN_MS } = this.#settings
    const renew = async () => {
      const untilMs = this.#links.nowMs() + turnMs
      const turn = { nowMs: 0, untilMs }
      const position = await this.#links.store.eventPositions.claim(this.#settings, turn, 0)
      if (position !== null) this.#turnUntilMs = untilMs
    }
    const beat = isShared
      ? setInterval(() => void renew().catch(() => undefined), turnMs / RENEWED_IN_TURN).unref()
      : undefined
    try {
      await work
    } finally {
      clearInterval(beat)
    }
  }

  async #confirm(): Promise<void> {
    const beforeMs = performance.now() - this.#sink.confirmMs
    const sure = this.#unconfirmed.findLast(({ atMs }) => atMs <= beforeMs)
    if (sure === undefined) return
    const isOurs = await this.#links.store.eventPositions.move(this.#settings, sure.number)
    if (!isOurs) this.#turnUntilMs = 0
    this.#confirmed = sure.number
    this.#unconfirmed = this.#unconfirmed.filter(({ number }) => number > sure.number)
  }

  #goBackTo(position: number): void {
    this.#confirmed = position
    this.#position = position
    this.#unconfirmed = []
  }

  #succeeded(): void {
    const { log } = this.#links
    if (this.#failuresInARow > 0)
      log.info(`a sink takes ${this.#source.what} again`, { sink: this.#settings.name })
    this.#failuresInARow = 0
  }

  #failed(error: Error): void {
    this.#goBackTo(this.#confirmed)
    this.#counts.failures++
    if (this.#failuresInARow++ > 0) return
    const { log } = this.#links
    log.warn(`a sink takes no ${this.#source.what}; it is tried again`, { sink: this.#settings.name, error })
  }

  /** Grows exponentially, with jitter so that sinks do not retry in step. */
  #delayMs(): number {
    const { retryBaseMs = RETRY_BASE_MS } = this.#settings
    const delayMs = retryBaseMs * 2 ** Math.min(this.#failuresInARow - 1, 10)
    return Math.min(delayMs, RETRY_MS_MAX) * (0.75 + Math.random() / 2)
  }

  #pause(delayMs: number): Promise<void> {
    return wait(delayMs, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined)
  }
}

/** A write to the sink, up to this number. */
interface Written {
  readonly number: number
  readonly atMs: number
}

const AT_ONCE = 100
const POLL_MS = 1_000
const STEP_MS = 200
const RETRY_BASE_MS = 500
const RETRY_MS_MAX = 30_000
const RENEWED_IN_TURN = 4
/** How long it takes until another process replaces one that was killed. */
const TURN_MS = 20_000

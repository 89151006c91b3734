import assert from 'node:assert/strict'
import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'
import { setImmediate as turn } from 'node:timers/promises'
import { Fault } from './fault.ts'

/**
 * A child process for work that takes longer than a request may wait. If it cannot start or has ended, calls
 * to it fail. It ends with this process.
 */
export class HelperProcess {
  readonly #name: string
  readonly #child: ChildProcess | null
  #gone: string | null = null
  #isGivenUp = false
  #waiting: PromiseWithResolvers<unknown> | null = null

  /** `name`: prefix of its failure messages; `onGone`: it has ended or could not start. */
  constructor(
    program: string,
    name: string,
    options: ForkOptions = {},
    onGone: () => unknown = () => undefined,
  ) {
    this.#name = name
    const gone = (why: string) => {
      if (this.#gone !== null) return
      this.#gone = why
      if (this.#child !== null) ALIVE.delete(this.#child)
      if (this.#isGivenUp) return
      onGone()
      this.#waiting?.reject(this.#failure(why))
    }
    this.#child = started(program, options, gone)
    if (this.#child === null) return
    endWithThis(this.#child)
    this.#child
      .on('message', (answer) => this.#waiting?.resolve(answer))
      // If it could not be started, no 'close' follows.
      .on('error', ({ message }) => this.#child?.pid === undefined && gone(`cannot be started: ${message}`))
      // 'close', not 'exit': 'exit' may come before the last message.
      .once('close', () => gone('has ended'))
  }

  /** Whether it was ever started. */
  get hasBegun(): boolean {
    return this.#child?.pid !== undefined
  }

  /** Whether it can be asked. */
  get isThere(): boolean {
    return this.#gone === null && this.#child?.connected === true
  }

  /** One request at a time. Throws a Fault HELPER_GONE if the process is not available. */
  async ask<Answer>(work: object): Promise<Answer> {
    await turn() // starting it took long, and a failure to start is known after this
    assert(this.#waiting === null)
    const waiting = Promise.withResolvers<unknown>()
    this.#waiting = waiting
    const failed = (why: string) => {
      if (!this.#isGivenUp) waiting.reject(this.#failure(why))
    }
    if (this.#gone !== null) failed(this.#gone)
    else if (!this.#isGivenUp)
      this.#child!.send(work, (error) => error !== null && failed(`cannot be reached: ${error.message}`))
    try {
      return (await waiting.promise) as Answer
    } finally {
      this.#waiting = null
    }
  }

  /** Lets the process end after its current work. */
  leave(): void {
    if (this.#child?.connected === true) this.#child.disconnect()
  }

  /** Kills the process; a pending request is never settled. */
  giveUp(): void {
    this.#isGivenUp = true
    this.#child?.kill('SIGKILL')
  }

  #failure(why: string): Fault {
    return new Fault('HELPER_GONE', `${this.#name} ${why}`)
  }
}

/** Depending on the missing resource, a failure to start is thrown or is an event. */
function started(program: string, options: ForkOptions, gone: (why: string) => void): ChildProcess | null {
  try {
    return fork(program, {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      ...options,
    })
  } catch (error) {
    setImmediate(gone, `cannot be started: ${(error as Error).message}`)
    return null
  }
}

/**
 * Ends the child however this process ends, except by SIGKILL: what the child writes to may disappear with
 * this process.
 */
function endWithThis(child: ChildProcess): void {
  if (child.pid === undefined) return
  if (!isEndHeard) {
    isEndHeard = true
    process.prependOnceListener('exit', () => {
      for (const each of ALIVE) each.kill('SIGKILL')
    })
  }
  ALIVE.add(child)
}

const ALIVE = new Set<ChildProcess>()
let isEndHeard = false

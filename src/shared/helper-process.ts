import assert from 'node:assert/strict'
import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'
import { setImmediate as turn } from 'node:timers/promises'
import { Fault } from './fault.ts'

/**
 * Another process of ours, for work that takes longer than a request may wait. That there is none to be had, or that it
 * is gone, is for whoever asks it to hear; it ends with this one.
 */
export class HelperProcess {
  readonly #name: string
  readonly #child: ChildProcess | null
  #gone: string | null = null
  #isGivenUp = false
  #waiting: PromiseWithResolvers<unknown> | null = null

  /** `name`: what its failures begin with; `onGone`: it has ended, or never began. */
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
      // Where it could not be started no 'close' follows.
      .on('error', ({ message }) => this.#child?.pid === undefined && gone(`cannot be started: ${message}`))
      // Behind all that it has said: 'exit' may come before its last message.
      .once('close', () => gone('has ended'))
  }

  /** There was one, whatever has become of it. */
  get hasBegun(): boolean {
    return this.#child?.pid !== undefined
  }

  /** It can be asked. */
  get isThere(): boolean {
    return this.#gone === null && this.#child?.connected === true
  }

  /** One thing at a time. Throws a Fault HELPER_GONE where nobody answers. */
  async ask<Answer>(work: object): Promise<Answer> {
    await turn() // to start it takes long enough by itself, and that it could not be is said by now
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

  /** Nobody has anything for it any more: it ends when it has done what it does. */
  leave(): void {
    if (this.#child?.connected === true) this.#child.disconnect()
  }

  /** Nobody waits for it any more: what it was asked for is never settled. */
  giveUp(): void {
    this.#isGivenUp = true
    this.#child?.kill('SIGKILL')
  }

  #failure(why: string): Fault {
    return new Fault('HELPER_GONE', `${this.#name} ${why}`)
  }
}

/** Some of what the system may lack is thrown, and some is an event. */
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

/** However this process ends, but by SIGKILL: what it has written into may be gone with it. */
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

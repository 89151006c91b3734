import { setImmediate as turn } from 'node:timers/promises'
import vm from 'node:vm'
import { Coverage } from './coverage.ts'
import { mutate, Random } from './mutate.ts'

/** Throws, or rejects, when a promise is broken. */
export type Target = (bytes: Buffer) => void | Promise<void>

export interface Plan {
  readonly target: Target
  readonly seeds: readonly Buffer[]
  /** The same one gives the same inputs in the same order. */
  readonly seed: number
  readonly milliseconds: number
}

export interface Outcome {
  readonly executions: number
  readonly perSecond: number
  /** Inputs that reached code which the seeds did not, in the order of their discovery. */
  readonly kept: readonly Buffer[]
  /** What broke the target, made as short as it gets. */
  readonly failure: Failure | null
}

export interface Failure {
  readonly bytes: Buffer
  readonly error: Error
}

/** Runs the target on changed inputs until one breaks it or the time is up. Those that reach new code are changed further. */
export async function fuzz({ target, seeds, seed, milliseconds }: Plan): Promise<Outcome> {
  const random = new Random(seed)
  const coverage = new Coverage()
  const pool = [...seeds]
  let executions = 0
  let failure = await firstFailure(target, seeds)
  coverage.isNew(true)
  const began = performance.now()
  while (failure === null && performance.now() < began + milliseconds) {
    const batch = Array.from({ length: BATCH }, () => mutate(random.of(pool), pool, random))
    failure = await firstFailure(target, batch)
    // What the program does in the next turn of the event loop, it is to do.
    await turn()
    executions += batch.length
    // Asking costs as much as some executions do: a batch is asked about as a whole, and one by one when it is worth it.
    if (failure !== null || !coverage.isNew(false)) continue
    for (const bytes of batch) {
      await target(Buffer.from(bytes))
      if (coverage.isNew(true)) pool.push(bytes)
    }
  }
  const perSecond = Math.round((executions * 1000) / (performance.now() - began))
  return {
    executions,
    perSecond,
    kept: pool.slice(seeds.length),
    failure: failure && (await shortened(target, failure)),
  }
}

/** The first of the inputs that breaks the target, or on which it does not end. */
export async function firstFailure(
  target: Target,
  inputs: readonly Buffer[],
  timeout = TIMEOUT_MS,
): Promise<Failure | null> {
  const waiting: Promise<Failure | null>[] = []
  let at = 0
  running = () => {
    for (; at < inputs.length; at++) {
      const bytes = inputs[at]!
      const done = target(Buffer.from(bytes)) // a copy: an input must stay what it was
      if (done !== undefined)
        waiting.push(
          done.then(
            () => null,
            (error: Error) => ({ bytes, error }),
          ),
        )
    }
  }
  try {
    SCRIPT.runInContext(CONTEXT, { timeout })
  } catch (error) {
    const bytes = inputs[at]!
    const isTimeout = (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    if (!isTimeout || inputs.length === 1) return { bytes, error: error as Error }
    // A slow machine, or this input: it gets all the time for itself.
    return (
      (await firstFailure(target, [bytes], timeout)) ??
      (await firstFailure(target, inputs.slice(at + 1), timeout))
    )
  }
  return (await Promise.all(waiting)).find((failure) => failure !== null) ?? null
}

/** Leaves out whatever can be left out with the same error, in halves, quarters and so on. */
async function shortened(target: Target, { bytes, error }: Failure): Promise<Failure> {
  let shortest: Failure = { bytes, error }
  const until = performance.now() + SHORTENING_MS
  for (let length = bytes.length >> 1; length > 0; length >>= 1) {
    for (let at = 0; at < shortest.bytes.length && performance.now() < until; ) {
      const shorter = Buffer.concat([shortest.bytes.subarray(0, at), shortest.bytes.subarray(at + length)])
      const failure = await firstFailure(target, [shorter], SHORT_TIMEOUT_MS)
      if (failure?.error.name === error.name) shortest = failure
      else at += length
    }
  }
  return shortest
}

/** `vm` has the only way to end a loop that does not, in the thread that runs it. */
let running = (): void => undefined
const CONTEXT = vm.createContext({ run: () => running() })
const SCRIPT = new vm.Script('run()')

const BATCH = 64
const TIMEOUT_MS = 10_000
const SHORT_TIMEOUT_MS = 1000
const SHORTENING_MS = 10_000

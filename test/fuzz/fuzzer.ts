import vm from 'node:vm'
import { Coverage } from './coverage.ts'
import { mutate, Random } from './mutate.ts'

/** Throws when a promise is broken; what it returns does not matter. */
export type Target = (bytes: Buffer) => void

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
export function fuzz({ target, seeds, seed, milliseconds }: Plan): Outcome {
  const random = new Random(seed)
  const coverage = new Coverage()
  const pool = [...seeds]
  const began = performance.now()
  let executions = 0
  let failure = firstFailure(target, seeds)
  coverage.isNew(true)
  while (failure === null && performance.now() < began + milliseconds) {
    const batch = Array.from({ length: BATCH }, () => mutate(random.of(pool), pool, random))
    failure = firstFailure(target, batch)
    executions += batch.length
    // Asking costs as much as some executions do: a batch is asked about as a whole, and one by one when it is worth it.
    if (failure !== null || !coverage.isNew(false)) continue
    for (const bytes of batch) {
      target(Buffer.from(bytes))
      if (coverage.isNew(true)) pool.push(bytes)
    }
  }
  const perSecond = Math.round((executions * 1000) / (performance.now() - began))
  return {
    executions,
    perSecond,
    kept: pool.slice(seeds.length),
    failure: failure && shortened(target, failure),
  }
}

/** The first of the inputs that breaks the target, or on which it does not end. */
export function firstFailure(
  target: Target,
  inputs: readonly Buffer[],
  timeout = TIMEOUT_MS,
): Failure | null {
  let at = 0
  running = () => {
    for (; at < inputs.length; at++) target(Buffer.from(inputs[at]!)) // a copy: an input must stay what it was
  }
  try {
    SCRIPT.runInContext(CONTEXT, { timeout })
    return null
  } catch (error) {
    const bytes = inputs[at]!
    const isTimeout = (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    if (!isTimeout || inputs.length === 1) return { bytes, error: error as Error }
    // A slow machine, or this input: it gets all the time for itself.
    return firstFailure(target, [bytes], timeout) ?? firstFailure(target, inputs.slice(at + 1), timeout)
  }
}

/** Leaves out whatever can be left out with the same error, in halves, quarters and so on. */
function shortened(target: Target, { bytes, error }: Failure): Failure {
  let shortest: Failure = { bytes, error }
  const until = performance.now() + SHORTENING_MS
  for (let length = bytes.length >> 1; length > 0; length >>= 1) {
    for (let at = 0; at < shortest.bytes.length && performance.now() < until; ) {
      const shorter = Buffer.concat([shortest.bytes.subarray(0, at), shortest.bytes.subarray(at + length)])
      const failure = firstFailure(target, [shorter], SHORT_TIMEOUT_MS)
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

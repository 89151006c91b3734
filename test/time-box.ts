/** A property is tried so often, unless the time is over before. */
interface TimeBox {
  readonly numRuns: number
  readonly interruptAfterTimeLimit: number
}

/**
 * For a property with cheap runs: more find more. `npm run test:all` sets PROPERTIES=whole; without it, a property has a
 * quarter of its runs and of its time. A second is always there: a busy machine may take as long for the first run.
 */
export function timeBox(runs: number, milliseconds: number): TimeBox {
  return {
    numRuns: Math.ceil(runs * SHARE),
    interruptAfterTimeLimit: Math.max(milliseconds * SHARE, LEAST_MS),
  }
}

const SHARE = process.env['PROPERTIES'] === 'whole' ? 1 : 0.25
const LEAST_MS = 1_000

import type { Log } from '../shared/log.ts'
import type { ExitCode } from '../terminal/command.ts'
import { Orders } from '../terminal/orders.ts'

/** What runs until somebody stops it. */
export interface Running {
  /** For how long it takes on more after SIGTERM: until all have heard that none should come. */
  readonly graceMs: number
  sayReady(): void
  reload(): void
  stop(graceMs: number): Promise<void>
  /** At once, whatever is open. */
  kill(): void
}

/** Serves until it is told to stop, and then until what is open has come to its end. */
export async function serve(
  start: () => Promise<Running>,
  warnings: readonly string[],
  log: Log,
): Promise<ExitCode> {
  for (const warning of warnings) log.warn('a setting is risky', { warning })
  const orders = new Orders()
  try {
    const starting = start()
    const running = await Promise.race([starting, orders.stop.then(() => null)])
    if (running === null) {
      log.info('stopped before it was ready')
      starting.then(
        (late) => late.kill(),
        () => undefined,
      )
      return 0
    }
    orders.reload = () => running.reload()
    orders.kill = () => running.kill()
    running.sayReady()
    const signal = await orders.stop
    // Somebody at a terminal has told nobody to send traffic here, and waits.
    const graceMs = signal === 'SIGINT' ? 0 : running.graceMs
    log.info('stopping', { signal, graceMs })
    await running.stop(graceMs)
    log.info('stopped')
    return 0
  } finally {
    orders.close()
    log.flush()
    // What is under way still (signatures that are read, a database that does not answer) is waited for no longer.
    setTimeout(() => process.exit(), LEAVE_MS).unref()
  }
}

/** Load balancers that look every second or two have seen by then that it is not ready. */
export const GRACE_MS = 5_000

/** For an output that somebody reads slowly. */
const LEAVE_MS = 200

import type { Log } from '../shared/log.ts'
import type { ExitCode } from '../terminal/command.ts'

/** A server that runs until it is stopped. */
export interface Running {
  /** How long it accepts requests after SIGTERM, so that load balancers notice that it is stopping. */
  readonly graceMs: number
  sayReady(): void
  reload(): void
  stop(graceMs: number): Promise<void>
  /** Stops at once, whatever is open. */
  kill(): void
}

/** Serves until a signal stops it, then drains. */
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
    // A person at a terminal has no load balancer to notify, and waits.
    const graceMs = signal === 'SIGINT' ? 0 : running.graceMs
    log.info('stopping', { signal, graceMs })
    await running.stop(graceMs)
    log.info('stopped')
    return 0
  } finally {
    orders.close()
    log.flush()
    // Does not wait for unfinished work, such as reading signatures or a database that does not respond.
    setTimeout(() => process.exit(), LEAVE_MS).unref()
  }
}

type Stop = 'SIGINT' | 'SIGTERM'

/** Commands received as signals. A second stop signal means stop at once. */
class Orders {
  readonly stop: Promise<Stop>
  reload: () => void = () => undefined
  kill: () => void = () => undefined
  readonly #stop = Promise.withResolvers<Stop>()
  readonly #listeners = {
    SIGINT: () => this.#told('SIGINT'),
    SIGTERM: () => this.#told('SIGTERM'),
    SIGHUP: () => this.reload(),
  }
  #isStopping = false

  constructor() {
    this.stop = this.#stop.promise
    for (const [signal, listener] of Object.entries(this.#listeners)) process.on(signal, listener)
  }

  close(): void {
    for (const [signal, listener] of Object.entries(this.#listeners)) process.off(signal, listener)
  }

  #told(signal: Stop): void {
    if (this.#isStopping) {
      this.kill()
      process.exit(EXIT_CODES[signal])
    }
    this.#isStopping = true
    this.#stop.resolve(signal)
  }
}

/** Load balancers that probe every second or two have noticed by then. */
export const GRACE_MS = 5_000

/** For output that is read slowly. */
const LEAVE_MS = 200
/** The exit codes that shells use for processes ended by a signal. */
const EXIT_CODES: Readonly<Record<Stop, number>> = { SIGINT: 130, SIGTERM: 143 }

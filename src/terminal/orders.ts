type Stop = 'SIGINT' | 'SIGTERM'

/** Commands received as signals. A second stop signal means stop at once. */
export class Orders {
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

/** The exit codes that shells use for processes ended by a signal. */
const EXIT_CODES: Readonly<Record<Stop, number>> = { SIGINT: 130, SIGTERM: 143 }

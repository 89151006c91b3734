/** What the probe was answered. `null`: nobody answered. */
export interface Sample {
  readonly atMs: number
  readonly isReady: boolean | null
  readonly said: string
}

/** Asks all the time whether it is ready, as whoever sends it traffic does. */
export class ReadinessWatch {
  readonly samples: Sample[] = []
  readonly #url: string
  readonly #timer: NodeJS.Timeout

  constructor(manageUrl: string) {
    this.#url = `${manageUrl}/health/ready`
    this.#timer = setInterval(() => void this.ask(), ASK_MS)
  }

  async ask(): Promise<Sample> {
    const atMs = Date.now()
    const sample = await this.#answer(atMs)
    this.samples.push(sample)
    return sample
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #answer(atMs: number): Promise<Sample> {
    try {
      const response = await fetch(this.#url, {
        headers: { connection: 'close' },
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      })
      return { atMs, isReady: response.status === 200, said: await response.text() }
    } catch (error) {
      return { atMs, isReady: null, said: String((error as Error).cause ?? error) }
    }
  }
}

const ASK_MS = 250
/** On a machine that has much else to do. */
const ANSWER_MS_MAX = 20_000

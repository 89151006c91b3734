/** The answer to the probe. `null`: no answer. */
export interface Sample {
  /** When it was asked, and when it was told. */
  readonly fromMs: number
  readonly toMs: number
  readonly isReady: boolean | null
  readonly said: string
}

/** Asks all the time whether it is ready, as a load balancer does. */
export class ReadinessWatch {
  readonly samples: Sample[] = []
  readonly #url: string
  readonly #timer: NodeJS.Timeout

  constructor(manageUrl: string) {
    this.#url = `${manageUrl}/health/ready`
    this.#timer = setInterval(() => void this.ask(), ASK_MS)
  }

  async ask(): Promise<Sample> {
    const fromMs = Date.now()
    const answer = await this.#answer()
    const sample = { fromMs, toMs: Date.now(), ...answer }
    this.samples.push(sample)
    return sample
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #answer(): Promise<Pick<Sample, 'isReady' | 'said'>> {
    try {
      const response = await fetch(this.#url, {
        headers: { connection: 'close' },
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      })
      return { isReady: response.status === 200, said: await response.text() }
    } catch (error) {
      return { isReady: null, said: String((error as Error).cause ?? error) }
    }
  }
}

/** A worker that is started anew is not there for longer than that. */
const ASK_MS = 100
/** On a machine that has much else to do. */
const ANSWER_MS_MAX = 20_000

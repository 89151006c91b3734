import type { ChaosGateway } from './gateway.ts'

/** What the primary has in use once it has collected its garbage: when all has been done to it once, and at the end. */
export class LiveMemory {
  readonly #gateway: ChaosGateway
  #firstBytes: number | null = null
  #lastBytes: number | null = null

  constructor(gateway: ChaosGateway) {
    this.#gateway = gateway
  }

  get isMeasured(): boolean {
    return this.#firstBytes !== null
  }

  async measure(): Promise<void> {
    const bytes = await this.#gateway.current.primaryLiveBytes()
    this.#firstBytes ??= bytes
    this.#lastBytes = bytes
  }

  get problems(): readonly string[] {
    const [first, last] = [this.#firstBytes ?? 0, this.#lastBytes ?? 0]
    return last > first + SLACK_BYTES ? [`the primary had ${first} bytes in use, and has ${last}`] : []
  }

  get note(): string {
    const [first, last] = [this.#firstBytes, this.#lastBytes].map((bytes) =>
      ((bytes ?? 0) / 2 ** 20).toFixed(1),
    )
    return `the primary has in use: ${first} MiB once each had been, ${last} MiB at the end`
  }
}

/** What is cached of what it is asked for; one that was started anew begins with less. */
const SLACK_BYTES = 8 * 1024 * 1024

import { setTimeout as wait } from 'node:timers/promises'
import type { SoakFiles } from './files.ts'
import type { SoakedGateway } from './gateway.ts'
import { type Kill, killWorker } from './kill.ts'
import type { Random } from './random.ts'
import { Reloads } from './reloads.ts'
import { until } from './until.ts'

/** Reloads and kills, until they are told to stop; what does not go as it should is a problem. */
export class Disturbances {
  readonly kills: Kill[] = []
  readonly problems: string[] = []
  readonly #reloads: Reloads
  readonly #gateway: SoakedGateway
  readonly #stop = new AbortController()
  readonly #going: Promise<unknown>

  constructor(
    gateway: SoakedGateway,
    files: SoakFiles,
    random: Random,
    { reloadMs, killMs }: { readonly reloadMs: number; readonly killMs: number | null },
  ) {
    this.#gateway = gateway
    this.#reloads = new Reloads(gateway, files, random)
    const reloads = this.#repeat(reloadMs, () => this.#reloads.one())
    const kills = killMs === null ? null : this.#repeat(killMs, () => this.#kill())
    this.#going = Promise.all([reloads, kills])
  }

  /** How often there was each. */
  get reloads(): ReadonlyMap<string, number> {
    return this.#reloads.counts
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#going
    this.problems.push(...this.#reloads.problems)
  }

  async #repeat(everyMs: number, action: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop
    for (;;) {
      await wait(everyMs, null, { signal }).catch(() => undefined)
      if (signal.aborted) return
      try {
        await action()
      } catch (error) {
        this.problems.push(`a disturbance failed: ${(error as Error).stack}`)
      }
    }
  }

  /** The youngest worker: the others live through the soak. */
  async #kill(): Promise<void> {
    const gateway = this.#gateway
    const { workers } = gateway
    const pid = workers.at(-1)!
    this.kills.push(await killWorker(gateway, pid, this.problems))
    const isReplaced = async () => (await gateway.metrics()).sum('workers_listening') === workers.length
    if (!(await until(isReplaced, REPLACED_MS_MAX))) this.problems.push(`worker ${pid} is not replaced`)
  }
}

const REPLACED_MS_MAX = 40_000

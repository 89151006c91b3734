import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import { until } from '../contract/bus.ts'
import { folderFor } from '../e2e/engines.ts'
import { freePort } from '../e2e/ports.ts'
import { endWithProcess } from '../e2e/programs.ts'

/** A server of the test's own, with whatever guards it. */
export class GuardedNats {
  readonly port: number
  readonly #folder: string
  readonly #monitor: number
  #child: ChildProcess | null = null

  /** `lines`: of its configuration; `{store}` stands for a folder of its own. */
  static async start(t: Test, lines: string): Promise<GuardedNats> {
    const nats = new GuardedNats(folderFor(t, 'nats'), await freePort(), await freePort())
    t.teardown(() => nats.#stop())
    nats.#write(lines)
    await nats.#run()
    return nats
  }

  private constructor(folder: string, port: number, monitor: number) {
    this.#folder = folder
    this.port = port
    this.#monitor = monitor
  }

  reload(lines: string): void {
    this.#write(lines)
    this.#child?.kill('SIGHUP')
  }

  async restart(): Promise<void> {
    await this.#stop()
    await this.#run()
  }

  /** Resolves when its connections are of these. */
  async untilUsers(wanted: readonly string[]): Promise<void> {
    while (!isDeepStrictEqual(await this.#users(), wanted)) await wait(20)
  }

  async #users(): Promise<readonly string[]> {
    const response = await fetch(`http://127.0.0.1:${this.#monitor}/connz?auth=1`)
    const { connections } = (await response.json()) as {
      readonly connections: readonly { readonly authorized_user: string }[]
    }
    return connections.map((each) => each.authorized_user)
  }

  #write(lines: string): void {
    const text = `host: "127.0.0.1"\nport: ${this.port}\nhttp: "127.0.0.1:${this.#monitor}"\n${lines.replace('{store}', join(this.#folder, 'store'))}\n`
    writeFileSync(join(this.#folder, 'nats.conf'), text)
  }

  async #run(): Promise<void> {
    const log = join(this.#folder, `log-${Date.now()}`)
    this.#child = spawn('nats-server', ['-c', join(this.#folder, 'nats.conf'), '-l', log], {
      stdio: 'ignore',
    })
    endWithProcess(this.#child)
    const isReady = () => {
      try {
        return readFileSync(log, 'utf8').includes('Server is ready')
      } catch {
        return false
      }
    }
    await until(isReady)
  }

  async #stop(): Promise<void> {
    const child = this.#child
    this.#child = null
    if (child === null || child.exitCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}

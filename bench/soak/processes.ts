import { type ChildProcess, fork } from 'node:child_process'
import { SERVER_NAMES } from './files.ts'
import type { AppPorts } from './gateway.ts'
import type { Ledger } from './ledger.ts'
import type { ClientsOrder, FromApp, FromClients, Seen } from './messages.ts'
import type { Random } from './random.ts'

/** The app and the clients of a soak, in processes of their own. */
export class SoakProcesses {
  readonly #children: ChildProcess[] = []
  readonly #crash = Promise.withResolvers<never>()
  #app: ChildProcess | null = null
  readonly #clients: ChildProcess[] = []

  constructor() {
    this.crash.catch(() => undefined) // the next wait reports it
    // An early end leaves no gateway behind, also after a second signal.
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.on(signal, () => this.end(`ended by ${signal}`))
  }

  /** Rejects when one of them has ended: a bug of the soak. */
  get crash(): Promise<never> {
    return this.#crash.promise
  }

  /** Whatever is waited for: it is over. */
  end(why: string): void {
    this.#crash.reject(new Error(why))
  }

  async startApp(ledger: Ledger): Promise<AppPorts> {
    const app = this.#start('app.ts')
    this.#app = app
    const ports = await message(app, 'app:ready')
    app.on('message', (said: FromApp) => ledger.app(said))
    return ports
  }

  seenByApp(id: string): Promise<Seen> {
    const app = this.#app!
    return new Promise((resolve) => {
      const hear = (said: FromApp) => {
        if (said.kind !== 'app:seen' || said.id !== id) return
        app.off('message', hear)
        resolve(said.seen)
      }
      app.setMaxListeners(0).on('message', hear)
      app.send({ kind: 'app:seen?', id })
    })
  }

  /** Once for each gateway there is. */
  async startClients(
    wanted: Pick<ClientsOrder, 'port' | 'ca' | 'kinds' | 'sendsGarbage'> & { readonly connections: number },
    ledger: Ledger,
    random: Random,
  ): Promise<void> {
    const { connections, ...order } = wanted
    const count = Math.ceil(connections / LANES_EACH)
    const started = Array.from({ length: count }, () => this.#start('clients.ts'))
    this.#clients.push(...started)
    for (const [index, clients] of started.entries()) {
      await message(clients, 'clients:ready')
      clients.on('message', (said: FromClients) => {
        if (said.kind === 'clients:tally') ledger.tally(said.tally)
        if (said.kind !== 'clients:failure') return
        ledger.failure(said.failure)
        const { outcome, kind, what } = said.failure
        if (outcome === 'wrong') process.stdout.write(`wrong: ${kind}, ${what}\n`)
      })
      const lanes = Math.ceil((connections - index) / count)
      const seed = random.between(0, 2 ** 31)
      clients.send({ kind: 'clients:start', ...order, serverNames: SERVER_NAMES, lanes, seed })
    }
  }

  /** Resolves when each has its last answer. */
  async stopClients(): Promise<void> {
    const done = this.#clients.map((each) => message(each, 'clients:done'))
    for (const each of this.#clients) each.send({ kind: 'clients:stop' })
    await Promise.all(done)
  }

  kill(): void {
    for (const each of this.#children) each.kill('SIGKILL')
  }

  #start(file: string): ChildProcess {
    const made = fork(new URL(file, import.meta.url), { serialization: 'advanced' })
    made.once('exit', (code) => {
      if (code === null) return // killed, at the end
      this.#crash.reject(new Error(`${file} has ended with ${code}`))
    })
    this.#children.push(made)
    return made
  }
}

/** The next of a kind. */
function message<Kind extends (FromApp | FromClients)['kind']>(
  from: ChildProcess,
  kind: Kind,
): Promise<Extract<FromApp | FromClients, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const hear = (said: FromApp | FromClients) => {
      if (said.kind !== kind) return
      from.off('message', hear)
      resolve(said as Extract<FromApp | FromClients, { kind: Kind }>)
    }
    from.on('message', hear)
    from.once('exit', (code) => reject(new Error(`a process of the soak has ended with ${code}`)))
  })
}

/** More than that keep one process of clients busy. */
const LANES_EACH = 100

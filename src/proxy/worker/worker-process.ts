import cluster from 'node:cluster'
import { Fault } from '../../shared/fault.ts'
import { createLog, type Log } from '../../shared/log.ts'
import { type Channel, type ChannelMessage, LocalProxyBus } from '../../plane/local-bus.ts'
import { endStart } from '../connection/garbage.ts'
import { RemoteInvestigator } from '../request/investigation-line.ts'
import { Worker } from './worker.ts'
import type { FromWorker, ToWorker } from './worker-messages.ts'

/**
 * The process of one worker. WorkerPool starts it and sends it everything it needs. If the primary exits, the
 * worker stops accepting connections, so that the next primary can bind the port, and exits when its
 * connections are served.
 */
class WorkerProcess {
  readonly #bus = new LocalProxyBus(channelToPrimary())
  readonly #investigator = new RemoteInvestigator(channelToPrimary())
  #starting: Promise<Worker> | null = null
  #log: Log | null = null
  #drainTimeoutMs = 0
  #isLeaving = false

  run(): void {
    // An interrupt from a terminal reaches every process of the group. Only the primary acts on it.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
    process.on('message', (message: ToWorker) => this.#obey(message))
    cluster.worker?.on('disconnect', () => {
      cluster.worker!.exitedAfterDisconnect = true // otherwise cluster ends the process at once
      void this.#leave(this.#drainTimeoutMs)
    })
    say({ kind: 'worker:loaded' })
  }

  async #obey(message: ToWorker): Promise<void> {
    switch (message.kind) {
      case 'worker:start':
        return this.#start(message)
      case 'worker:use':
        return (await this.#starting)?.use(message.state)
      case 'worker:log-at':
        return this.#log?.setLevel(message.level)
      case 'worker:read':
        return this.#answer(message.number)
      case 'worker:drain':
        return this.#leave(message.deadlineMs)
    }
  }

  async #start({ settings, state }: ToWorker & { kind: 'worker:start' }): Promise<void> {
    this.#drainTimeoutMs = settings.drainTimeoutMs
    this.#log = createLog(settings.log).with({ worker: process.pid })
    const services = { bus: this.#bus, log: this.#log, investigator: this.#investigator, tap: null }
    this.#starting = Worker.start(settings, state, services, () => endStart({ servesTraffic: true }))
    try {
      const worker = await this.#starting
      say({ kind: 'worker:listening' })
      const beat = () => {
        const { snapshot, dropped } = worker
        const [unready, unhealthy] = [worker.unready(), worker.unhealthyTargets()]
        say({ kind: 'worker:alive', unready, unhealthy, snapshot, dropped })
      }
      beat()
      setInterval(beat, BEAT_MS).unref()
    } catch (error) {
      if (!(error instanceof Fault)) throw error // a bug: let it crash the process
      say({ kind: 'worker:failed', code: error.code, message: error.message })
      this.#exit(1)
    }
  }

  async #answer(number: number): Promise<void> {
    const worker = await this.#starting
    if (worker !== null) say({ kind: 'worker:reading', number, reading: worker.read() })
  }

  async #leave(deadlineMs: number): Promise<void> {
    if (this.#isLeaving) return
    this.#isLeaving = true
    const worker = await this.#starting
    await worker?.drain(deadlineMs)
    await this.#answer(UNASKED)
    this.#exit(0)
  }

  /** Exits after the primary has received all messages, unless it no longer listens. */
  #exit(code: number): void {
    this.#log?.flush()
    const exit = () => process.exit(code)
    if (!process.connected) return exit()
    const goodbye: FromWorker = { kind: 'worker:bye' }
    process.send!(goodbye, exit)
    setTimeout(exit, GOODBYE_MS)
  }
}

function channelToPrimary(): Channel {
  return {
    isWire: true,
    send: say,
    onMessage: (listener) => void process.on('message', (message: ChannelMessage) => listener(message)),
    onClose: (listener) => void process.once('disconnect', listener),
  }
}

function say(message: FromWorker | ChannelMessage): boolean {
  // Without a callback, a primary that dies right now would cause an unhandled error.
  if (process.connected) process.send!(message, () => undefined)
  return process.connected
}

const BEAT_MS = 500
const GOODBYE_MS = 1_000
/** The number of a reading that was not requested. */
const UNASKED = 0

new WorkerProcess().run()

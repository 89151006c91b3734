import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:https'
import type { Test } from 'tap'
import type { KeyPair } from '../../src/proxy/tls/key-pair.ts'
import type { ListenerLimits } from '../../src/proxy/worker/listener.ts'
import type { WorkerSettings } from '../../src/proxy/worker/worker-settings.ts'
import { endWith } from '../e2e/programs.ts'
import { goodPair, upstreamSettings, workerSettings } from '../proxy/test-worker.ts'

/** A worker in a process of its own, to be attacked: it must not end, and says what it holds. */
export interface Victim {
  readonly port: number
  readonly plainPort: number
  /** After garbage has been collected, unless only the numbers are wanted. */
  read(isWeighed?: boolean): Promise<Reading>
  /** Other keys for session tickets from the next handshake on. */
  rotate(ticketKeys: Buffer): Promise<void>
  /** Until a metric has this value, or more than one; fails when it does not come to it. */
  settles(metric: string, value: number | { readonly above: number }): Promise<void>
}

export interface Reading {
  readonly residentBytes: number
  /** The heap and what V8 knows of outside it. */
  readonly heldBytes: number
  /** By name and values of labels: `connections_open h2`. */
  readonly metrics: Record<string, number>
}

export interface VictimPlan {
  readonly settings: WorkerSettings
  readonly keyPairs: readonly KeyPair[]
  /** In hex. */
  readonly ticketKeys: string
}

export interface Ready {
  readonly port: number
  readonly plainPort: number
}

export interface Order {
  /** In hex; `null` to go on with those there are. */
  readonly ticketKeys: string | null
  readonly isWeighed: boolean
}

export interface VictimWish {
  readonly upstream: string
  readonly limits?: Partial<ListenerLimits>
  readonly settings?: Partial<WorkerSettings>
  readonly keyPairs?: readonly KeyPair[]
  readonly ticketKeys?: Buffer
}

export async function startVictim(t: Test, wish: VictimWish): Promise<Victim> {
  const { upstream, limits = {}, keyPairs = [await goodPair()], ticketKeys = randomBytes(48) } = wish
  const base = workerSettings({
    upstreams: [upstreamSettings(upstream)],
    plainListen: { host: '127.0.0.1', port: 0 },
    ...wish.settings,
  })
  const settings = { ...base, limits: { ...base.limits, ...limits } }
  const plan: VictimPlan = { settings, keyPairs, ticketKeys: ticketKeys.toString('hex') }
  const child = fork(PROCESS, [JSON.stringify(plan)], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', (text) => (said += text))
  let isOver = false
  endWith(t, child)
  t.teardown(() => (isOver = true))
  const end = Promise.withResolvers<never>()
  end.promise.catch(() => undefined)
  child.on('exit', (code, signal) => {
    const message = `the worker has ended (${signal ?? code}): ${said}`
    if (!isOver) t.fail(message)
    end.reject(new Error(message))
  })
  const answer = async () => (await Promise.race([once(child, 'message'), end.promise]))[0]
  const { port, plainPort }: Ready = await answer()
  const order = (order: Order): Promise<Reading> => {
    child.send(order)
    return answer()
  }
  return {
    port,
    plainPort,
    read: (isWeighed = true) => order({ ticketKeys: null, isWeighed }),
    rotate: async (keys) => void (await order({ ticketKeys: keys.toString('hex'), isWeighed: false })),
    async settles(metric, value) {
      for (let left = SETTLE_TRIES; ; left--) {
        const { metrics } = await order({ ticketKeys: null, isWeighed: false })
        const found = metrics[metric]!
        if (typeof value === 'number' ? found === value : found > value.above) return
        if (left === 0) assert.fail(`${metric} is ${found} and not ${JSON.stringify(value)}`)
        await new Promise((resolve) => setTimeout(resolve, 25))
      }
    },
  }
}

/** Another client, which sends one request after another during the attack, on its own connections. */
export interface Witness {
  /** How many answers it had; fails when it got another than it had to. */
  leave(): Promise<number>
}

export function startWitness(port: number): Witness {
  let isLeaving = false
  const asking = (async () => {
    let answers = 0
    for (; !isLeaving || answers === 0; answers++) {
      assert.equal(await ask(port), 'ok')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return answers
  })()
  asking.catch(() => undefined) // heard of when it leaves
  return {
    leave() {
      isLeaving = true
      return asking
    },
  }
}

async function ask(port: number): Promise<string> {
  const outgoing = request({
    port,
    host: '127.0.0.1',
    path: '/witness',
    rejectUnauthorized: false,
    agent: false,
    timeout: 20_000,
  })
  outgoing.on('timeout', () => outgoing.destroy(new Error('the witness waits in vain'))).end()
  const [response] = await once(outgoing, 'response')
  let text = ''
  for await (const chunk of response) text += chunk
  return response.statusCode === 200 ? text : `${response.statusCode} ${text}`
}

const PROCESS = new URL('victim-process.ts', import.meta.url)
const SETTLE_TRIES = 400

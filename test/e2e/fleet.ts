import assert from 'node:assert/strict'
import { Agent, get, request } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { Test } from 'tap'
import { services, USUAL } from '../services/services.ts'
import { freshUrl } from '../store/databases.ts'
import { until } from '../until.ts'
import { type App, startApp } from './app.ts'
import { folderFor, freshBusName } from './engines.ts'
import { type RunningGatehouse, type ServingProcess, startGatehouse, startProcess } from './gatehouse.ts'

export interface FleetPlace {
  /** Of NATS, and of PostgreSQL, as its parts reach them. */
  readonly nats: string
  readonly postgres: string
  readonly bus: string
  /** The errors that the test brings about. */
  readonly expects?: RegExp
}

/** With what `variables` say beside it. */
export function startManager(
  t: Test,
  { nats, postgres, bus, expects }: FleetPlace,
  variables: NodeJS.ProcessEnv = {},
): Promise<ServingProcess> {
  const folder = folderFor(t, 'manager')
  return startProcess(t, ['manage', '--manage', '127.0.0.1:0', '--data', folder], {
    folder,
    ...(expects === undefined ? {} : { expects }),
    variables: {
      GATEHOUSE_BUS_URL: nats,
      GATEHOUSE_BUS_NAME: bus,
      GATEHOUSE_BUS_SIGHTINGS_BYTES: '64MiB',
      GATEHOUSE_STORE_URL: postgres,
      GATEHOUSE_STORE_ENCRYPTION_KEY: 'a key that managers of a test have',
      GATEHOUSE_ADMIN_KEY: ADMIN_KEY,
      ...variables,
    },
  })
}

/** With what `variables` say beside it. */
export function startFleetProxy(
  t: Test,
  { nats, bus, expects }: Omit<FleetPlace, 'postgres'>,
  upstream: string,
  data: string,
  variables: NodeJS.ProcessEnv = {},
): Promise<RunningGatehouse> {
  return startGatehouse(t, {
    upstream,
    argv: ['--data', data],
    ...(expects === undefined ? {} : { expects }),
    variables: { GATEHOUSE_BUS_URL: nats, GATEHOUSE_BUS_NAME: bus, ...variables },
  })
}

export async function asked(
  { manage }: Pick<ServingProcess, 'manage'>,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<ReturnType<typeof JSON.parse>> {
  const response = await fetch(`${manage}${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const answer = JSON.parse(await response.text())
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${JSON.stringify(answer)}`)
  return answer
}

/** One request on a connection of its own; what the app was told of the client. */
export async function requested(
  { port, ca }: RunningGatehouse,
  path: string,
  agent: Agent | false = false,
): Promise<{ readonly status: number; readonly headers: Record<string, string> }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: 'localhost', port, path, ca, agent, headers: { 'user-agent': 'probe' } })
    sent.on('error', reject).on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode!, headers: JSON.parse(text) }))
    })
    sent.end()
  })
}

/** The same where it may not be the app that answers. */
export async function statusOf({ port, ca }: RunningGatehouse, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ host: 'localhost', port, path, ca, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    }).on('error', reject)
  })
}

/** How many requests the managers have counted. */
export async function counted(manager: ServingProcess): Promise<number> {
  return (await asked(manager, 'GET', '/v1/stats?window=24h'))['detection'].requests
}

export function eventually(holds: () => Promise<boolean>): Promise<void> {
  // What is away for a while answers later.
  return until(() => holds().catch(() => false), EVENTUALLY_MS)
}

export interface Load {
  /** Resolves when the condition holds, and rejects as soon as a request fails. */
  until(holds: () => Promise<boolean>): Promise<void>
  /** Resolves to the number of requests that were sent. */
  stop(): Promise<number>
}

/** Some requests a second at each, on connections that stay; all of them have to be answered, and in time. */
export function startLoad(proxies: readonly RunningGatehouse[]): Load {
  let isStopped = false
  let sent = 0
  const run = async (proxy: RunningGatehouse) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (!isStopped) {
      const startedMs = performance.now()
      const { status } = await requested(proxy, '/', agent)
      assert.equal(status, 200)
      sent++
      assert.ok(performance.now() - startedMs < SLOW_MS, 'no request waits for what is away')
      await wait(4)
    }
    agent.destroy()
  }
  const running = Promise.all(proxies.map(run))
  const failed = new Promise<never>((_, reject) => running.catch(reject))
  failed.catch(() => undefined)
  return {
    until: (holds) => Promise.race([failed, eventually(holds)]),
    async stop() {
      isStopped = true
      await running
      return sent
    },
  }
}

export const ADMIN_KEY = 'the key of the operator of this test'
/** Longer than a busy machine takes; what waits for a server that is away waits longer. */
const SLOW_MS = 2_000
/** Less than the time that a test file has. */
const EVENTUALLY_MS = 180_000

/** On the NATS and the PostgreSQL of this machine. */
export async function sharedPlace(t: Test): Promise<FleetPlace> {
  return { nats: NATS, postgres: await freshUrl('postgres', t), bus: await freshBus(t) }
}

async function freshBus(t: Test): Promise<string> {
  const bus = freshBusName()
  t.teardown(async () => {
    const client = await connect({ servers: NATS })
    const { streams } = await jetstreamManager(client, { checkAPI: false })
    for await (const { config } of streams.list())
      if (config.name.includes(bus)) await streams.delete(config.name)
    await client.close()
  })
  return bus
}

/** Tells what it is told. */
export function echoApp(t: Test): Promise<App> {
  return startApp(t, {
    '/': ({ headers }, response) => void response.end(JSON.stringify(headers)),
    '/last': (_, response) => void response.end('{}'),
    ...Object.fromEntries(Array.from({ length: 30 }, (_, each) => [`/${each}`, answerEmpty])),
  })
}

function answerEmpty(_: unknown, response: { end(text: string): unknown }): void {
  response.end('{}')
}

/** The database is unreachable, and every user of it reports that. */
export const OF_A_LOST_DATABASE = /STORE_|cannot be stored|database|ECONNREFUSED|tidied up/
const NATS = services().nats ?? USUAL.nats

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import pg from 'pg'
import { createLogTo } from '../../src/shared/log.ts'
import { readAnnouncement } from '../../src/plane/announcement.ts'
import { writeHeartbeat } from '../../src/plane/heartbeat.ts'
import { JetStreamProxyBus } from '../../src/plane/jetstream/jetstream-bus.ts'
import { SightingSource } from '../manage/sightings.ts'
import { simulateHour } from './hour.ts'

/**
 * A fleet on this machine: `gatehouse manage` as it is, the NATS and PostgreSQL there are, and proxies that are
 * simulated. Some are whole: they follow Snapshots as a proxy does, each with its folder. The others have a connection,
 * hear announcements, and say how they are. Tells how long an accepted signature takes to all of them, and how many
 * Sightings a second come from the proxies' end of the bus into the database.
 * `npm run simulate -- fleet [--proxies 10000] [--whole 200] [--rounds 20] [--seconds 20] [--managers 1]`; `-- hour`: see hour.ts.
 */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      proxies: { type: 'string', default: '200' },
      whole: { type: 'string', default: '200' },
      rounds: { type: 'string', default: '20' },
      seconds: { type: 'string', default: '20' },
      managers: { type: 'string', default: '1' },
    },
    allowPositionals: true,
  })
  if (positionals[0] !== 'fleet') throw new Error('simulate fleet or hour')
  const proxies = Number(values.proxies)
  const whole = Math.min(proxies, Number(values.whole))
  await withPlace(async (place) => {
    const managers = await Promise.all(
      Array.from({ length: Number(values.managers) }, (_, number) => startManager(place, number)),
    )
    const fleet = await startProxies(place, proxies, whole)
    await until(async () => (await ask(place, 'GET', '/v1/fleet')).proxies?.total >= proxies)
    say(`${proxies} proxies are there, ${whole} of them whole; ${managers.length} managers`)
    await measureChanges(place, fleet, Number(values.rounds))
    await measureSightings(place, Number(values.seconds), managers)
    await fleet.close()
  })
}

/** From the moment that a review is asked for to when the last proxy has what it decides. */
async function measureChanges(place: Place, fleet: SimulatedFleet, rounds: number): Promise<void> {
  const all: number[] = []
  const last: number[] = []
  for (let round = 0; round < rounds; round++) {
    const submission = {
      fingerprint: FINGERPRINT,
      type: 'ja4',
      agent_name: `Bot ${round}`,
      category: 'custom',
    }
    const [{ id }] = (await ask(place, 'POST', '/v1/signatures/submit', submission)).submissions
    for (const decision of ['accept', 'rollback']) {
      const heard = fleet.next()
      const startedMs = performance.now()
      await ask(place, 'POST', `/v1/submissions/${id}/review`, { decision })
      const times = (await heard).map((atMs) => atMs - startedMs).sort((a, b) => a - b)
      all.push(...times)
      last.push(times.at(-1)!)
      await wait(500)
    }
  }
  all.sort((a, b) => a - b)
  last.sort((a, b) => a - b)
  say(
    `accepted to in use, ms: median ${at(all, 0.5)}, p99 ${at(all, 0.99)}; the last proxy of a change: median ` +
      `${at(last, 0.5)}, worst ${at(last, 1)} (${last.length} changes)`,
  )
}

async function measureSightings(
  place: Place,
  seconds: number,
  managers: readonly ChildProcess[],
): Promise<void> {
  const log = createLogTo('error', process.stderr)
  const senders = Array.from({ length: SENDERS }, (_, number) => {
    const folder = join(place.folder, `sender-${number}`)
    return new JetStreamProxyBus(place.bus, `sender${number}`, { folder }, log)
  })
  await until(async () => senders.every(({ connection }) => connection.isUp))
  const source = new SightingSource(Date.now() - 3_600_000, 0)
  const before = await stored(place)
  const cpuBefore = cpuOf(managers)
  const startedMs = performance.now()
  let sent = 0
  let refused = 0
  let storedByNow = before
  const looking = setInterval(async () => {
    storedByNow = await stored(place).catch(() => storedByNow)
  }, LOOK_MS)
  await Promise.all(
    senders.map(async (bus) => {
      while (performance.now() - startedMs < seconds * 1000) {
        const batch = source.batch(BATCH)
        // No proxy is ahead of the database for long: waiting Sightings do not count as throughput.
        while (sent - (storedByNow - before) > AHEAD_MAX) await wait(20)
        try {
          await bus.sendSightings(batch)
          sent += batch.length
        } catch {
          refused += batch.length
        }
      }
    }),
  )
  clearInterval(looking)
  const sentMs = performance.now() - startedMs
  await until(async () => (await stored(place)) - before >= sent)
  const storedMs = performance.now() - startedMs
  const cpu = cpuOf(managers) - cpuBefore
  say(`sent ${Math.round((sent / sentMs) * 1000)} Sightings a second, ${refused} refused`)
  say(
    `stored ${Math.round((sent / storedMs) * 1000)} a second, ${Math.round(sent / cpu)} for each second of processor ` +
      `time of the managers`,
  )
  const { reason, total } = await ask(place, 'GET', '/v1/stats?window=24h').then(({ detection }) => {
    return {
      reason: detection.requests - before === sent ? 'each once' : 'NOT each once',
      total: detection.requests,
    }
  })
  say(`counted ${total}: ${reason}`)
  await Promise.all(senders.map((bus) => bus.closed()))
}

async function stored(place: Place): Promise<number> {
  return (await ask(place, 'GET', '/v1/stats?window=24h')).detection.requests
}

interface SimulatedFleet {
  /** When each of them has the Snapshot that is announced next. */
  next(): Promise<number[]>
  close(): Promise<void>
}

async function startProxies(place: Place, count: number, whole: number): Promise<SimulatedFleet> {
  const log = createLogTo('error', process.stderr)
  const buses: JetStreamProxyBus[] = []
  const clients: NatsConnection[] = []
  let heard: number[] = []
  let done: (times: number[]) => void = () => undefined
  const hear = () => {
    heard.push(performance.now())
    if (heard.length === count) done(heard)
  }
  for (let number = 0; number < count; number++) {
    const id = `proxy${number}`
    if (number < whole) {
      const folder = join(place.folder, id)
      const bus = new JetStreamProxyBus(place.bus, id, { folder }, log)
      bus.onSnapshot(hear)
      buses.push(bus)
    } else {
      const client = await connect({ servers: place.bus.urls[0]!, name: id })
      client.subscribe(`${place.bus.name}.announced`, {
        callback: (_, message) => {
          readAnnouncement(Buffer.from(message.data))
          hear()
        },
      })
      clients.push(client)
    }
    if (number % 500 === 499) say(`${number + 1} connections`)
  }
  const beat = () => {
    for (const [number, bus] of buses.entries()) bus.sendHeartbeat(heartbeatOf(`proxy${number}`))
    for (const [number, client] of clients.entries()) {
      const id = `proxy${number + whole}`
      client.publish(`${place.bus.name}.heartbeat.${id}`, writeHeartbeat(heartbeatOf(id)))
    }
  }
  await until(async () =>
    buses.every(({ connection, followed }) => connection.isUp && followed.inUse !== null),
  )
  beat()
  const beating = setInterval(beat, BEAT_MS)
  return {
    next: () => {
      heard = []
      return new Promise((resolve) => {
        done = resolve
      })
    },
    async close() {
      clearInterval(beating)
      await Promise.all([...buses.map((bus) => bus.closed()), ...clients.map((client) => client.close())])
    },
  }
}

function heartbeatOf(id: string) {
  return {
    ...{
      id,
      host: 'simulated',
      version: '0.1.0',
      configHash: '0'.repeat(64),
      startedAtMs: 0,
      everyMs: BEAT_MS,
    },
    ...{ snapshot: null, source: 'bus' as const, refused: null, workers: [] },
    ...{ sightings: { waiting: 0, dropped: 0 }, isLast: false },
  }
}

interface Place {
  readonly folder: string
  readonly postgres: string
  readonly bus: ConstructorParameters<typeof JetStreamProxyBus>[0]
}

async function withPlace(run: (place: Place) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-simulate-'))
  const name = `simulate_${randomBytes(4).toString('hex')}`
  const url = new URL(POSTGRES)
  url.pathname = `/${name}`
  const bus = {
    ...{ urls: [NATS], name, credentialsFile: null, user: null, password: null, token: null },
    tls: { caFile: null, certificateFile: null, keyFile: null },
  }
  await inServer(`create database ${name}`)
  try {
    await run({ folder, postgres: url.href, bus })
  } finally {
    for (const child of CHILDREN) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await inServer(`drop database ${name} with (force)`)
    const client = await connect({ servers: NATS })
    const { streams } = await jetstreamManager(client, { checkAPI: false })
    for await (const { config } of streams.list())
      if (config.name.includes(name)) await streams.delete(config.name)
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startManager(place: Place, number: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['src/bin.js', 'manage', '--manage', `127.0.0.1:${PORT + number}`], {
    env: {
      PATH: process.env['PATH'],
      GATEHOUSE_DATA_DIR: join(place.folder, `manager-${number}`),
      GATEHOUSE_BUS_URL: NATS,
      GATEHOUSE_BUS_NAME: place.bus.name,
      GATEHOUSE_STORE_URL: place.postgres,
      GATEHOUSE_STORE_ENCRYPTION_KEY: 'a key that is for a simulation',
      GATEHOUSE_ADMIN_KEY: ADMIN_KEY,
      GATEHOUSE_LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  CHILDREN.push(child)
  await until(async () => (await fetch(`http://127.0.0.1:${PORT + number}/health/ready`)).ok)
  await until(async () => (await ask(place, 'GET', '/v1/fleet')).snapshot !== null)
  return child
}

// What it answers is read as it is: this is a bench.
async function ask(_: Place, method: string, path: string, body?: unknown) {
  const response = await fetch(`http://127.0.0.1:${PORT}${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const answer = JSON.parse(await response.text())
  if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
  return answer
}

async function inServer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: POSTGRES })
  await client.connect()
  await client.query(statement)
  await client.end()
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds().catch(() => false))) await wait(100)
}

/** Seconds of processor time, user and system, of all its threads. */
function cpuOf(children: readonly ChildProcess[]): number {
  return children.reduce((all, { pid }) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
    return all + (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  }, 0)
}

function at(sorted: readonly number[], share: number): number {
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!)
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

const CHILDREN: ChildProcess[] = []
const POSTGRES = process.env['GATEHOUSE_TEST_POSTGRES'] ?? 'postgres://root@127.0.0.1:5432/test'
const NATS = process.env['GATEHOUSE_TEST_NATS'] ?? 'nats://127.0.0.1:4222'
const ADMIN_KEY = 'the key of the operator of this simulation'
const PORT = 19_480
const FINGERPRINT = 't13d1516h2_8daaf6152771_0123456789ab'
const SENDERS = 8
const BATCH = 512
const AHEAD_MAX = 100_000
const LOOK_MS = 300
const BEAT_MS = 10_000
const TICKS_PER_SECOND = 100

if (process.argv[2] === 'hour') await simulateHour(process.argv.slice(3))
else await main()

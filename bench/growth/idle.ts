import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { CONTENDERS, listening, makePlace, pinned, startApp, startGatehouse } from '../load/contenders.ts'
import { usage } from '../load/loads.ts'
import { table } from '../load/table.ts'

/**
 * `npm run bench:idle [-- --connections N --only NAME --before FOLDER]`: the resident memory of a TLS connection that has had
 * one answer and waits: what N connections take beyond the first fifth of them. `--before` adds a version built in FOLDER.
 */
const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '5000' },
    only: { type: 'string', default: '' },
    before: { type: 'string' },
  },
})
const most = Number(values.connections)
const few = Math.floor(most / 5)
const PORT = 18_443
const KIB = 1024
const folder = mkdtempSync(join(tmpdir(), 'idle-'))
const place = makePlace(folder, 18_080)
const config = join(folder, 'gatehouse.json')
const limits = { connections_max: 50_000, connections_per_address: 50_000, keep_alive_timeout: '60m' }
writeFileSync(config, JSON.stringify({ proxy: { limits } }))

interface Server {
  readonly name: string
  readonly start: () => ChildProcess
}

function gatehouse(name: string, env: Readonly<Record<string, string>>, program?: string): Server {
  const args = ['--config', config]
  return {
    name,
    start: () => startGatehouse(place, PORT, { args, env, ...(program !== undefined && { program }) }),
  }
}

const TLS_FLOOR = new URL('tls-floor.ts', import.meta.url).pathname
const nodeTls = (name: string, env: Readonly<Record<string, string>>): Server => {
  const args = ['--max-semi-space-size=16', TLS_FLOOR, String(PORT), place.certificate, place.key]
  return { name, start: () => pinned(place.processor, process.execPath, args, env) }
}
const SMALL_PAGES = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=0' }
const LARGE_PAGES = { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' }
const nginx = CONTENDERS.find(({ name }) => name === 'nginx')!
const servers: readonly Server[] = [
  gatehouse('gatehouse', {}),
  gatehouse('gatehouse, small pages', SMALL_PAGES),
  gatehouse('gatehouse, node:http2', { GATEHOUSE_PROXY_HTTP2: 'node' }),
  ...(values.before === undefined
    ? []
    : [gatehouse('gatehouse, before', {}, join(values.before, 'dist/bin.js'))]),
  nodeTls('node:tls without HTTP', LARGE_PAGES),
  nodeTls('node:tls without HTTP, small pages', SMALL_PAGES),
  { name: 'nginx', start: () => nginx.start(place, PORT)! },
]

const app = startApp(place)
try {
  const rows = new Map<string, Readonly<Record<'h1' | 'h2', number>>>()
  for (const server of servers.filter(({ name }) => name.includes(values.only)))
    rows.set(server.name, { h1: await measure(server, 'h1'), h2: await measure(server, 'h2') })
  process.stdout.write(
    table(
      `idle connection, ${most} of them`,
      [
        ['h1, KiB', ({ h1 }) => h1.toFixed(1)],
        ['h2, KiB', ({ h2 }) => h2.toFixed(1)],
      ],
      rows,
    ),
  )
} finally {
  app.kill()
  await once(app, 'exit')
  rmSync(folder, { recursive: true, force: true })
}

async function measure({ start }: Server, protocol: 'h1' | 'h2'): Promise<number> {
  const server = start()
  const program = new URL('waiting-connections.ts', import.meta.url).pathname
  let clients: ChildProcess | null = null
  try {
    await listening(PORT)
    clients = spawn(process.execPath, [program, String(PORT), String(few), protocol], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    await once(clients.stdout!, 'data')
    const before = await resident(server)
    clients.stdin!.write(`${most}\n`)
    await once(clients.stdout!, 'data')
    return ((await resident(server)) - before) / (most - few) / KIB
  } finally {
    for (const child of [clients, server]) {
      if (child === null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  }
}

/** Once the process has nothing left to do. */
async function resident({ pid }: ChildProcess): Promise<number> {
  for (let quiet = 0; quiet < 4; ) {
    const before = usage(pid!).cpuSeconds
    await sleep(500)
    quiet = usage(pid!).cpuSeconds - before > 0.05 ? 0 : quiet + 1
  }
  return usage(pid!).rssBytes
}

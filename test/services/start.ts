import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SERVICES_FILE, type Services, USUAL } from './services.ts'

/**
 * tap runs this before the tests: it finds the servers they talk to, or starts them, and writes down where they are.
 * PostgreSQL comes with the development packages; NATS is started where nats-server is installed. What is started ends
 * with the test run, however that ends.
 */
async function start(): Promise<void> {
  rmSync(SERVICES_FILE, { force: true })
  const found: Services = {
    postgres: (await isListening(USUAL.postgres)) ? USUAL.postgres : await started('postgres-server.ts'),
    nats: await nats(),
  }
  mkdirSync(dirname(SERVICES_FILE), { recursive: true })
  writeFileSync(SERVICES_FILE, `${JSON.stringify(found)}\n`)
}

async function nats(): Promise<string | null> {
  if (await isListening(USUAL.nats)) return USUAL.nats
  const isInstalled = spawnSync('nats-server', ['--version'], { stdio: 'ignore' }).status === 0
  return isInstalled ? started('nats-server.ts') : null
}

/** Resolves to the URL that the program prints once its server takes connections. */
async function started(program: string): Promise<string> {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [path, String(process.ppid)], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let url = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    url += text
  })
  await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])
  if (url === '') throw new Error(`${path} ended without a server: see the lines above`)
  child.stdout.destroy()
  child.unref()
  return url.trim()
}

async function isListening(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  const isOpen = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false)
  socket.destroy()
  return isOpen
}

await start()

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface ServerCommand {
  readonly program: string
  readonly argv: readonly string[]
  readonly uid?: number | undefined
  /** What the server prints on standard error once it takes connections. */
  readonly ready: string
}

/**
 * Runs a server in a folder of its own for as long as the process `ownerPid` lives, prints its URL when it takes
 * connections, and removes the folder afterwards.
 */
export async function serveFor(
  ownerPid: number,
  url: (port: number) => string,
  command: (folder: string, port: number) => ServerCommand,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-server-'))
  let server: ChildProcess | null = null
  try {
    const port = await freePort()
    const { program, argv, uid, ready } = command(folder, port)
    server = spawn(program, argv, { uid, stdio: ['ignore', 'ignore', 'pipe'] })
    const exited = once(server, 'exit')
    await heard(server, ready)
    process.stdout.write(`${url(port)}\n`)
    while (isAlive(ownerPid) && server.exitCode === null) await Promise.race([exited, oneLook()])
  } finally {
    if (server !== null && server.exitCode === null) {
      server.kill('SIGQUIT')
      await once(server, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A server that ends before it is ready has said why. */
async function heard(server: ChildProcess, wanted: string): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    server.stderr!.setEncoding('utf8').on('data', (text: string) => {
      if (said.includes(wanted)) return
      said += text
      if (said.includes(wanted)) resolve()
    })
    server.once('error', reject)
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}:\n${said}`)))
  })
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

const LOOK_MS = 500
function oneLook(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LOOK_MS))
}

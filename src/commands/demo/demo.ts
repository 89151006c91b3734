import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogTo } from '../../shared/log.ts'
import type { CommandAction, Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { serve } from '../../runtime/serve.ts'
import { Demo } from './running-demo.ts'

export const demo: CommandAction = {
  name: 'demo',
  summary: 'Run a demo: an app, the gateway in front of it, clients, and the dashboard',
  description: [
    'Starts a small app, a gateway in front of it with a development certificate, and a few clients: real programs, each started and stopped by a key. Prints the addresses of the app and the dashboard, a link that signs in, and commands to try.',
    'Everything listens on this machine only. Its data is in a temporary folder, which is removed at the end: after q, Ctrl-C, or a signal.',
  ],
  operands: [],
  options: [
    {
      name: 'listen',
      value: 'PORT',
      description: 'Where the gate is, on this machine (default: 8443, or the next one that is free)',
    },
    {
      name: 'manage',
      value: 'PORT',
      description: 'Where the dashboard is (default: 9080, or the next one that is free)',
    },
    { name: 'no-clients', description: 'Start no clients' },
  ],
  examples: [
    { command: 'demo', description: 'Runs until you type q' },
    { command: 'demo --no-clients', description: 'To send your own requests' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const folder = join(tmpdir(), `gatehouse-demo-${randomBytes(6).toString('hex')}`)
  // At exit, however the demo ends: processes that are still starting may write there until then.
  process.once('exit', () => {
    for (let tries = 0; tries < 10; tries++) {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
      // A process that is ending may still hold a file open.
      Atomics.wait(NEVER, 0, 0, PAUSE_MS)
      if (!existsSync(folder)) return
    }
  })
  // Errors only: `serve` already announces start and end on the screen.
  const log = createLogTo('error', { write: (line) => void io.stderr.write(line) })
  const settings = {
    folder,
    adminKey: `ghk_${randomBytes(32).toString('base64url')}`,
    listen: given.value('listen'),
    manage: given.value('manage'),
    hasClients: !given.flag('no-clients'),
  }
  if (io.isTerminal) io.stdout.write('Starting a small app, the gateway in front of it and a few clients …\n')
  return serve(() => Demo.start(settings, io), [], log)
}

const NEVER = new Int32Array(new SharedArrayBuffer(4))
const PAUSE_MS = 20

import { createLog, type Log } from '../log.ts'
import type { Command, ExitCode } from './command.ts'
import type { Io } from './io.ts'
import { Manager, type ManagerSettings } from './manager.ts'
import { Orders } from './orders.ts'
import { managerSettings } from './startup.ts'

export const manage: Command = {
  name: 'manage',
  summary: 'Run the management plane alone, for proxies elsewhere',
  description: [
    'The API, statistics and webhooks on PostgreSQL, for proxies that are reached by way of NATS (bus.url). Any number ' +
      'may run on the same database: each answers, and one leads, which makes what proxies judge by.',
    'SIGHUP loads files anew. SIGTERM and SIGINT let open requests end; a second one ends at once.',
  ],
  operands: [],
  options: [
    {
      name: 'manage',
      value: 'HOST:PORT',
      description: 'Where it listens (default: 127.0.0.1:9080)',
    },
    { name: 'data', value: 'DIRECTORY', description: 'The folder for what has to last (default: ./data)' },
    { name: 'policy', value: 'FILE', description: 'The rules, the same for all managers' },
    {
      name: 'config',
      value: 'FILE',
      description:
        'All settings, in YAML or JSON; GATEHOUSE_CONFIG names it too. Flags are stronger, GATEHOUSE_* next',
    },
  ],
  examples: [{ command: 'manage --config fleet.yaml', description: 'One of several' }],
  run: async (given, io) => {
    const flags = {
      manage: given.values('manage'),
      data: given.values('data'),
      policy: given.values('policy'),
    }
    const { settings, warnings } = await managerSettings(flags, given.value('config'), io)
    return serve(settings, warnings, io)
  },
}

async function serve(settings: ManagerSettings, warnings: readonly string[], io: Io): Promise<ExitCode> {
  const log = createLog(settings.logLevel)
  for (const warning of warnings) log.warn('a setting is risky', { warning })
  const orders = new Orders()
  try {
    const starting = Manager.start(settings, log)
    const manager = await Promise.race([starting, orders.stop.then(() => null)])
    if (manager === null) {
      log.info('stopped before it was ready')
      starting.catch(() => undefined)
      return 0
    }
    orders.reload = () => void manager.reload()
    sayReady(manager, log, io)
    const signal = await orders.stop
    const graceMs = signal === 'SIGINT' ? 0 : GRACE_MS
    log.info('stopping', { signal, graceMs })
    await manager.stop(graceMs)
    log.info('stopped')
    return 0
  } finally {
    orders.close()
    log.flush()
    setTimeout(() => process.exit(), LEAVE_MS).unref()
  }
}

function sayReady({ settings, address }: Manager, log: Log, io: Io): void {
  const place = `${address.host}:${address.port}`
  if (io.isTerminal) io.stdout.write(`The management plane listens on ${place}.\n`)
  log.info('ready', { version: settings.version, manage: place, bus: settings.bus.urls })
}

/** Load balancers that look every second or two have seen by then that it is not ready. */
const GRACE_MS = 5_000
/** For an output that somebody reads slowly. */
const LEAVE_MS = 200

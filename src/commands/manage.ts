import { checkListenPlaces } from '../runtime/listen-check.ts'
import { createLog, type Log } from '../shared/log.ts'
import type { Command, ExitCode } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { Manager, type ManagerSettings } from '../runtime/manager.ts'
import { GRACE_MS, type Running, serve } from '../runtime/serve.ts'
import { managerSettings } from '../runtime/startup.ts'

export const manage: Command = {
  name: 'manage',
  summary: 'Run the management plane alone, for proxies elsewhere',
  description: [
    'Serves the API, statistics and webhooks on PostgreSQL, for proxies connected through NATS (bus.url). Any number of ' +
      'managers may share one database: each answers requests, and one of them leads and makes the Snapshots.',
    'SIGHUP reloads files. SIGTERM and SIGINT let open requests finish; a second signal stops at once.',
  ],
  operands: [],
  options: [
    {
      name: 'manage',
      value: 'HOST:PORT',
      description: 'Where it listens (default: 127.0.0.1:9080)',
    },
    { name: 'data', value: 'DIRECTORY', description: 'The folder for persistent data (default: ./data)' },
    { name: 'policy', value: 'FILE', description: 'The policy file, the same for all managers' },
    {
      name: 'config',
      value: 'FILE',
      description:
        'The configuration in YAML or JSON (or GATEHOUSE_CONFIG). Flags override GATEHOUSE_* variables, which override the file',
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
    return serveManager(settings, warnings, io)
  },
}

async function serveManager(
  settings: ManagerSettings,
  warnings: readonly string[],
  io: Io,
): Promise<ExitCode> {
  const log = createLog(settings.log)
  const start = async (): Promise<Running> => {
    await checkListenPlaces([{ place: settings.listen, by: '--manage' }])
    const manager = await Manager.start(settings, log)
    return {
      graceMs: GRACE_MS,
      sayReady: () => sayReady(manager, log, io),
      reload: () => void manager.reload(),
      stop: (graceMs) => manager.stop(graceMs),
      kill: () => undefined, // all state is in the database
    }
  }
  return serve(start, warnings, log)
}

function sayReady(manager: Manager, log: Log, io: Io): void {
  const { settings, address } = manager
  const unready = manager.unready().map(({ code }) => code)
  const place = `${address.host}:${address.port}`
  if (io.isTerminal) io.stdout.write(`The management plane listens on ${place}.\n`)
  log.info('ready', {
    version: settings.version,
    manage: place,
    bus: settings.bus.urls,
    ...(unready.length > 0 && { unready }),
  })
}

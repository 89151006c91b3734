import { banner } from './banner.ts'
import type { Command } from '../terminal/command.ts'
import { CONFIG_OPTIONS } from '../terminal/config-options.ts'
import { serveGateway } from '../runtime/serve-gateway.ts'
import { startupSettings } from '../runtime/startup.ts'

export const proxy: Command = {
  name: 'proxy',
  summary: 'Run the data plane alone, as a sidecar or behind another management plane',
  description: [
    'What "up" does without the management plane, but for the listener that answers probes and scrapers. With one ' +
      'worker, which is the default, everything is in one process.',
    'With bus.url it is one of a fleet: managers elsewhere say by NATS what it judges by, and hear what it has seen.',
  ],
  operands: [],
  options: CONFIG_OPTIONS,
  examples: [
    { command: 'proxy --upstream unix:/run/app.sock', description: 'Beside an app that listens on a socket' },
    { command: 'proxy --upstream http://localhost:3000 --workers 2', description: 'In two processes' },
    { command: 'proxy --config sidecar.yaml', description: 'One of a fleet, with bus.url in the file' },
  ],
  run: async (given, io) => {
    const { settings, warnings } = await startupSettings(given, io, 'proxy', 1)
    const workers = settings.workers === 1 ? null : settings.workers
    return serveGateway({ ...settings, workers }, warnings, io, banner)
  },
}

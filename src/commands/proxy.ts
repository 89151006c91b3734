import { banner } from './banner.ts'
import type { Command } from '../terminal/command.ts'
import { CONFIG_OPTIONS } from '../terminal/config-options.ts'
import { serveGateway } from '../runtime/serve-gateway.ts'
import { startupSettings } from '../runtime/startup.ts'

export const proxy: Command = {
  name: 'proxy',
  summary: 'Run the data plane alone, as a sidecar or behind another management plane',
  description: [
    'Like "up" without the management plane; the management port serves only probes and metrics. With one worker, the default, everything runs in one process.',
    'With bus.url it joins a fleet: it receives the policy and signatures from managers over NATS, and sends them its Sightings.',
  ],
  operands: [],
  options: CONFIG_OPTIONS,
  examples: [
    { command: 'proxy --upstream unix:/run/app.sock', description: 'Beside an app that listens on a socket' },
    { command: 'proxy --upstream http://localhost:3000 --workers 2', description: 'With two workers' },
    { command: 'proxy --config sidecar.yaml', description: 'A proxy of a fleet, with bus.url in the file' },
  ],
  run: async (given, io) => {
    const { settings, warnings } = await startupSettings(given, io, 'proxy', 1)
    const workers = settings.workers === 1 ? null : settings.workers
    return serveGateway({ ...settings, workers }, warnings, io, banner)
  },
}

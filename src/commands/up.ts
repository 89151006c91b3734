import { banner } from './banner.ts'
import type { Command } from '../terminal/command.ts'
import { CONFIG_OPTIONS } from '../terminal/config-options.ts'
import { serveGateway } from '../runtime/serve-gateway.ts'
import { startupSettings } from '../runtime/startup.ts'

export const up: Command = {
  name: 'up',
  summary: 'Run the gateway: proxy workers and the management plane',
  description: [
    'Terminates TLS, identifies the agent behind each request, applies the policy, and forwards to the upstream. Proxy workers run as separate processes; this process supervises them and serves the management port.',
    'Without --cert and --key it makes a development CA and a certificate for this machine, and keeps them in the data folder. Every option is also a variable (GATEHOUSE_PROXY_LISTEN) and a setting of the configuration file.',
    'Reloads certificates and policy when their files change, and on SIGHUP. SIGTERM and SIGINT let open requests finish; a second signal stops at once.',
  ],
  operands: [],
  options: CONFIG_OPTIONS,
  examples: [
    { command: 'up --upstream http://localhost:3000', description: 'In front of an app, for development' },
    { command: 'up --config /etc/gatehouse.yaml', description: 'All settings from a file' },
  ],
  run: async (given, io) => {
    const { settings, warnings } = await startupSettings(given, io, 'up')
    return serveGateway(settings, warnings, io, banner)
  },
}

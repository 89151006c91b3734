import { banner } from './banner.ts'
import type { Command } from '../terminal/command.ts'
import { CONFIG_OPTIONS } from '../terminal/config-options.ts'
import { serveGateway } from '../runtime/serve-gateway.ts'
import { startupSettings } from '../runtime/startup.ts'

export const up: Command = {
  name: 'up',
  summary: 'Run the gateway: proxy workers and the management plane',
  description: [
    'Takes TLS connections, says of each request who is at the door, and forwards it to the upstream. Proxy workers ' +
      'run in processes of their own; this one watches over them and serves health and metrics.',
    'Without --cert and --key it makes a development CA and a certificate for this machine, kept in the data folder. ' +
      'Every option is also a variable (GATEHOUSE_PROXY_LISTEN) and a setting of the configuration file.',
    'SIGHUP loads certificates and policy anew, as a change of their files does. SIGTERM and SIGINT let open requests ' +
      'end; a second one ends at once.',
  ],
  operands: [],
  options: CONFIG_OPTIONS,
  examples: [
    { command: 'up --upstream http://localhost:3000', description: 'In front of an app, for development' },
    { command: 'up --config /etc/gatehouse.yaml', description: 'With everything from a file' },
  ],
  run: async (given, io) => {
    const { settings, warnings } = await startupSettings(given, io, 'up')
    return serveGateway(settings, warnings, io, banner)
  },
}

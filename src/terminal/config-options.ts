import type { ConfigFlags } from '../config/layers.ts'
import { FLAGS } from '../config/layers.ts'
import type { Arguments, Option } from './command.ts'

/** Options for settings that `up`, `proxy` and `check` share. */
export const CONFIG_OPTIONS: readonly Option[] = [
  {
    name: 'upstream',
    value: 'URL',
    description:
      'The app behind the gateway: http://HOST:PORT, https://, h2c://, h2://, unix:/PATH; may be repeated',
  },
  {
    name: 'listen',
    value: 'HOST:PORT',
    description: 'Where clients connect, with TLS (default: 0.0.0.0:8443)',
  },
  {
    name: 'manage',
    value: 'HOST:PORT',
    description: 'The management port: dashboard, API, health and metrics (default: 127.0.0.1:9080)',
  },
  { name: 'data', value: 'DIRECTORY', description: 'The folder for persistent data (default: ./data)' },
  { name: 'cert', value: 'FILE', description: 'The certificate: PEM with its chain, DER, or PKCS#12' },
  { name: 'key', value: 'FILE', description: 'Its private key, if it is in another file' },
  { name: 'workers', value: 'N', description: 'The number of worker processes' },
  { name: 'policy', value: 'FILE', description: 'The policy file' },
  {
    name: 'log-format',
    value: 'FORMAT',
    description: 'auto, text or json (default: auto, which is text on a terminal and JSON elsewhere)',
  },
  {
    name: 'config',
    value: 'FILE',
    description:
      'The configuration in YAML or JSON (or GATEHOUSE_CONFIG). Flags override GATEHOUSE_* variables, which override the file',
  },
]

export function configFlags(given: Arguments): ConfigFlags {
  const flags = Object.keys(FLAGS) as (keyof ConfigFlags)[]
  return Object.fromEntries(flags.map((flag) => [flag, given.values(flag)]))
}

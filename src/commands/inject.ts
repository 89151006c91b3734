import assert from 'node:assert/strict'
import { loadConfig } from '../config.ts'
import { createLog, type Log } from '../log.ts'
import type { Arguments, Command, ExitCode } from './command.ts'
import { InjectServer, type InjectSettings } from './inject-server.ts'
import type { Io } from './io.ts'
import { Orders } from './orders.ts'

export const inject: Command = {
  name: 'inject',
  summary: 'Put the data plane into Pods: an admission webhook of Kubernetes',
  description: [
    'Answers the API server of Kubernetes, which asks it of each new Pod with the label gatehouse.dev/inject: the Pod gets ' +
      '"gatehouse proxy" as a native sidecar. Annotations of the Pod say what is special about it.',
    'Without inject.tls.cert_file it makes its certificate itself, keeps it in a Secret, and tells the API server of it.',
  ],
  operands: [],
  options: [
    {
      name: 'listen',
      value: 'HOST:PORT',
      description: 'Where the API server connects, with TLS (default: 0.0.0.0:9443)',
    },
    {
      name: 'manage',
      value: 'HOST:PORT',
      description: 'Where health and metrics are (default: 127.0.0.1:9080)',
    },
    {
      name: 'config',
      value: 'FILE',
      description: 'All settings, in YAML or JSON; GATEHOUSE_CONFIG names it too',
    },
  ],
  examples: [
    { command: 'inject --config /etc/gatehouse/inject.yaml', description: 'As the helm chart starts it' },
  ],
  run: async (given, io) => {
    const settings = injectSettings(given, io)
    const log = createLog(settings.config.log.level)
    for (const warning of settings.warnings) log.warn('a setting is risky', { warning })
    return serve(settings, io, log)
  },
}

interface CheckedSettings extends InjectSettings {
  readonly warnings: readonly string[]
}

function injectSettings(given: Arguments, io: Io): CheckedSettings {
  const flags = { listen: given.values('listen'), manage: given.values('manage') }
  const { config, warnings } = loadConfig(flags, given.value('config'), io.env, {
    role: 'inject',
    flagSettings: { listen: '/inject/listen' },
  })
  const { image, ...sidecar } = config.inject.sidecar
  assert(image !== null)
  const risks = warnings.map(({ where, what }) => `${where}: ${what}`)
  if (sidecar.certificate === null && sidecar.configMap === null) risks.push(NO_CERTIFICATE)
  return { config, sidecar: { ...sidecar, image }, warnings: risks }
}

async function serve(settings: InjectSettings, io: Io, log: Log): Promise<ExitCode> {
  const server = new InjectServer(settings, io.env, log)
  const orders = new Orders()
  try {
    orders.kill = () => server.kill()
    orders.reload = () => server.reload()
    if (!(await server.start(orders.stop))) {
      log.info('stopped before it was ready')
      return 0
    }
    const signal = await orders.stop
    const graceMs = signal === 'SIGINT' ? 0 : GRACE_MS
    log.info('stopping', { signal, graceMs })
    await server.stop(graceMs)
    log.info('stopped')
    return 0
  } finally {
    server.kill()
    orders.close()
    log.flush()
  }
}

const NO_CERTIFICATE =
  'inject.sidecar.certificate: is not set: Pods that name none make one of their own, which no client trusts'
/** Of the Service's endpoints everybody has heard by then. */
const GRACE_MS = 5_000

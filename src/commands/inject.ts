import assert from 'node:assert/strict'
import { loadConfig } from '../config/config.ts'
import { createLog } from '../shared/log.ts'
import type { Arguments, Command, ExitCode } from '../terminal/command.ts'
import { InjectServer, type InjectSettings } from '../runtime/inject/inject-server.ts'
import type { Io } from '../terminal/io.ts'
import { GRACE_MS, type Running, serve } from '../runtime/serve.ts'

export const inject: Command = {
  name: 'inject',
  summary: 'Run the Kubernetes admission webhook that adds the proxy to Pods',
  description: [
    'Handles admission reviews of the Kubernetes API server: each new Pod with the label gatehouse.dev/inject gets "gatehouse proxy" as a native sidecar. Annotations of the Pod override its settings.',
    'Without inject.tls.cert_file it makes its own certificate, keeps it in a Secret, and registers it with the API server.',
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
    { command: 'inject --config /etc/gatehouse/inject.yaml', description: 'As the Helm chart starts it' },
  ],
  run: async (given, io) => serveInject(injectSettings(given, io), io),
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

async function serveInject(settings: CheckedSettings, io: Io): Promise<ExitCode> {
  const log = createLog(settings.config.log)
  const start = async (): Promise<Running> => {
    const server = await InjectServer.start(settings, io.env, log)
    return {
      graceMs: GRACE_MS,
      sayReady: () => server.sayReady(),
      reload: () => server.reload(),
      stop: (graceMs) => server.stop(graceMs),
      kill: () => server.kill(),
    }
  }
  return serve(start, settings.warnings, log)
}

const NO_CERTIFICATE =
  'inject.sidecar.certificate: is not set: Pods that name none make one of their own, which no client trusts'

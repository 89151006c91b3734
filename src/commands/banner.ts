import { resolve } from 'node:path'
import type { PolicyInForce } from '../manage/publish/policy-keeper.ts'
import { DASHBOARD_PATH } from '../manage/http/dashboard-path.ts'
import type { Gateway } from '../runtime/gateway.ts'
import type { GatewaySettings } from '../runtime/gateway/gateway-settings.ts'
import { type Io, paint } from '../terminal/io.ts'
import type { ListenAddress } from '../shared/listen-address.ts'

/** The start message on a terminal: addresses, upstreams, and the CA to trust. */
export function banner(gateway: Gateway, io: Io): string {
  const { settings, addresses } = gateway
  const manage = `http://${authority(gateway.manageAddress)}`
  const rows: (readonly [string, string])[] = [
    ['Listening', `https://${authority(addresses.listen)}`],
    ...(addresses.plainListen === null ? [] : [['', `http://${authority(addresses.plainListen)}`] as const]),
    ...settings.worker.upstreams.map(({ name, urls }, index) => {
      return [
        index === 0 ? 'Upstream' : '',
        `${urls.join(', ')}${name === 'default' ? '' : ` (${name})`}`,
      ] as const
    }),
    ...certificateRows(gateway),
    ['Policy', policyText(gateway.policyInForce)],
    ...managementRows(settings, manage),
    ['Health', `${manage}/health/ready`],
    ['Metrics', `${manage}/metrics`],
    ...nextSteps(settings).map(
      (step, index) => [index === 0 ? 'Next' : '', `${index + 1}. ${step}`] as const,
    ),
  ]
  const lines = rows.map(([label, text]) => `  ${label.padEnd(LABEL_WIDTH)}${text}`)
  const title = paint(io, 'bold', `Gatehouse ${settings.version} is ready`)
  return `${title} ${workersText(settings.workers)}\n${lines.join('\n')}\n`
}

function certificateRows(gateway: Gateway): (readonly [string, string])[] {
  const { development, inUse } = gateway.certificates
  if (development === null) return inUse.map(({ name }, index) => [index === 0 ? 'Certificate' : '', name])
  const { port } = gateway.addresses.listen
  const file = resolve(development.caFile)
  return [
    ['Certificate', `for development, good for ${development.names.join(', ')}`],
    [development.isNew ? 'New CA' : 'CA', quoted(file)],
    ['', `SHA-256 ${development.caFingerprint}`],
    ['Try it', `curl --cacert ${quoted(file)} https://localhost:${port}/`],
  ]
}

/** The dashboard's address, and how to create a key for it. */
function managementRows(
  { management, dataFolder }: GatewaySettings,
  manage: string,
): (readonly [string, string])[] {
  if (management === null) return []
  const command = `${PROGRAM} keys create --name admin --access admin --data ${quoted(resolve(dataFolder))}`
  return [
    ...(management.hasDashboard ? [['Dashboard', `${manage}${DASHBOARD_PATH}`] as const] : []),
    ['First key', command],
  ]
}

function nextSteps({ management }: GatewaySettings): readonly string[] {
  return [
    'send a request to the address above',
    management === null
      ? 'open the dashboard of its managers to see the policy'
      : 'make the first key and sign in to the dashboard with it',
    `write rules, starting from config/policy.yaml: ${PROGRAM} check finds mistakes`,
  ]
}

function policyText({ file, version }: PolicyInForce): string {
  if (file !== null) return file
  return version === null
    ? 'none: every request is tagged, none is blocked'
    : `set through the API, version ${version.version}`
}

function workersText(workers: number | null): string {
  if (workers === null) return 'in one process'
  return workers === 1 ? 'with 1 worker' : `with ${workers} workers`
}

/** The address as typed into a browser: a wildcard address is shown as localhost. */
function authority({ host, port }: ListenAddress): string {
  const name = ['0.0.0.0', '::', '127.0.0.1', '::1'].includes(host) ? 'localhost' : host
  return name.includes(':') ? `[${name}]:${port}` : `${name}:${port}`
}

/** Quotes for a shell. */
function quoted(path: string): string {
  return /^[\w./@:+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}

const LABEL_WIDTH = 13
const PROGRAM = import.meta.url.endsWith('.ts') ? 'npm run -s gatehouse --' : 'gatehouse'

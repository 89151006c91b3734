import type { StartupConfig } from '../../config/config.ts'
import { type ListenPlace, listenFailure } from '../../runtime/listen-check.ts'
import { bad, type CheckResult, good, skipped } from './finding.ts'

/** Checks whether the ports are free, or used by a running gateway. */
export async function lookAtPorts(
  { proxy, manage }: Pick<StartupConfig, 'proxy' | 'manage'>,
  role: string,
): Promise<readonly CheckResult[]> {
  const isProxy = role !== 'manage'
  const running = await healthOf(manage.listen, manage.certificate !== null)
  const places = [
    ...(isProxy ? [{ name: 'proxy.listen', place: proxy.listen }] : []),
    ...(isProxy && proxy.plainListen !== null
      ? [{ name: 'proxy.plain_listen', place: proxy.plainListen }]
      : []),
    { name: 'manage.listen', place: manage.listen },
  ]
  const ports = await Promise.all(places.map(({ name, place }) => lookAtPort(name, place, running !== null)))
  return [...ports, ...(running === null ? [] : [running])]
}

async function lookAtPort(
  name: string,
  { host, port }: ListenPlace,
  isRunning: boolean,
): Promise<CheckResult> {
  const about = `${name} ${host}:${port}`
  const code = await listenFailure({ host, port })
  if (code === null) return good(about, 'is free')
  if (code === 'EADDRINUSE')
    return isRunning
      ? skipped(about, 'is in use, probably by the gateway that runs here')
      : bad(about, 'is in use by another program', `ss -ltnp 'sport = :${port}' shows which; or set ${name}`)
  if (code === 'EACCES')
    return bad(
      about,
      'is not allowed for this user',
      `use a port from 1024 on and forward ${port} to it, or give the process CAP_NET_BIND_SERVICE`,
    )
  if (code === 'EADDRNOTAVAIL')
    return bad(
      about,
      'is not an address of this machine',
      `set ${name} to one that "ip address" shows, or 0.0.0.0`,
    )
  return bad(about, `cannot be opened (${code})`, `set ${name} to HOST:PORT of this machine`)
}

/** The health report of a running gateway; `null`: no gateway answers. */
async function healthOf({ host, port }: ListenPlace, hasTls: boolean): Promise<CheckResult | null> {
  // The port's certificate need not be valid for a local address, so a TLS port is not asked.
  if (hasTls || port === 0) return null
  const local = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[host] ?? (host.includes(':') ? `[${host}]` : host)
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const response = await fetch(`http://${local}:${port}/health/ready`, { signal })
    const { status, reasons } = (await response.json()) as { status?: unknown; reasons?: unknown }
    if (status === 'ready') return good('the gateway that runs', 'is ready')
    if (status !== 'not-ready' || !Array.isArray(reasons)) return null
    return bad('the gateway that runs', `is not ready: ${reasons.map(reasonText).join('; ')}`, 'see its log')
  } catch {
    return null
  }
}

/** Earlier versions report a text only. */
function reasonText(reason: unknown): string {
  if (typeof reason === 'string') return reason
  const { code, detail } = (reason ?? {}) as { readonly code?: unknown; readonly detail?: unknown }
  return `${detail} (${code})`
}

const TIMEOUT_MS = 2_000

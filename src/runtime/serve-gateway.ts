import { createLog, type Log } from '../shared/log.ts'
import type { ExitCode } from '../terminal/command.ts'
import { checkListenPlaces, type ListenWish } from './listen-check.ts'
import { Gateway } from './gateway.ts'
import type { GatewaySettings } from './gateway/gateway-settings.ts'
import type { Io } from '../terminal/io.ts'
import { GRACE_MS, type Running, serve } from './serve.ts'

/** `banner`: the text for a person at a terminal once the gateway serves. */
export async function serveGateway(
  settings: GatewaySettings,
  warnings: readonly string[],
  io: Io,
  banner: (gateway: Gateway, io: Io) => string,
): Promise<ExitCode> {
  const log = createLog(settings.log)
  const { drainTimeoutMs } = settings.worker
  if (io.isTerminal) io.stdout.write(startingText(settings))
  const start = async (): Promise<Running> => {
    await checkListenPlaces(listenWishes(settings))
    const gateway = await Gateway.start(settings, log)
    return {
      graceMs: Math.min(GRACE_MS, drainTimeoutMs * GRACE_SHARE),
      sayReady: () => {
        if (io.isTerminal) io.stdout.write(banner(gateway, io))
        logReady(gateway, log)
      },
      reload: () => void gateway.reload(),
      stop: (graceMs) => gateway.stop(graceMs, drainTimeoutMs - graceMs),
      kill: () => gateway.kill(),
    }
  }
  return serve(start, warnings, log)
}

function listenWishes({ worker, port }: GatewaySettings): ListenWish[] {
  return [
    { place: worker.listen, by: '--listen' },
    ...(worker.plainListen === null ? [] : [{ place: worker.plainListen, by: 'proxy.plain_listen' }]),
    { place: port.listen, by: '--manage' },
  ]
}

/** Shown first, because loading signatures, certificates and the database takes a second or two. */
function startingText({ version, worker }: GatewaySettings): string {
  const urls = worker.upstreams.flatMap((upstream) => upstream.urls)
  return `Gatehouse ${version} is starting in front of ${urls.join(', ')} …\n`
}

function logReady(gateway: Gateway, log: Log): void {
  const { settings, addresses, manageAddress, certificates } = gateway
  const { listen, plainListen } = addresses
  log.info('ready', {
    version: settings.version,
    listen: `${listen.host}:${listen.port}`,
    plainListen: plainListen === null ? null : `${plainListen.host}:${plainListen.port}`,
    manage: `${manageAddress.host}:${manageAddress.port}`,
    upstreams: settings.worker.upstreams.flatMap(({ urls }) => urls),
    workers: settings.workers ?? 'in this process',
    certificates: certificates.inUse.map(({ name }) => name),
    developmentCa: certificates.development?.caFile ?? null,
  })
}

/**
 * The share of the drain time that is grace, because a supervisor counts its SIGKILL timeout from the signal.
 */
const GRACE_SHARE = 1 / 6

import { createLog, type Log } from '../log.ts'
import { banner } from './banner.ts'
import type { ExitCode } from './command.ts'
import { Gateway, type GatewaySettings } from './gateway.ts'
import type { Io } from './io.ts'
import { Orders } from './orders.ts'

/** Serves until it is told to stop, and then until what is open has come to its end. */
export async function serve(
  settings: GatewaySettings,
  warnings: readonly string[],
  io: Io,
): Promise<ExitCode> {
  const log = createLog(settings.logLevel)
  for (const warning of warnings) log.warn('a setting is risky', { warning })
  const orders = new Orders()
  try {
    const starting = Gateway.start(settings, log)
    const gateway = await Promise.race([starting, orders.stop.then(() => null)])
    if (gateway === null) {
      log.info('stopped before it was ready')
      starting.then(
        (late) => late.kill(),
        () => undefined,
      )
      return 0
    }
    orders.reload = () => void gateway.reload()
    orders.kill = () => gateway.kill()
    sayReady(gateway, log, io)
    const signal = await orders.stop
    const { drainTimeoutMs } = settings.worker
    // Somebody at a terminal has told nobody to send traffic here, and waits.
    const graceMs = signal === 'SIGINT' ? 0 : Math.min(GRACE_MS_MAX, drainTimeoutMs * GRACE_SHARE)
    log.info('stopping', { signal, graceMs, drainMs: drainTimeoutMs - graceMs })
    await gateway.stop(graceMs, drainTimeoutMs - graceMs)
    log.info('stopped')
    return 0
  } finally {
    orders.close()
    log.flush()
    // What is under way still (signatures that are read, a database that does not answer) is waited for no longer.
    setTimeout(() => process.exit(), LEAVE_MS).unref()
  }
}

function sayReady(gateway: Gateway, log: Log, io: Io): void {
  if (io.isTerminal) io.stdout.write(banner(gateway, io))
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

/** For an output that somebody reads slowly. */
const LEAVE_MS = 200
/** Load balancers that look every second or two have seen by then that it is not ready. */
const GRACE_MS_MAX = 5_000
/** Of the time to drain, which whoever sends SIGKILL after it counts from the signal. */
const GRACE_SHARE = 1 / 6

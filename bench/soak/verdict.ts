import type { Kill } from './kill.ts'
import { type AppPorts, type GatewayMetrics, KEEP_ALIVE_S, type SoakedGateway } from './gateway.ts'
import type { Ledger } from './ledger.ts'
import { tcpSocketsOf } from './sockets.ts'
import { until } from './until.ts'

/** Some time after the last request, nothing is open: not by its own account, nor by the kernel's. */
export async function endProblems(
  gateway: SoakedGateway,
  { h1Port, h2cPort }: AppPorts,
): Promise<readonly string[]> {
  const problems: string[] = []
  for (const name of OPEN) {
    if (!(await until(async () => (await gateway.metrics()).sum(name) === 0, CLOSED_MS_MAX)))
      problems.push(`${name} stays at ${(await gateway.metrics()).sum(name)}`)
  }
  for (const pid of gateway.workers) {
    const left = tcpSocketsOf(pid).filter(({ isListening }) => !isListening)
    const toApp = left.filter(({ remotePort }) => remotePort === h1Port || remotePort === h2cPort)
    if (toApp.length > 0) problems.push(`worker ${pid} has ${toApp.length} sockets to the app`)
    if (left.length > toApp.length)
      problems.push(`worker ${pid} has ${left.length - toApp.length} sockets to clients`)
  }
  return problems
}

/** What Gatehouse has counted, against what the clients have. */
export function sumProblems(
  metrics: GatewayMetrics,
  ledger: Ledger,
  kills: readonly Kill[],
): readonly string[] {
  const counted = metrics.sum('requests_total')
  const right = ledger.total('right')
  const sent = ledger.total(null)
  // What a worker has counted since it last said so dies with it.
  const least = right - ledger.answersBefore(kills, UNSAID_MS)
  const problems: string[] = []
  if (counted < least)
    problems.push(`requests_total is ${counted}, and ${right} were answered (${least} at least)`)
  if (counted > sent) problems.push(`requests_total is ${counted}, and no more than ${sent} were sent`)
  const restarts = metrics.sum('worker_restarts_total')
  if (restarts !== kills.length)
    problems.push(`worker_restarts_total is ${restarts} after ${kills.length} kills`)
  return problems
}

const OPEN = ['connections_open', 'streams_open', 'upstream_connections_open']
const CLOSED_MS_MAX = (KEEP_ALIVE_S + 15) * 1000
/** A worker tells its numbers every 5 s. */
const UNSAID_MS = 8000

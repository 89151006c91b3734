import { tcpSocketsOf } from '../soak/sockets.ts'
import { until } from '../soak/until.ts'
import { family, type Load, type Result, usage, withHeaders } from './loads.ts'

const CONNECTIONS = 32
const HALF: Load = withHeaders('/', [], CONNECTIONS)
const CONNECTED_MS_MAX = 5_000

/**
 * What a request takes of the processor, in microseconds, where each of two workers has half of the connections: one is held
 * while the other accepts its half. Otherwise the worker that shares its processor with the load would get few connections
 * or none, because the load opens all at once, and only the other worker would be measured.
 */
export async function costInHalves(
  pid: number,
  port: number,
  seconds: number,
  processor: string,
): Promise<number> {
  const [one, other] = family(pid).filter((each) => each !== pid && connections(each, port) >= 0)
  const before = usage(pid).cpuSeconds
  const halves: Promise<Result>[] = []
  const run = () => void halves.push(HALF.run('https', port, seconds, processor))
  if (one === undefined || other === undefined) {
    run()
    run()
  } else {
    await withoutHelpOf(one, () => whileItConnects(other, port, run))
    await withoutHelpOf(other, () => whileItConnects(one, port, run))
  }
  const results = await Promise.all(halves)
  if (results.some(({ errors }) => errors > 0)) throw new Error(`requests to port ${port} have failed`)
  const requests = results.reduce((sum, result) => sum + result.requests, 0)
  return ((usage(pid).cpuSeconds - before) * 1e6) / requests
}

async function withoutHelpOf(pid: number, work: () => Promise<void>): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  try {
    await work()
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

async function whileItConnects(pid: number, port: number, run: () => void): Promise<void> {
  run()
  if (!(await until(() => connections(pid, port) >= CONNECTIONS, CONNECTED_MS_MAX)))
    throw new Error(`process ${pid} has not ${CONNECTIONS} connections on port ${port}`)
}

/** -1: it does not listen there. */
function connections(pid: number, port: number): number {
  const sockets = tcpSocketsOf(pid).filter(({ localPort }) => localPort === port)
  return sockets.some(({ isListening }) => isListening) ? sockets.length - 1 : -1
}

import type { SoakedGateway } from './gateway.ts'
import { stateOf, tcpSocketsOf } from './sockets.ts'
import { until } from './until.ts'

/** One worker that was killed, with the clients it had. */
export interface Kill {
  readonly atMs: number
  readonly pid: number
  readonly clientPorts: ReadonlySet<number>
}

/** It is held first, so that it can be said what it had. Resolves when it is gone. */
export async function killWorker(
  { port }: Pick<SoakedGateway, 'port'>,
  pid: number,
  problems: string[],
): Promise<Kill> {
  process.kill(pid, 'SIGSTOP')
  if (!(await until(() => stateOf(pid) === 'T', 5000))) problems.push(`worker ${pid} does not stop`)
  const clients = tcpSocketsOf(pid).filter(({ localPort, isListening }) => localPort === port && !isListening)
  const atMs = Date.now()
  process.kill(pid, 'SIGKILL')
  // A zombie, where its parent is held.
  if (!(await until(() => [null, 'Z'].includes(stateOf(pid)), 5000)))
    problems.push(`worker ${pid} does not go`)
  return { atMs, pid, clientPorts: new Set(clients.map(({ remotePort }) => remotePort)) }
}

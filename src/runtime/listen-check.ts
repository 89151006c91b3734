import { once } from 'node:events'
import { createServer } from 'node:net'
import { Fault } from '../shared/fault.ts'

export interface ListenPlace {
  readonly host: string
  readonly port: number
}

export interface ListenWish {
  readonly place: ListenPlace
  /** What the operator changes to move it: `--listen`, or a setting without a flag. */
  readonly by: string
}

/**
 * Throws a Fault that names every address where this process cannot listen, before anything else is started.
 */
export async function checkListenPlaces(wishes: readonly ListenWish[]): Promise<void> {
  const lines = await Promise.all(
    wishes.map(async ({ place, by }) => {
      const code = await listenFailure(place)
      if (code === null) return []
      return [
        `cannot listen on ${place.host} port ${place.port}: ${REASONS[code] ?? code}; change it with ${by}`,
      ]
    }),
  )
  const [first, ...others] = lines.flat()
  if (first !== undefined) throw new Fault('LISTEN_FAILED', [first, ...others].join('\n  '))
}

/** Tries to listen there. Returns the error's code, or `null` on success. */
export async function listenFailure({ host, port }: ListenPlace): Promise<string | null> {
  const server = createServer()
  try {
    server.listen({ host, port, exclusive: true })
    await once(server, 'listening')
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  } finally {
    server.close()
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EACCES: 'ports below 1024 need a privilege (CAP_NET_BIND_SERVICE)',
  EADDRNOTAVAIL: 'this machine does not have the address',
  ENOTFOUND: 'the name has no address',
}

import { join } from 'node:path'
import { type Engine, startNats, startPostgres } from '../../test/e2e/engines.ts'
import type { SoakFiles } from '../soak/files.ts'
import { type AppPorts, soakConfig } from '../soak/gateway.ts'
import { ChaosGateway, type Ports } from './gateway.ts'
import { AppRelay } from './relay.ts'
import { type Place, TIMEOUT_S } from './run.ts'

/** One of its processes, with its own ways to what it shares with the others. */
export interface Member {
  readonly name: string
  readonly gateway: ChaosGateway
  readonly bus: AppRelay
}

export interface Manager extends Member {
  readonly database: AppRelay
}

/** Two managers and two proxies, with a NATS and a PostgreSQL of their own. */
export interface Fleet {
  readonly nats: Engine
  readonly postgres: Engine
  readonly managers: readonly Manager[]
  readonly proxies: readonly Member[]
}

export async function startFleet(
  place: Place,
  files: SoakFiles,
  ports: AppPorts,
  workers: number,
): Promise<Fleet> {
  const nats = await startNats(place)
  const postgres = await startPostgres(place)
  const folderOf = (name: string) => join(place.folder, `data-${name}`)
  const started = async (command: 'manage' | 'proxy', name: string, config: (at: Ports) => string) => {
    const gateway = await ChaosGateway.start(files, config, { command, name })
    place.teardown(() => gateway.kill())
    return gateway
  }
  const startManager = async (name: string): Promise<Manager> => {
    const [bus, database] = [await relayBefore(place, nats.port), await relayBefore(place, postgres.port)]
    const url = postgres.url.replace(`:${postgres.port}/`, `:${database.port}/`)
    const config = ({ managePort }: Ports) => `${busConfig(bus)}, sightings_bytes: 64MiB}
store: {url: '${url}', encryption_key: '${ENCRYPTION_KEY}'}
manage: {listen: '127.0.0.1:${managePort}', admin_key: '${ADMIN_KEY}'}
data: {dir: '${folderOf(name)}'}
`
    return { name, bus, database, gateway: await started('manage', name, config) }
  }
  const startProxy = async (name: string): Promise<Member> => {
    const bus = await relayBefore(place, nats.port)
    const places = {
      h1Url: `http://127.0.0.1:${ports.h1Port}`,
      h2cUrl: `h2c://127.0.0.1:${ports.h2cPort}`,
      dataFolder: folderOf(name),
    }
    const config = (at: Ports) =>
      `${soakConfig(files, { ...places, ...at }, workers, TIMEOUT_S)}${busConfig(bus)}}\nsightings: {spool_bytes: 64MiB}\n`
    return { name, bus, gateway: await started('proxy', name, config) }
  }
  return {
    ...{ nats, postgres },
    managers: [await startManager('manager-1'), await startManager('manager-2')],
    proxies: [await startProxy('proxy-1'), await startProxy('proxy-2')],
  }
}

async function relayBefore(place: Place, port: number): Promise<AppRelay> {
  const relay = await AppRelay.before(port)
  place.teardown(() => relay.close())
  return relay
}

/** The beginning of that section. */
function busConfig({ port }: AppRelay): string {
  return `bus: {url: 'nats://127.0.0.1:${port}', name: chaos`
}

export const ADMIN_KEY = 'the key of the operator of this run'
const ENCRYPTION_KEY = 'a key that the managers of a chaos have'

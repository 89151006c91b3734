import { killWorker } from '../soak/kill.ts'
import { type Disturbance, type FleetScene, HARMLESS, hadNoConnection } from './disturbance.ts'
import type { AppRelay, RelayMode } from './relay.ts'

export type FleetKind = keyof typeof KINDS

export function fleetDisturbanceOf(kind: FleetKind, scene: FleetScene): Disturbance {
  return KINDS[kind](scene)
}

/** The other one takes over, and what it had taken and not stored comes to that. */
function killManager({ fleet, random }: FleetScene): Disturbance {
  const { name, gateway } = random.pick(fleet.managers)
  return {
    ...OF_MANAGERS,
    detail: name,
    readiness: 'any',
    begin: () => gateway.killAndRestart(),
  }
}

function killManagers({ fleet }: FleetScene): Disturbance {
  return {
    ...OF_MANAGERS,
    readiness: 'any',
    begin: async () =>
      void (await Promise.all(fleet.managers.map(({ gateway }) => gateway.killAndRestart()))),
  }
}

/** Only what it has recorded and not sent is lost with it. */
function killWorkerOfProxy({ fleet, random, kills, problems }: FleetScene): Disturbance {
  const { name, gateway } = random.pick(fleet.proxies)
  return {
    ...HARMLESS,
    detail: name,
    losesSightings: true,
    begin: async () => {
      const { workers } = gateway
      if (workers.length > 0) kills.push(await killWorker(gateway, random.pick(workers), problems))
    },
  }
}

/** All of its processes at once, as with its machine; it is started again on the same disk. */
function killProxy({ fleet, random, kills, problems }: FleetScene): Disturbance {
  const { name, gateway } = random.pick(fleet.proxies)
  return {
    ...OF_NETWORK,
    detail: name,
    readiness: 'any',
    restarts: name,
    losesSightings: true,
    begin: async () => {
      gateway.current.signal('SIGSTOP') // or it would have a new worker instead of the first
      kills.push(...(await Promise.all(gateway.workers.map((pid) => killWorker(gateway, pid, problems)))))
      await gateway.killAndRestart()
    },
    accountsFor: hadNoConnection,
  }
}

/** With its disk: what it has acknowledged is there. */
function killNats({ fleet: { nats }, random }: FleetScene): Disturbance {
  return {
    ...OF_NETWORK,
    holdMs: random.between(500, 4000),
    begin: () => nats.kill(),
    end: () => nats.start(),
  }
}

function killPostgres({ fleet: { postgres }, random }: FleetScene): Disturbance {
  return {
    ...OF_MANAGERS,
    holdMs: random.between(500, 4000),
    begin: () => postgres.kill(),
    end: () => postgres.start(),
  }
}

/** Everybody's way to NATS. */
function bus(mode: RelayMode): (scene: FleetScene) => Disturbance {
  return ({ fleet, random }) => ({
    ...OF_NETWORK,
    ...relayed(
      [...fleet.managers, ...fleet.proxies].map((member) => member.bus),
      mode,
    ),
    holdMs: random.between(2000, 6000),
  })
}

function database(mode: RelayMode): (scene: FleetScene) => Disturbance {
  return ({ fleet, random }) => ({
    ...OF_MANAGERS,
    ...relayed(
      fleet.managers.map((manager) => manager.database),
      mode,
    ),
    holdMs: random.between(2000, 6000),
  })
}

/** Clients and its app reach it as ever. */
function partitionProxy({ fleet, random }: FleetScene): Disturbance {
  const { name, bus } = random.pick(fleet.proxies)
  const mode = random.pick(WAYS_TO_BE_AWAY)
  return {
    ...OF_NETWORK,
    ...relayed([bus], mode),
    detail: `${name} ${mode}`,
    holdMs: random.between(2000, 6000),
  }
}

/** Those who ask it reach it, and it reaches neither database nor bus. */
function partitionManager({ fleet, random }: FleetScene): Disturbance {
  const { name, bus, database } = random.pick(fleet.managers)
  const mode = random.pick(WAYS_TO_BE_AWAY)
  return {
    ...OF_MANAGERS,
    ...relayed([bus, database], mode),
    detail: `${name} ${mode}`,
    holdMs: random.between(2000, 6000),
  }
}

function relayed(relays: readonly AppRelay[], mode: RelayMode): Pick<Disturbance, 'begin' | 'end'> {
  const all = async (be: RelayMode) => void (await Promise.all(relays.map((relay) => relay.be(be))))
  return { begin: () => all(mode), end: () => all('passes') }
}

/** Another one may have to lead, which takes the time of a lock. */
const RECOVERS_MS = 40_000
const OF_NETWORK = { ...HARMLESS, recoversMs: RECOVERS_MS }
const OF_MANAGERS = { ...OF_NETWORK, harmsApi: true }
const WAYS_TO_BE_AWAY = ['refuses', 'hangs', 'resets'] as const

const KINDS = {
  'manager-killed': killManager,
  'managers-killed': killManagers,
  'worker-killed': killWorkerOfProxy,
  'proxy-killed': killProxy,
  'bus-killed': killNats,
  'bus-refuses': bus('refuses'),
  'bus-hangs': bus('hangs'),
  'bus-resets': bus('resets'),
  'bus-slow': bus('is slow'),
  'database-killed': killPostgres,
  'database-refuses': database('refuses'),
  'database-hangs': database('hangs'),
  'database-resets': database('resets'),
  'database-slow': database('is slow'),
  'proxy-alone': partitionProxy,
  'manager-alone': partitionManager,
} satisfies Readonly<Record<string, (scene: FleetScene) => Disturbance>>

export const ALL_FLEET_KINDS = Object.keys(KINDS) as readonly FleetKind[]

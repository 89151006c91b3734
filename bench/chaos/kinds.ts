import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { killWorker } from '../soak/kill.ts'
import type { Failure } from '../soak/messages.ts'
import { Reloads } from '../soak/reloads.ts'
import { descriptorsOf, isAlive } from '../soak/sockets.ts'
import { until } from '../soak/until.ts'
import { type Disturbance, HARMLESS, hadNoConnection, isUnheard, type Scene } from './disturbance.ts'
import type { Faults } from './faults-file.ts'
import type { RelayMode } from './relay.ts'

export type Kind = keyof typeof KINDS

/** Why a kind is unavailable here; `null`: it is available. */
export function whyNot(kind: Kind, { disk, memory }: Scene): string | null {
  if (kind === 'disk-full' && disk === null) return 'this user may not mount a disk to fill'
  if (kind === 'memory' && memory === null) return 'there is no control group for memory that could be made'
  return null
}

export function disturbanceOf(kind: Kind, scene: Scene): Disturbance {
  return KINDS[kind](scene)
}

function killOne({ gateway, random, kills, problems, isBeside }: Scene): Disturbance {
  return {
    ...HARMLESS,
    readiness: besideOthers(isBeside),
    losesSightings: true,
    begin: async () => {
      const pid = anyWorker(gateway, random)
      if (pid !== null) kills.push(await killWorker(gateway, pid, problems))
    },
  }
}

/** Of who ends one worker, while another disturbance may have ended the others. */
function besideOthers(isBeside: boolean): 'any' | 'yes' {
  return isBeside ? 'any' : 'yes'
}

/** The socket that they share goes with the last of them: until there is a new one no process listens. */
function killAll({ gateway, readiness, kills, problems }: Scene): Disturbance {
  return {
    ...HARMLESS,
    readiness: 'no',
    losesSightings: true,
    begin: async () => {
      kills.push(...(await Promise.all(gateway.workers.map((pid) => killWorker(gateway, pid, problems)))))
      // At once, and not when the watch comes to it: the next ones are there soon.
      await until(async () => (await readiness.ask()).isReady === false, NOTICED_MS_MAX)
    },
    accountsFor: hadNoConnection,
  }
}

/** Its workers take no more connections, and end what is under way; it is started again. */
function killManager({ gateway }: Scene): Disturbance {
  return {
    ...HARMLESS,
    harmsApi: true,
    readiness: 'any',
    losesSightings: true,
    recoversMs: 40_000,
    begin: () => gateway.killAndRestart(),
    accountsFor: (failure, seen) =>
      hadNoConnection(failure) ||
      failure.kind === 'websocket' ||
      isDroppedByItsClient(failure) ||
      isUnheard(failure, seen),
  }
}

/** As on a machine that is out of breath: nothing fails, it takes longer. */
function holdWorker({ gateway, random }: Scene): Disturbance {
  let pid: number | null = null
  return {
    ...HARMLESS,
    holdMs: random.between(1000, 4000),
    begin: async () => {
      pid = anyWorker(gateway, random)
      if (pid !== null) process.kill(pid, 'SIGSTOP')
    },
    end: async () => {
      // It may have been killed meanwhile.
      if (pid !== null && gateway.workers.includes(pid)) process.kill(pid, 'SIGCONT')
    },
  }
}

/** As they are when it begins; `null`: what was begun before has killed all of them. */
function anyWorker({ workers }: Scene['gateway'], random: Scene['random']): number | null {
  return workers.length === 0 ? null : random.pick(workers)
}

/**
 * The policy and the certificates change, for better and for worse, twice; SIGHUP. Beside another disturbance it may be
 * long until they are noticed.
 */
function reload({ gateway, files, random, problems, isBeside }: Scene): Disturbance {
  return {
    ...HARMLESS,
    holdMs: 0,
    recoversMs: isBeside ? 40_000 : HARMLESS.recoversMs,
    begin: async () => {
      const reloads = new Reloads(gateway.current, files, random)
      if (isBeside) return reloads.unseen()
      for (let turn = 0; turn < 2; turn++) await reloads.one()
      problems.push(...reloads.problems)
    },
  }
}

/** The one with the database on it, to the last byte. */
function fillDisk({ disk, random }: Scene): Disturbance {
  return {
    ...HARMLESS,
    holdMs: random.between(1500, 5000),
    harmsApi: true,
    begin: () => disk!.fillAside(),
    end: async () => disk!.free(),
  }
}

/** Hours or days, there and back. */
function jumpClock({ faults, random }: Scene): Disturbance {
  const hours = random.pick([-48, -1, 1, CLOCK_HOURS_MAX])
  return {
    ...HARMLESS,
    detail: `${hours} h`,
    begin: async () => faults.set({ clockMs: hours * HOUR_MS }),
    end: async () => faults.set({ clockMs: 0 }),
  }
}

/** No process of ours gets one more than it has. */
function takeDescriptors({ gateway, random }: Scene): Disturbance {
  const { pid } = gateway.current
  const [who, pids] = random.pick([
    ['a worker', [random.pick(gateway.workers)]],
    ['all workers', gateway.workers],
    ['the manager', [pid]],
  ] as const)
  const before = new Map(pids.map((each) => [each, softLimitOf(each)]))
  const isOfWorkers = who !== 'the manager'
  return {
    ...HARMLESS,
    detail: who,
    holdMs: random.between(1500, 4000),
    harmsApi: !isOfWorkers,
    readiness: 'any',
    begin: async () => {
      for (const each of pids) if (isAlive(each)) limitDescriptors(each, descriptorsOf(each).length)
    },
    end: async () => {
      for (const [each, limit] of before) if (isAlive(each)) limitDescriptors(each, limit)
    },
    accountsFor: (failure) =>
      isOfWorkers && (hadNoConnection(failure) || failure.code === 'upstream_overloaded' || isCut(failure)),
  }
}

/** The kernel kills a process that needs more than the limit. */
function squeezeMemory({ gateway, memory, random, problems, isBeside }: Scene): Disturbance {
  return {
    ...HARMLESS,
    readiness: besideOthers(isBeside),
    losesSightings: true,
    recoversMs: 40_000,
    begin: async () => {
      const pid = anyWorker(gateway, random)
      if (pid === null) return
      memory!.squeeze(pid, SQUEEZED_BYTES)
      const isKilled = await until(() => !isAlive(pid), KILLED_MS_MAX)
      // One whose app hangs has nothing to do that it would need any for.
      if (!isKilled && !isBeside) problems.push(`worker ${pid} does without any new memory`)
    },
    end: async () => memory!.relax(),
    accountsFor: isCut,
  }
}

function app(mode: RelayMode, about: Partial<Disturbance>): (scene: Scene) => Disturbance {
  return ({ relays, random }) => ({
    ...HARMLESS,
    holdMs: random.between(2000, 5000),
    begin: async () => void (await Promise.all(relays.map((relay) => relay.be(mode)))),
    end: async () => void (await Promise.all(relays.map((relay) => relay.be('passes')))),
    ...about,
  })
}

/** Connections that are open stay; who needs a new one has to know where. */
function loseName({ faults, relays, random }: Scene): Disturbance {
  const names = random.pick(['ENOTFOUND', 'EAI_AGAIN', 'silent'] as const satisfies Faults['names'][])
  return {
    ...HARMLESS,
    detail: names,
    holdMs: random.between(2000, 4000),
    begin: async () => {
      faults.set({ names })
      await Promise.all(relays.map((relay) => relay.be('refuses')))
      await Promise.all(relays.map((relay) => relay.be('passes')))
    },
    end: async () => {
      faults.set({ names: 'found' })
      if (names === 'silent') await faults.letGo()
    },
    accountsFor: isOfUpstream,
  }
}

/** The gateway begins while its app cannot be found, and has nothing open to it. */
function startNameless(scene: Scene): Disturbance {
  const [killed, nameless] = [killManager(scene), loseName(scene)]
  return {
    ...killed,
    detail: nameless.detail,
    holdMs: nameless.holdMs,
    begin: async () => {
      await nameless.begin()
      await killed.begin()
    },
    end: () => nameless.end(),
    accountsFor: (failure, seen) => killed.accountsFor(failure, seen) || nameless.accountsFor(failure, seen),
  }
}

/** When a session of HTTP/2 ends, Node's client (24.21) drops what a slow reader of it has not taken yet. */
function isDroppedByItsClient({ kind, what }: Failure): boolean {
  return kind === 'slow-read' && what.startsWith('h2: cut off')
}

/** Without a known reason. */
function isCut({ code }: Pick<Failure, 'code'>): boolean {
  return code === null
}

/** We have said so (after HEAD, without a code), or it broke off in the middle of the app's answer. */
function isOfUpstream({ code, what, method, kind }: Failure): boolean {
  if (code?.startsWith('upstream_') === true || BROKEN_OFF.test(what)) return true
  return (method === 'HEAD' && /answered 50[234] /.test(what)) || (kind === 'websocket' && isCut({ code }))
}

function softLimitOf(pid: number): number {
  const limit = /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1]
  if (limit === undefined) throw new Error(`process ${pid} has no limit of descriptors`)
  return Number(limit)
}

/** The soft one: the hard one could not be raised again without a right. */
function limitDescriptors(pid: number, count: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${count}:`])
}

/** Node's client says nothing of a head that came together with the reset of its stream. */
const BROKEN_OFF = /cut off after \d+ bytes|^h2: no answer/
const HOUR_MS = 3_600_000
/** How far the clock is ahead at most. */
const CLOCK_HOURS_MAX = 47
export const CLOCK_MS_MAX = CLOCK_HOURS_MAX * HOUR_MS
/** So few that any new page soon is too many, also for a worker with few requests. */
const SQUEEZED_BYTES = 64 * 1024
const KILLED_MS_MAX = 30_000
const NOTICED_MS_MAX = 2_000

const KINDS = {
  'worker-killed': killOne,
  'workers-killed': killAll,
  'manager-killed': killManager,
  'worker-held': holdWorker,
  reload,
  'disk-full': fillDisk,
  clock: jumpClock,
  descriptors: takeDescriptors,
  memory: squeezeMemory,
  // One that is the only one is asked whatever it did, so that readiness does not go by it.
  'app-refuses': app('refuses', { accountsFor: isOfUpstream }),
  'app-hangs': app('hangs', { accountsFor: isOfUpstream }),
  'app-resets': app('resets', { accountsFor: isOfUpstream }),
  'app-slow': app('is slow', { accountsFor: ({ code }) => code === 'upstream_head_timeout' }),
  names: loseName,
  'names-at-start': startNameless,
} satisfies Readonly<Record<string, (scene: Scene) => Disturbance>>

export const ALL_KINDS = Object.keys(KINDS) as readonly Kind[]

import { SoakFiles } from '../soak/files.ts'
import { Ledger } from '../soak/ledger.ts'
import { Random } from '../soak/random.ts'
import { outcomesReport } from '../soak/report.ts'
import { descriptorsOf } from '../soak/sockets.ts'
import { endProblems } from '../soak/verdict.ts'
import { Api } from './api.ts'
import type { FleetScene } from './disturbance.ts'
import { Estate } from './estate.ts'
import { ALL_FLEET_KINDS, type FleetKind, fleetDisturbanceOf } from './fleet-kinds.ts'
import { ADMIN_KEY, type Fleet, type Member, startFleet } from './fleet-place.ts'
import { FleetRecovery } from './fleet-recovery.ts'
import { chaosOptions } from './options.ts'
import { ReadinessWatch } from './readiness.ts'
import { roundsReport } from './report.ts'
import { Rounds } from './rounds.ts'
import { type Place, play, REQUESTS, run, STARTED_MS_MAX, say } from './run.ts'
import { apiProblems, leastCounted, leftovers, readinessProblems, statisticsProblems } from './verdict.ts'
import { Wishes } from './wishes.ts'

/** A fleet under traffic, whose parts fail one after the other without any effect on clients. */
async function chaosOfFleet(place: Place): Promise<readonly string[]> {
  const { folder, processes } = place
  say(`${seconds} s, ${connections} connections, ${workers} workers in each of 2 proxies, seed ${seed}`)
  const random = new Random(seed)
  const files = await SoakFiles.make(folder)
  const ledger = new Ledger((id) => processes.seenByApp(id))
  const ports = await processes.startApp(ledger)
  const fleet = await startFleet(place, files, ports, workers)
  const members: readonly Member[] = [...fleet.managers, ...fleet.proxies]
  const scene: FleetScene = { fleet, random, problems: [], kills: [] }

  const readiness = new Map(members.map(({ name, gateway }) => [name, new ReadinessWatch(gateway.manageUrl)]))
  const stopWatching = () => {
    for (const watch of readiness.values()) watch.stop()
  }
  place.teardown(stopWatching)
  const api = new Api(() => anyManager(fleet, random), ADMIN_KEY)
  const estate = new Estate(api, random)
  place.teardown(() => estate.stop())
  const wishes = new Wishes(api)
  place.teardown(() => wishes.stop())
  const recovery = new FleetRecovery({ fleet, files, readiness, api, estate, wishes, random }, workers)
  const missing = await recovery.missing(STARTED_MS_MAX)
  if (missing !== null) throw new Error(`it is not well before anything has been done to it: ${missing}`)
  const failuresBefore = api.failures.length
  for (const { gateway } of fleet.proxies) {
    const order = { port: gateway.port, ca: files.ca, kinds: REQUESTS, sendsGarbage: false }
    await processes.startClients({ ...order, connections: connections / 2 }, ledger, random)
  }
  const descriptors = new Map(
    members.map(({ name, gateway }) => [name, descriptorsOf(gateway.current.pid).length]),
  )

  const rounds = new Rounds(
    {
      ...{ random, problems: scene.problems },
      disturbance: (kind: FleetKind) => fleetDisturbanceOf(kind, scene),
      missing: (withinMs: number) => recovery.missing(withinMs),
    },
    only,
  )
  const said = { ledger, problems: scene.problems, lastMissing: () => recovery.lastMissing }
  await play(rounds, seconds, said)
  stopWatching()
  await processes.stopClients()
  await wishes.stop()
  await estate.stop()

  const { done } = rounds
  const counted = await estate.settled(leastCounted(ledger, recovery, done))
  const problems = [
    ...scene.problems,
    ...ledger.wrong,
    ...apiProblems(api.failures.slice(failuresBefore), done),
    ...(await estate.lost()),
    ...statisticsProblems(counted, ledger, recovery, done),
    ...(await dropped(fleet)),
  ]
  for (const { name, gateway } of members) {
    // That it was killed is the only reason for a proxy to say that it is not ready.
    const isProxy = fleet.proxies.some((each) => each.gateway === gateway)
    const starts = done.filter(({ disturbances }) => disturbances.some(({ restarts }) => restarts === name))
    const its = [
      ...readinessProblems(readiness.get(name)!.samples, isProxy ? starts : done),
      ...(isProxy ? await endProblems(gateway.current, ports) : []),
      ...(await leftovers(gateway, descriptors.get(name)!)),
    ]
    gateway.current.signal('SIGTERM')
    await gateway.current.exit
    its.push(...gateway.processes.map((pid) => `process ${pid} has stayed at the end`))
    problems.push(...its.map((problem) => `${name}: ${problem}`))
  }
  const { accounts, unaccounted } = await ledger.accounts(scene.kills, done)
  problems.push(...unaccounted)
  const notes = [
    `acknowledged by the API and there: ${estate.acknowledged}; calls that failed: ${api.failures.length}`,
    `in statistics: ${counted} requests; ${ledger.total('right') + recovery.answered} were answered as they should`,
    `starts that were tried again: ${members.reduce((sum, { gateway }) => sum + gateway.failedStarts, 0)}`,
  ]
  process.stdout.write(roundsReport(done, ALL_FLEET_KINDS))
  process.stdout.write(outcomesReport({ ledger, accounts, problems, notes }))
  return problems
}

/** As a load balancer finds it out: one that is there. */
function anyManager({ managers }: Fleet, random: Random): string {
  const there = managers.filter(({ gateway }) => !gateway.isStarting)
  return random.pick(there.length > 0 ? there : managers).gateway.manageUrl
}

/** What was dropped before it could be delivered; there is room for everything. */
async function dropped({ proxies }: Fleet): Promise<readonly string[]> {
  const problems: string[] = []
  for (const { name, gateway } of proxies) {
    const count = (await gateway.metrics()).sum('sightings_total', 'outcome="dropped"')
    if (count > 0) problems.push(`${name} has dropped ${count} Sightings`)
  }
  return problems
}

const { seconds, connections, seed, workers, keep, only } = chaosOptions(ALL_FLEET_KINDS)

// Whatever a broken run has left waiting.
process.exit(await run({ seconds, keep }, chaosOfFleet))

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { makeKey } from '../../src/manage/auth/make-key.ts'
import { Store } from '../../src/store/store.ts'
import { mountDisk } from '../../test/e2e/disk.ts'
import { SoakFiles } from '../soak/files.ts'
import { soakConfig } from '../soak/gateway.ts'
import { Ledger } from '../soak/ledger.ts'
import { Random } from '../soak/random.ts'
import { outcomesReport } from '../soak/report.ts'
import { descriptorsOf } from '../soak/sockets.ts'
import { endProblems } from '../soak/verdict.ts'
import { Api } from './api.ts'
import type { Scene } from './disturbance.ts'
import { Estate } from './estate.ts'
import { FaultsFile, NAMES_SUFFIX } from './faults-file.ts'
import { ChaosGateway } from './gateway.ts'
import { LiveMemory } from './live-memory.ts'
import { ALL_KINDS, CLOCK_MS_MAX, disturbanceOf, type Kind, whyNot } from './kinds.ts'
import { MemoryGroup } from './memory-group.ts'
import { ReadinessWatch } from './readiness.ts'
import { chaosOptions } from './options.ts'
import { Recovery } from './recovery.ts'
import { AppRelay } from './relay.ts'
import { roundsReport } from './report.ts'
import { Rounds } from './rounds.ts'
import { type Place, play, REQUESTS, run, STARTED_MS_MAX, say, TIMEOUT_S } from './run.ts'
import { apiProblems, leastCounted, leftovers, readinessProblems, statisticsProblems } from './verdict.ts'

/** A gateway under traffic, to which one thing after the other is done; it may suffer from none for longer than it says. */
async function chaos(place: Place): Promise<readonly string[]> {
  const { folder, processes } = place
  const dataFolder = join(folder, 'data')
  mkdirSync(dataFolder)
  const disk = mountDisk(dataFolder, DISK_BYTES + seconds * DISK_BYTES_EACH_SECOND)
  place.teardown(() => disk?.unmount())
  const memory = MemoryGroup.make()
  place.teardown(() => memory?.remove())
  say(`${seconds} s, ${connections} connections, ${workers} workers, seed ${seed}`)
  const random = new Random(seed)
  const files = await SoakFiles.make(folder)
  const faults = new FaultsFile(folder)
  process.env['CHAOS_FAULTS_FILE'] = faults.path
  const ledger = new Ledger((id) => processes.seenByApp(id))
  const { h1Port, h2cPort } = await processes.startApp(ledger)
  const relays = await Promise.all([h1Port, h2cPort].map((port) => AppRelay.before(port)))
  place.teardown(() => Promise.all(relays.map((relay) => relay.close())))
  const ports = { h1Port: relays[0]!.port, h2cPort: relays[1]!.port }
  const key = await keyIn(`sqlite:${join(dataFolder, 'gatehouse.db')}`)
  const places = {
    h1Url: `http://app${NAMES_SUFFIX}:${ports.h1Port}`,
    h2cUrl: `h2c://app${NAMES_SUFFIX}:${ports.h2cPort}`,
    dataFolder,
  }
  const gateway = await ChaosGateway.start(
    files,
    (at) => soakConfig(files, { ...places, ...at }, workers, TIMEOUT_S),
    { preloads: [new URL('faults.ts', import.meta.url).href] },
  )
  place.teardown(() => gateway.kill())
  const readiness = new ReadinessWatch(gateway.manageUrl)
  place.teardown(() => readiness.stop())
  const api = new Api(() => gateway.manageUrl, key)
  const estate = new Estate(api, random)
  place.teardown(() => estate.stop())
  const scene: Scene = {
    ...{ gateway, files, faults, relays, disk, memory, readiness, random },
    ...{ problems: [], kills: [], isBeside: false },
  }
  const order = { port: gateway.port, ca: files.ca, connections, kinds: REQUESTS, sendsGarbage: false }
  await processes.startClients(order, ledger, random)
  const recovery = new Recovery({ gateway, files, readiness, estate, api, random }, workers)
  const missing = await recovery.missing(STARTED_MS_MAX)
  if (missing !== null) throw new Error(`it is not well before anything has been done to it: ${missing}`)
  const descriptors = descriptorsOf(gateway.current.pid).length

  const kinds = only.filter((kind) => {
    const why = whyNot(kind, scene)
    if (why !== null) say(`${kind} is left out: ${why}`)
    return why === null
  })
  const rounds = new Rounds(
    {
      ...{ random, problems: scene.problems },
      disturbance: (kind: Kind, isBeside) => disturbanceOf(kind, { ...scene, isBeside }),
      missing: (withinMs: number) => recovery.missing(withinMs),
    },
    kinds,
  )
  const live = new LiveMemory(gateway)
  const said = { ledger, problems: scene.problems, lastMissing: () => recovery.lastMissing }
  await play(rounds, seconds, said, () => rounds.hasHadAll && !live.isMeasured && live.measure())
  await live.measure()
  readiness.stop()
  await processes.stopClients()
  await estate.stop()

  const { done } = rounds
  faults.set({ clockMs: CLOCK_MS_MAX }) // statistics end now: what was seen in days to come is to be among them
  const beside = { answered: 0, asked: recovery.asked }
  const counted = await estate.settled(leastCounted(ledger, beside, done))
  const problems = [
    ...scene.problems,
    ...ledger.wrong,
    ...readinessProblems(readiness.samples, done),
    ...apiProblems(api.failures, done),
    ...(await estate.lost()),
    ...statisticsProblems(counted, ledger, beside, done),
    ...(await endProblems(gateway.current, ports)),
    ...(await leftovers(gateway, descriptors)),
    ...live.problems,
  ]
  const { accounts, unaccounted } = await ledger.accounts(scene.kills, [...done, ...gateway.drains])
  problems.push(...unaccounted)
  gateway.current.signal('SIGTERM')
  await gateway.current.exit
  problems.push(...gateway.processes.map((pid) => `process ${pid} has stayed at the end`))
  const notes = [
    `acknowledged by the API and there: ${estate.acknowledged}; calls that failed: ${api.failures.length}`,
    `in statistics: ${counted} requests; ${ledger.total('right') + recovery.asked} were answered as they should`,
    live.note,
    `starts that were tried again: ${gateway.failedStarts}`,
  ]
  process.stdout.write(roundsReport(done, ALL_KINDS))
  process.stdout.write(outcomesReport({ ledger, accounts, problems, notes }))
  return problems
}

async function keyIn(storeUrl: string): Promise<string> {
  const store = await Store.open(storeUrl)
  const wanted = {
    name: 'chaos',
    apps: '*' as const,
    scopes: ['admin' as const],
    plan: 'unlimited' as const,
    expiresAtMs: null,
  }
  const { key } = await makeKey(store, wanted, COMMAND_LINE, Date.now())
  await store.close()
  return key
}

const DISK_BYTES = 96 * 1024 * 1024
/** Some hundred requests a second, as they were and counted. */
const DISK_BYTES_EACH_SECOND = 512 * 1024
const { seconds, connections, seed, workers, keep, only } = chaosOptions(ALL_KINDS)

// Whatever a broken run has left waiting.
process.exit(await run({ seconds, keep }, chaos))

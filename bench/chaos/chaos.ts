import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { COMMAND_LINE } from '../../src/manage/audit.ts'
import { makeKey } from '../../src/manage/auth/make-key.ts'
import { Store } from '../../src/store/store.ts'
import { mountDisk } from '../../test/e2e/disk.ts'
import { SoakFiles } from '../soak/files.ts'
import { soakConfig } from '../soak/gateway.ts'
import { Ledger } from '../soak/ledger.ts'
import type { Kind as RequestKind } from '../soak/plan.ts'
import { SoakProcesses } from '../soak/processes.ts'
import { Random } from '../soak/random.ts'
import { outcomesReport } from '../soak/report.ts'
import { descriptorsOf } from '../soak/sockets.ts'
import { until } from '../soak/until.ts'
import { endProblems } from '../soak/verdict.ts'
import type { Scene } from './disturbance.ts'
import { Estate } from './estate.ts'
import { FaultsFile, NAMES_SUFFIX } from './faults-file.ts'
import { ChaosGateway } from './gateway.ts'
import { LiveMemory } from './live-memory.ts'
import { ALL_KINDS, CLOCK_MS_MAX, type Kind, whyNot } from './kinds.ts'
import { MemoryGroup } from './memory-group.ts'
import { ReadinessWatch } from './readiness.ts'
import { Recovery } from './recovery.ts'
import { AppRelay } from './relay.ts'
import { roundsReport } from './report.ts'
import { Rounds } from './rounds.ts'
import { apiProblems, leftovers, readinessProblems, statisticsProblems } from './verdict.ts'

/** A gateway under traffic, to which one thing after the other is done; it may suffer from none for longer than it says. */
async function chaos(): Promise<number> {
  const { seconds, connections, seed, workers, keep, only } = options()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-chaos-'))
  const dataFolder = join(folder, 'data')
  mkdirSync(dataFolder)
  const disk = mountDisk(dataFolder, DISK_BYTES + seconds * DISK_BYTES_EACH_SECOND)
  const memory = MemoryGroup.make()
  const processes = new SoakProcesses()
  const ended: (() => unknown)[] = [() => processes.kill()]
  try {
    say(`${seconds} s, ${connections} connections, ${workers} workers, seed ${seed}`)
    const random = new Random(seed)
    const files = await SoakFiles.make(folder)
    const faults = new FaultsFile(folder)
    process.env['CHAOS_FAULTS_FILE'] = faults.path
    const ledger = new Ledger((id) => processes.seenByApp(id))
    const { h1Port, h2cPort } = await processes.startApp(ledger)
    const relays = await Promise.all([h1Port, h2cPort].map((port) => AppRelay.before(port)))
    ended.push(() => Promise.all(relays.map((relay) => relay.close())))
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
      [new URL('faults.ts', import.meta.url).href],
    )
    ended.push(() => killAll(gateway))
    const readiness = new ReadinessWatch(gateway.manageUrl)
    ended.push(() => readiness.stop())
    const estate = new Estate(gateway.manageUrl, key, random)
    ended.push(() => estate.stop())
    const scene: Scene = {
      ...{ gateway, files, faults, relays, disk, memory, random },
      ...{ problems: [], kills: [] },
    }
    const order = { port: gateway.port, ca: files.ca, connections, kinds: REQUESTS, sendsGarbage: false }
    await processes.startClients(order, ledger, random)
    const recovery = new Recovery({ gateway, files, readiness, estate, random }, workers)
    const missing = await recovery.missing(STARTED_MS_MAX)
    if (missing !== null) throw new Error(`it is not well before anything has been done to it: ${missing}`)
    const descriptors = descriptorsOf(gateway.current.pid).length

    const kinds = only.filter((kind) => {
      const why = whyNot(kind, scene)
      if (why !== null) say(`${kind} is left out: ${why}`)
      return why === null
    })
    const rounds = new Rounds(scene, recovery, kinds)
    const live = new LiveMemory(gateway)
    const startedMs = performance.now()
    const secondsGone = () => (performance.now() - startedMs) / 1000
    while (secondsGone() < seconds) {
      const { name, recoveredMs } = await Promise.race([rounds.next(), processes.crash])
      const bad = ledger.wrong.length + scene.problems.length
      const counts = `${ledger.total('right')} right, ${ledger.total('lost')} lost, ${bad} wrong`
      const last = recovery.lastMissing === null ? '' : ` (last: ${recovery.lastMissing})`
      say(`${Math.round(secondsGone())} s: ${name}, well again after ${recoveredMs} ms${last}; ${counts}`)
      if (rounds.hasHadAll && !live.isMeasured) await live.measure()
    }
    await live.measure()
    readiness.stop()
    await Promise.race([processes.stopClients(), processes.crash])
    await estate.stop()

    const { done } = rounds
    faults.set({ clockMs: CLOCK_MS_MAX }) // statistics end now: what was seen in days to come is to be among them
    const counted = await settled(estate)
    const problems = [
      ...scene.problems,
      ...ledger.wrong,
      ...readinessProblems(readiness.samples, done),
      ...apiProblems(estate.failures, done),
      ...(await estate.lost()),
      ...statisticsProblems(counted, ledger, recovery.asked, done),
      ...(await endProblems(gateway.current, ports)),
      ...(await leftovers(gateway, descriptors)),
      ...live.problems,
    ]
    const { accounts, unaccounted } = await ledger.accounts(scene.kills, done)
    problems.push(...unaccounted)
    gateway.current.signal('SIGTERM')
    await gateway.current.exit
    problems.push(...gateway.processes.map((pid) => `process ${pid} has stayed at the end`))
    const notes = [
      `acknowledged by the API and there: ${estate.acknowledged}; calls that failed: ${estate.failures.length}`,
      `in statistics: ${counted} requests; ${ledger.total('right') + recovery.asked} were answered as they should`,
      live.note,
      `starts that were tried again: ${gateway.failedStarts}`,
    ]
    writeFileSync(join(folder, 'problems.txt'), problems.join('\n'))
    process.stdout.write(roundsReport(done))
    process.stdout.write(outcomesReport({ ledger, accounts, problems, notes }))
    return problems.length === 0 ? 0 : 1
  } finally {
    for (const end of ended.toReversed()) await end()
    disk?.unmount()
    memory?.remove()
    if (keep) say(`kept: ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
}

function options() {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      seconds: { type: 'string' },
      connections: { type: 'string', default: '40' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      workers: { type: 'string', default: '2' },
      /** Kinds of disturbance, and no others: `disk-full,clock`. */
      only: { type: 'string' },
      /** The folder with the files, the log and all that was wrong stays. */
      keep: { type: 'boolean', default: false },
    },
  })
  return {
    seconds: Number(values.seconds ?? Number(values.minutes) * 60),
    connections: Number(values.connections),
    seed: Number(values.seed),
    workers: Number(values.workers),
    keep: values.keep,
    only: values.only === undefined ? ALL_KINDS : kindsIn(values.only),
  }
}

function kindsIn(text: string): readonly Kind[] {
  return text.split(',').map((name) => {
    const kind = ALL_KINDS.find((each) => each === name)
    if (kind === undefined) throw new Error(`there is no ${name}; there are ${ALL_KINDS.join(', ')}`)
    return kind
  })
}

async function keyIn(storeUrl: string): Promise<string> {
  const store = await Store.open(storeUrl)
  const wanted = { name: 'chaos', scopes: ['admin' as const], plan: 'unlimited' as const, expiresAtMs: null }
  const { key } = await makeKey(store, wanted, COMMAND_LINE, Date.now())
  await store.close()
  return key
}

/** Once nothing more comes. */
async function settled(estate: Estate): Promise<number> {
  let before = -1
  let same = 0
  const isSettled = async () => {
    const now = await estate.requests()
    same = now !== null && now === before ? same + 1 : 0
    before = now ?? -1
    return same >= SETTLED_TIMES
  }
  await until(isSettled, SETTLED_MS_MAX)
  return before
}

async function killAll(gateway: ChaosGateway): Promise<void> {
  gateway.notePids()
  for (const pid of gateway.processes) process.kill(pid, 'SIGKILL')
  await gateway.current.exit
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** What the soak does beside these (apps that break off, answer early or never, garbage) would hide what is looked for. */
const REQUESTS: readonly RequestKind[] = [
  ...(['get', 'head', 'no-content', 'not-modified', 'download', 'slow-read', 'upload'] as const),
  ...(['slow-app', 'trailers', 'echo', 'events', 'policy', 'leaves-in-request', 'leaves-in-answer'] as const),
]
/** The app hangs for less; on a machine that has much else to do a connection takes its time. */
const TIMEOUT_S = { head: 20, connect: 20 }
const DISK_BYTES = 96 * 1024 * 1024
/** Some hundred requests a second, as they were and counted. */
const DISK_BYTES_EACH_SECOND = 512 * 1024
const STARTED_MS_MAX = 60_000
const SETTLED_TIMES = 10
const SETTLED_MS_MAX = 60_000

// Whatever a broken run has left waiting.
process.exit(await chaos())

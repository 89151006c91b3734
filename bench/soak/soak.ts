import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Disturbances } from './disturbances.ts'
import { SoakFiles } from './files.ts'
import { SoakedGateway, soakConfig } from './gateway.ts'
import { Ledger } from './ledger.ts'
import { MemoryWatch } from './memory.ts'
import { ALL_KINDS, type Kind } from './plan.ts'
import { SoakProcesses } from './processes.ts'
import { Random } from './random.ts'
import { report } from './report.ts'
import { isAlive } from './sockets.ts'
import { endProblems, sumProblems } from './verdict.ts'

/** Traffic of every kind for a long time, disturbed in every way, of which nothing may be wrong and nothing may stay. */
async function soak(): Promise<number> {
  const { seconds, connections, seed, workers, reloadMs, killMs, keep, kinds } = options()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'))
  const processes = new SoakProcesses()
  let gateway: SoakedGateway | null = null
  try {
    process.stdout.write(`${seconds} s, ${connections} connections, ${workers} workers, seed ${seed}\n`)
    const random = new Random(seed)
    const files = await SoakFiles.make(folder)
    const ledger = new Ledger((id) => processes.seenByApp(id))
    const ports = await processes.startApp(ledger)
    const places = {
      h1Url: `http://127.0.0.1:${ports.h1Port}`,
      h2cUrl: `h2c://127.0.0.1:${ports.h2cPort}`,
      ...{ listenPort: 0, managePort: 0, dataFolder: join(folder, 'data') },
    }
    gateway = await SoakedGateway.start(files, soakConfig(files, places, workers))
    const { port } = gateway
    const { ca } = files
    await processes.startClients({ port, ca, connections, kinds, sendsGarbage: true }, ledger, random)
    const memory = new MemoryWatch(gateway, seconds)
    const disturbances = new Disturbances(gateway, files, random, { reloadMs, killMs })
    await Promise.race([progress(seconds, ledger, disturbances, gateway), processes.crash])
    await disturbances.stop()
    const growths = await memory.stop()
    const firstWorkers = gateway.workers
    await Promise.race([processes.stopClients(), processes.crash])
    const problems = [
      ...disturbances.problems,
      ...ledger.wrong,
      ...(await endProblems(gateway, ports)),
      ...sumProblems(await gateway.metrics(), ledger, disturbances.kills),
    ]
    const metrics = await gateway.metrics()
    problems.push(...(await stopProblems(gateway, firstWorkers)))
    const { accounts, unaccounted } = await ledger.accounts(disturbances.kills)
    problems.push(
      ...unaccounted,
      ...growths.filter(({ isFlat }) => isFlat === false).map(({ name }) => `${name} grows`),
    )
    const notes = [
      `connection failures: ${metrics.show('connection_failures_total')}`,
      `upstream requests: ${metrics.show('upstream_requests_total')}`,
      `most file descriptors: ${[...memory.descriptors].map(([pid, most]) => `worker ${pid} ${most}`).join(', ')}`,
    ]
    writeFileSync(join(folder, 'problems.txt'), problems.join('\n'))
    process.stdout.write(report({ ledger, disturbances, accounts, growths, problems, notes }))
    return problems.length === 0 ? 0 : 1
  } finally {
    processes.kill()
    if (gateway !== null) await kill(gateway)
    if (keep) process.stdout.write(`kept: ${folder}\n`)
    else rmSync(folder, { recursive: true, force: true })
  }
}

function options() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '600' },
      connections: { type: 'string', default: '200' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      workers: { type: 'string', default: '2' },
      /** Of request, and no others: `upload,early-close`. */
      kinds: { type: 'string' },
      'reload-every': { type: 'string', default: '5' },
      'kill-every': { type: 'string', default: '30' },
      /** Keeps the folder with the files, the log and every problem. */
      keep: { type: 'boolean', default: false },
      /** Each worker lives through it: what it keeps for itself shows. */
      'no-kills': { type: 'boolean', default: false },
    },
  })
  return {
    seconds: Number(values.seconds),
    connections: Number(values.connections),
    seed: Number(values.seed),
    workers: Number(values.workers),
    reloadMs: Number(values['reload-every']) * 1000,
    keep: values.keep,
    kinds: values.kinds === undefined ? null : kindsIn(values.kinds),
    killMs: values['no-kills'] ? null : Number(values['kill-every']) * 1000,
  }
}

function kindsIn(text: string): readonly Kind[] {
  return text.split(',').map((name) => {
    const kind = ALL_KINDS.find((each) => each === name)
    if (kind === undefined) throw new Error(`there is no kind of request called ${name}`)
    return kind
  })
}

async function progress(
  seconds: number,
  ledger: Ledger,
  disturbances: Disturbances,
  gateway: SoakedGateway,
): Promise<void> {
  const startedMs = performance.now()
  for (let at = 0; at < seconds; at = (performance.now() - startedMs) / 1000) {
    await wait(Math.min(PROGRESS_MS, (seconds - at) * 1000))
    const { kills, problems } = disturbances
    const bad = ledger.wrong.length + problems.length
    const counts = `${ledger.total('right')} right, ${ledger.total('lost')} lost, ${bad} wrong, ${kills.length} kills`
    process.stdout.write(`${Math.round((performance.now() - startedMs) / 1000)} s: ${counts}\n`)
    if (!isAlive(gateway.pid)) throw new Error('gatehouse has ended')
  }
}

/** SIGTERM: it ends well, in time, and as a whole. */
async function stopProblems(gateway: SoakedGateway, workers: readonly number[]): Promise<readonly string[]> {
  gateway.signal('SIGTERM')
  const late = wait(STOP_MS_MAX, 'late' as const, { ref: false })
  const end = await Promise.race([gateway.exit, late])
  if (end === 'late') return ['it does not end at SIGTERM']
  const problems = end[0] === 0 ? [] : [`it ended with ${end}`]
  return [...problems, ...workers.filter(isAlive).map((pid) => `worker ${pid} has stayed`)]
}

async function kill(gateway: SoakedGateway): Promise<void> {
  if (!isAlive(gateway.pid)) return
  const { workers } = gateway
  gateway.signal('SIGKILL')
  for (const pid of workers) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  await gateway.exit
}

const PROGRESS_MS = 10_000
const STOP_MS_MAX = 30_000

process.exitCode = await soak()

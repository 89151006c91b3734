import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Disturbances } from './disturbances.ts'
import { SERVER_NAMES, SoakFiles } from './files.ts'
import { SoakedGateway, soakConfig } from './gateway.ts'
import { Ledger } from './ledger.ts'
import { MemoryWatch } from './memory.ts'
import type { FromApp, FromClients, Seen } from './messages.ts'
import { ALL_KINDS, type Kind } from './plan.ts'
import { Random } from './random.ts'
import { report } from './report.ts'
import { isAlive } from './sockets.ts'
import { endProblems, sumProblems } from './verdict.ts'

/** Traffic of every kind for a long time, disturbed in every way, of which nothing may be wrong and nothing may stay. */
async function soak(): Promise<number> {
  const { seconds, connections, seed, workers, reloadMs, killMs, keep, kinds } = options()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'))
  const children: ChildProcess[] = []
  let gateway: SoakedGateway | null = null
  try {
    process.stdout.write(`${seconds} s, ${connections} connections, ${workers} workers, seed ${seed}\n`)
    const random = new Random(seed)
    const files = await SoakFiles.make(folder)
    const app = child(children, 'app.ts')
    const ledger = new Ledger((id) => seenBy(app, id))
    const ports = await message(app, 'app:ready')
    app.on('message', (said: FromApp) => ledger.app(said))
    gateway = await SoakedGateway.start(files, soakConfig(files, ports, workers))
    const clients = await startClients(children, gateway, files, ledger, connections, kinds, random)
    const memory = new MemoryWatch(gateway, seconds)
    const disturbances = new Disturbances(gateway, files, random, { reloadMs, killMs })
    await Promise.race([progress(seconds, ledger, disturbances, gateway), crashed.promise])
    await disturbances.stop()
    const growths = await memory.stop()
    const firstWorkers = gateway.workers
    await Promise.race([stopClients(clients), crashed.promise])
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
    for (const each of children) each.kill('SIGKILL')
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
      /** The folder with the files, the log and all that was wrong stays. */
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

function child(children: ChildProcess[], file: string): ChildProcess {
  const made = fork(new URL(file, import.meta.url), { serialization: 'advanced' })
  made.once('exit', (code) => {
    if (code === null) return // killed, at the end
    crashed.reject(new Error(`${file} has ended with ${code}`))
  })
  children.push(made)
  return made
}

/** The next of a kind. */
function message<Kind extends (FromApp | FromClients)['kind']>(
  from: ChildProcess,
  kind: Kind,
): Promise<Extract<FromApp | FromClients, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const hear = (said: FromApp | FromClients) => {
      if (said.kind !== kind) return
      from.off('message', hear)
      resolve(said as Extract<FromApp | FromClients, { kind: Kind }>)
    }
    from.on('message', hear)
    from.once('exit', (code) => reject(new Error(`a process of the soak has ended with ${code}`)))
  })
}

function seenBy(app: ChildProcess, id: string): Promise<Seen> {
  return new Promise((resolve) => {
    const hear = (said: FromApp) => {
      if (said.kind !== 'app:seen' || said.id !== id) return
      app.off('message', hear)
      resolve(said.seen)
    }
    app.setMaxListeners(0).on('message', hear)
    app.send({ kind: 'app:seen?', id })
  })
}

async function startClients(
  children: ChildProcess[],
  { port }: SoakedGateway,
  { ca }: SoakFiles,
  ledger: Ledger,
  connections: number,
  kinds: readonly Kind[] | null,
  random: Random,
): Promise<readonly ChildProcess[]> {
  const count = Math.ceil(connections / LANES_EACH)
  const started = Array.from({ length: count }, () => child(children, 'clients.ts'))
  for (const [index, clients] of started.entries()) {
    await message(clients, 'clients:ready')
    clients.on('message', (said: FromClients) => {
      if (said.kind === 'clients:tally') ledger.tally(said.tally)
      if (said.kind !== 'clients:failure') return
      ledger.failure(said.failure)
      const { outcome, kind, what } = said.failure
      if (outcome === 'wrong') process.stdout.write(`wrong: ${kind}, ${what}\n`)
    })
    const lanes = Math.ceil((connections - index) / count)
    const seed = random.between(0, 2 ** 31)
    clients.send({ kind: 'clients:start', port, ca, serverNames: SERVER_NAMES, lanes, seed, kinds })
  }
  return started
}

async function stopClients(clients: readonly ChildProcess[]): Promise<void> {
  const done = clients.map((each) => message(each, 'clients:done'))
  for (const each of clients) each.send({ kind: 'clients:stop' })
  await Promise.all(done)
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

/** More than that keep one process of clients busy. */
const LANES_EACH = 100
const PROGRESS_MS = 10_000
const STOP_MS_MAX = 30_000

/** A process of the soak's own has ended: a bug of the soak. */
const crashed = Promise.withResolvers<never>()
crashed.promise.catch(() => undefined) // whoever waits for something else hears of it next
// Whoever ends it early leaves no gateway behind.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => crashed.reject(new Error(`ended by ${signal}`)))
process.exitCode = await soak()

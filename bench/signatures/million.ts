import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeLongList } from './long-list.ts'

/**
 * What a long list of a million signatures costs a running `gatehouse proxy` of dist/: how long until it is in use, how
 * long the process that serves stands still meanwhile, and what memory it has. Each row says how fast the machine
 * was: the median time of a loop that always does the same. `npm run bench:million -- [COUNT]`
 */
async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-million-'))
  const list = join(folder, 'long.jsonl')
  const app = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1')
  await once(app, 'listening')
  let gateway: ChildProcess | null = null
  try {
    await writeLongList(list, 1000)
    const started = await start(folder, list, (app.address() as AddressInfo).port)
    gateway = started.gateway
    const load = new Load(started.port)
    await sleep(2000)
    load.turn()
    await started.delay()
    await sleep(3000)
    say('serving', gateway, load.turn(), await started.delay())
    for (let round = 1; round <= ROUNDS; round++) {
      await writeLongList(list, COUNT)
      load.turn() // writing a million lines is work of this process
      await started.delay()
      const from = performance.now()
      await started.reloaded()
      const seconds = (performance.now() - from) / 1000
      await sleep(1000) // the one before is let go
      say(`list ${round}, in use after ${seconds.toFixed(1)} s`, gateway, load.turn(), await started.delay())
    }
    load.stop()
  } finally {
    gateway?.kill('SIGKILL')
    app.close()
    app.closeAllConnections()
    rmSync(folder, { recursive: true })
  }
}

/** Milliseconds between two turns of the loop, at most: by the clock, and of computing. */
interface Delay {
  readonly clockMs: number
  readonly computingMs: number
}

interface Started {
  readonly gateway: ChildProcess
  readonly port: number
  /** Since the last call. */
  delay(): Promise<Delay>
  reloaded(): Promise<void>
}

async function start(folder: string, list: string, appPort: number): Promise<Started> {
  const where = ['--listen', '127.0.0.1:0', '--manage', '127.0.0.1:0', '--data', join(folder, 'data')]
  const args = [PROGRAM, 'proxy', '--upstream', `http://127.0.0.1:${appPort}`, ...where]
  const gateway = spawn(process.execPath, ['--import', `data:text/javascript,${PROBE}`, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, GATEHOUSE_SIGNATURES: list },
  })
  let text = ''
  for (const stream of [gateway.stdout, gateway.stderr])
    stream.on('data', (chunk) => {
      text += chunk
    })
  const said = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (let left = 1200; left > 0; left--, await sleep(100)) {
      const found = pattern.exec(text)
      text = found === null ? text : text.slice(found.index + found[0].length)
      if (found !== null) return found
    }
    throw new Error(`the gateway has not said ${pattern}: ${text}`)
  }
  const [, port] = await said(/"listen":"127\.0\.0\.1:(\d+)"/)
  await said(/"ready"/)
  return {
    gateway,
    port: Number(port),
    async delay() {
      gateway.kill('SIGUSR2')
      const [, clock, computing] = await said(/stood still (\S+) (\S+)\n/)
      return { clockMs: Number(clock), computingMs: Number(computing) }
    },
    async reloaded() {
      await said(/"reloaded"/)
    },
  }
}

interface Turn {
  /** The slowest request. */
  readonly longestMs: number
  /** Requests. */
  readonly count: number
  /** How fast the machine was. */
  readonly loopMs: number
}

/** Light: a request every ten milliseconds. */
class Load {
  #longestMs = 0
  #count = 0
  #loopsMs: number[] = []
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4, rejectUnauthorized: false })
  readonly #timer: NodeJS.Timeout
  readonly #loopTimer = setInterval(() => this.#loopsMs.push(loopMs()), 250)

  constructor(port: number) {
    this.#timer = setInterval(() => {
      const from = performance.now()
      const sent = request({ host: '127.0.0.1', port, agent: this.#agent }, (response) => {
        response.resume().on('end', () => {
          this.#longestMs = Math.max(this.#longestMs, performance.now() - from)
          this.#count++
        })
      })
      sent.end()
    }, 10)
  }

  /** Since the last one. */
  turn(): Turn {
    const loopMs = this.#loopsMs.sort((one, other) => one - other)[this.#loopsMs.length >> 1] ?? Number.NaN
    const turn = { longestMs: this.#longestMs, count: this.#count, loopMs }
    this.#longestMs = 0
    this.#count = 0
    this.#loopsMs = []
    return turn
  }

  stop(): void {
    clearInterval(this.#timer)
    clearInterval(this.#loopTimer)
    this.#agent.destroy()
  }
}

function say(
  what: string,
  { pid }: ChildProcess,
  { longestMs, count, loopMs }: Turn,
  { clockMs, computingMs }: Delay,
): void {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mib = (name: string) => Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)![1]) / 1024)
  process.stdout.write(
    `${what.padEnd(27)} loop ${loopMs.toFixed(2)} ms; stood still ${clockMs.toFixed(1)} ms at most, computing ${computingMs.toFixed(1)} ms, the slowest of ${count} requests ` +
      `${longestMs.toFixed(1)} ms, ${mib('VmRSS')} MiB resident, ${mib('VmHWM')} at most\n`,
  )
}

/** CPU time: what others take is not in it, but a processor that is slowed down shows. */
function loopMs(): number {
  process.cpuUsage() // as in PROBE
  const before = process.threadCpuUsage()
  for (let i = 0; i < 300_000; i++) SINK.last = (Math.imul(SINK.last, 31) + i) | 0
  process.cpuUsage()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

const SINK = { last: 0 }
const COUNT = Number(process.argv[2] ?? 1_000_000)
const ROUNDS = 3
const PROGRAM = new URL('../../dist/bin.js', import.meta.url).pathname
/**
 * Starts to count anew each time it is asked. What the thread itself has computed between two turns is not made longer by
 * others who want the processor. Linux counts it at each tick, four milliseconds apart, and at every request for
 * that of the whole process.
 */
const PROBE = encodeURIComponent(`
  import { monitorEventLoopDelay } from 'node:perf_hooks'
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  let before = 0
  let longest = 0
  setInterval(() => {
    process.cpuUsage()
    const { user, system } = process.threadCpuUsage()
    longest = Math.max(longest, user + system - before)
    before = user + system
  }, 1).unref()
  process.on('SIGUSR2', () => {
    console.log('stood still ' + (delay.max / 1e6 - 1) + ' ' + longest / 1e3)
    delay.reset()
    longest = 0
  })`)

await main()
process.exit()

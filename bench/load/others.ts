import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import tls from 'node:tls'
import { usage } from './loads.ts'

/** What others had of a gateway while something was done to it. */
export interface Taken {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly flood: number
  /** Of the processor that the gateway has. */
  readonly busy: number
}

/** How long the others wait meanwhile. `argv`: of the program that floods; `null`: no flood. */
export async function measure({ port, child }: Gate, argv: readonly string[] | null): Promise<Taken> {
  const flood = argv === null ? null : fork(process.argv[1]!, argv)
  // Those who look at the clock, and the app, do not wait for the flood's own work: it has what they leave, at once.
  if (flood !== null)
    execFileSync('chrt', ['--all-tasks', '--idle', '--pid', '0', String(flood.pid)], { stdio: 'ignore' })
  // What it begins with, 500 connections of a moment, is not measured.
  if (flood !== null) await once(flood, 'message')
  await wait(WARM_MS)
  const [before, startMs] = [usage(child.pid!).cpuSeconds, performance.now()]
  const others = fork(CLOCKS, [String(port)])
  const [timesMs] = (await once(others, 'message')) as [number[]]
  const busy = (usage(child.pid!).cpuSeconds - before) / ((performance.now() - startMs) / 1_000)
  const sent = flood === null ? 0 : await stopped(flood)
  timesMs.sort((a, b) => a - b)
  const at = (part: number) => timesMs[Math.floor(timesMs.length * part)]!
  return { p50Ms: at(0.5), p99Ms: at(0.99), flood: sent, busy }
}

/** How many it has had answered, or done, in a second. */
async function stopped(flood: ChildProcess): Promise<number> {
  flood.send('stop')
  const [rate] = (await once(flood, 'message')) as [number]
  return rate
}

/** The others: so many a second, each of them when its time has come, however long the one before takes. */
export async function runOthers(port: number): Promise<void> {
  const connections = await Promise.all(Array.from({ length: 32 }, () => connect(port)))
  const timesMs: number[] = []
  const request = `GET / HTTP/1.1\r\nHost: localhost:${port}\r\nUser-Agent: others\r\nAccept: */*\r\n\r\n`
  const endMs = performance.now() + OTHERS_MS
  let next = 0
  for (let dueMs = performance.now(); dueMs < endMs; dueMs += 1_000 / OTHERS_PER_SECOND) {
    while (performance.now() < dueMs) await wait(1)
    const socket = connections[next++ % connections.length]!
    const startMs = performance.now()
    socket.waiting.push(() => timesMs.push(performance.now() - startMs))
    socket.write(request)
  }
  await wait(500)
  // Those that have not been answered, or not with 200, have waited until now.
  for (const { waiting } of connections) for (const answered of waiting) answered()
  process.send!(timesMs, () => process.exit(0))
}

export interface Client {
  readonly waiting: (() => void)[]
  write(text: string): void
}

/** Answers are as many as there are heads, for none has a body that looks like one. */
export async function connect(port: number): Promise<Client> {
  const socket = tls.connect({
    port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  })
  await once(socket, 'secureConnect')
  const waiting: (() => void)[] = []
  let rest = ''
  socket.on('data', (bytes: Buffer) => {
    const parts = (rest + bytes.toString('latin1')).split('HTTP/1.1 200')
    for (let i = 1; i < parts.length; i++) waiting.shift()?.()
    rest = parts.at(-1)!.slice(-11)
  })
  return { waiting, write: (text) => void socket.write(text) }
}

export interface Gate {
  readonly child: ChildProcess
  readonly port: number
  readonly manage: string
}

/** On one processor, the first, with these settings; this process, and what it starts from here on, has the other. */
export async function startGate(folder: string, appPort: number, settings: string): Promise<Gate> {
  const [cert, key, config] = ['cert.pem', 'key.pem', 'gatehouse.yaml'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', cert], {
    stdio: 'ignore',
  })
  writeFileSync(config, settings)
  const own = [
    '--listen',
    '127.0.0.1:0',
    '--manage',
    '127.0.0.1:0',
    '--config',
    config,
    '--cert',
    cert,
    '--key',
    key,
  ]
  const program = [
    process.execPath,
    'src/bin.js',
    'proxy',
    ...own,
    '--upstream',
    `http://127.0.0.1:${appPort}`,
  ]
  // With all its threads.
  execFileSync('taskset', ['-a', '-c', '-p', '1', String(process.pid)], { stdio: 'ignore' })
  const child = spawn('taskset', ['-c', '0', ...program], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  for await (const chunk of child.stderr) {
    said += chunk
    const line = said.split('\n').find((each) => each.includes('"message":"ready"') && each.endsWith('}'))
    if (line === undefined) continue
    child.stderr.resume()
    const { listen, manage } = JSON.parse(line) as { listen: string; manage: string }
    return { child, port: Number(listen.split(':').at(-1)), manage: `http://${manage}` }
  }
  throw new Error(said)
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

export function portOf(server: { address(): unknown }): number {
  return (server.address() as AddressInfo).port
}

/** Those who look at the clock have a process of their own. */
const CLOCKS = new URL('./others-clocks.ts', import.meta.url).pathname
const OTHERS_PER_SECOND = 500
const OTHERS_MS = 4_000
const WARM_MS = 1_000

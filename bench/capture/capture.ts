import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeLargeCapture } from './large-capture.ts'

const MEBIBYTE = 1024 * 1024
const ROUNDS = 3

/**
 * How long `gatehouse analyze` takes for a large capture, beside tshark asked for the same: which frames hold a
 * ClientHello, and which a request. The two take turns, so that the machine's mood falls on both; the figures are each
 * one's best. `node bench/capture/capture.ts [MEBIBYTES]`
 */
const mebibytes = Number(process.argv[2] ?? 512)
const folder = await mkdtemp(join(tmpdir(), 'gatehouse-bench-'))
try {
  const file = join(folder, 'large.pcap')
  const packets = await writeLargeCapture(file, mebibytes * MEBIBYTE, chromeHello())
  const { size } = await stat(file)
  process.stdout.write(`${(size / MEBIBYTE).toFixed(0)} MiB, ${packets} packets, best of ${ROUNDS}\n`)
  await compare(programs(file), size)
} finally {
  await rm(folder, { recursive: true })
}

interface Program {
  readonly name: string
  readonly argv: readonly string[]
  /** What a line of its output is about. */
  kindOf(line: string): 'hello' | 'request'
}

function programs(file: string): Program[] {
  const gatehouse: Program = {
    name: 'gatehouse',
    argv: [process.execPath, 'src/bin.js', 'analyze', '--json', file],
    kindOf: (line) => (line.startsWith('{"kind":"tls"') ? 'hello' : 'request'),
  }
  if (spawnSync('tshark', ['--version']).error !== undefined) {
    process.stdout.write('tshark is not installed: nothing to compare with\n')
    return [gatehouse]
  }
  const fields = ['frame.number', 'ip.src', 'tls.handshake.ja3', 'http.request.method']
  const tshark: Program = {
    name: 'tshark',
    argv: [
      ...['tshark', '-r', file, '-Y', 'tls.handshake.type==1||http.request', '-T', 'fields'],
      ...fields.flatMap((field) => ['-e', field]),
    ],
    kindOf: (line) => (line.split('\t')[2] === '' ? 'request' : 'hello'),
  }
  return [gatehouse, tshark]
}

async function compare(all: readonly Program[], size: number): Promise<void> {
  const best = all.map((): Run => ({ wallS: Infinity, cpuS: Infinity, peakMib: Infinity, found: '' }))
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, program] of all.entries()) best[i] = better(best[i]!, await measure(program))
  }
  process.stdout.write(
    `${''.padEnd(11)}${['wall s', 'CPU s', 'peak MiB', 'MiB/s'].map(column).join('')}  found\n`,
  )
  for (const [i, { name }] of all.entries()) {
    const { wallS, cpuS, peakMib, found } = best[i]!
    const figures = [
      wallS.toFixed(2),
      cpuS.toFixed(2),
      peakMib.toFixed(0),
      (size / MEBIBYTE / wallS).toFixed(0),
    ]
    process.stdout.write(`${name.padEnd(11)}${figures.map(column).join('')}  ${found}\n`)
  }
  const [ours, theirs] = best
  if (theirs === undefined || ours === undefined) return
  const ratios = [theirs.wallS / ours.wallS, theirs.cpuS / ours.cpuS, theirs.peakMib / ours.peakMib]
  process.stdout.write(`${'ratio'.padEnd(11)}${ratios.map((ratio) => column(ratio.toFixed(1))).join('')}\n`)
  if (ours.found !== theirs.found) throw new Error('they did not find the same number of things')
}

interface Run {
  readonly wallS: number
  readonly cpuS: number
  readonly peakMib: number
  readonly found: string
}

async function measure({ argv: [program, ...rest], kindOf }: Program): Promise<Run> {
  const from = performance.now()
  const child = spawn(program!, rest, { stdio: ['ignore', 'pipe', 'ignore'] })
  const output = text(child.stdout)
  let cpuS = 0
  let peakMib = 0
  // The kernel forgets a process when it ends: what it had used by the last look counts.
  for (; child.exitCode === null && child.signalCode === null; await sleep(10)) {
    const used = usage(child.pid!)
    if (used === null) continue
    cpuS = used.cpuS
    peakMib = used.peakMib
  }
  const wallS = (performance.now() - from) / 1000
  const counts = { hello: 0, request: 0 }
  for (const line of (await output).trimEnd().split('\n')) counts[kindOf(line)]++
  return { wallS, cpuS, peakMib, found: `${counts.hello} hellos, ${counts.request} requests` }
}

/** From Linux's /proc: user and system time in hundredths of a second, and the most memory it ever had. */
function usage(pid: number): { cpuS: number; peakMib: number } | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
    const peakKib = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    if (peakKib === undefined) return null
    return { cpuS: (Number(fields[11]) + Number(fields[12])) / 100, peakMib: Number(peakKib) / 1024 }
  } catch {
    return null
  }
}

function better(one: Run, other: Run): Run {
  return {
    wallS: Math.min(one.wallS, other.wallS),
    cpuS: Math.min(one.cpuS, other.cpuS),
    peakMib: Math.min(one.peakMib, other.peakMib),
    found: other.found,
  }
}

function column(text: string): string {
  return text.padStart(10)
}

function chromeHello(): Buffer {
  const { stream_hex }: { stream_hex: string } = JSON.parse(
    readFileSync(new URL('../micro/chrome-hello.json', import.meta.url), 'utf8'),
  )
  return Buffer.from(stream_hex, 'hex')
}

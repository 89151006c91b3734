import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'

/** One kind of load, driven by a program from outside. */
export interface Load {
  readonly name: string
  run(port: number, seconds: number, processor: string): Promise<Result>
}

export interface Result {
  readonly requests: number
  readonly seconds: number
  readonly errors: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export const LOADS: readonly Load[] = [
  { name: 'h1 keep-alive', run: (port, seconds, on) => wrk(on, seconds, ['-c', '64', url(port, '/')]) },
  {
    name: 'new TLS connection',
    run: (port, seconds, on) => wrk(on, seconds, ['-c', '16', '-H', 'Connection: close', url(port, '/')]),
  },
  { name: '1 MiB response', run: (port, seconds, on) => wrk(on, seconds, ['-c', '16', url(port, '/big')]) },
  {
    name: 'h2, 64 connections',
    run: (port, seconds, on) => h2load(on, seconds, ['-c', '64', '-m', '1', url(port, '/')]),
  },
]

/** Processor seconds and resident memory of a process and all below it. */
export function usage(pid: number): { readonly cpuSeconds: number; readonly rssBytes: number } {
  let cpuSeconds = 0
  let rssBytes = 0
  for (const each of family(pid)) {
    try {
      const fields = readFileSync(`/proc/${each}/stat`, 'utf8').split(') ')[1]!.split(' ')
      cpuSeconds += (Number(fields[11]) + Number(fields[12])) / TICKS
      rssBytes += Number(fields[21]) * PAGE_BYTES
    } catch {
      // It ended in the meantime.
    }
  }
  return { cpuSeconds, rssBytes }
}

function family(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const parent = Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]!.split(' ')[1])
      children.set(parent, [...(children.get(parent) ?? []), Number(name)])
    } catch {
      // It ended in the meantime.
    }
  }
  const all = [pid]
  for (const each of all) all.push(...(children.get(each) ?? []))
  return all
}

async function wrk(processor: string, seconds: number, args: readonly string[]): Promise<Result> {
  const { stdout } = await run('taskset', [
    '-c',
    processor,
    'wrk',
    '-t',
    '1',
    '-d',
    `${seconds}s`,
    '--latency',
    ...args,
  ])
  const total = /(\d+) requests in ([\d.]+)(m?s)/.exec(stdout)
  const errors = /Non-2xx or 3xx responses: (\d+)/.exec(stdout)
  const broken = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(stdout)
  return {
    requests: Number(total?.[1] ?? 0),
    seconds: Number(total?.[2] ?? seconds),
    errors: Number(errors?.[1] ?? 0) + (broken?.slice(1).reduce((sum, each) => sum + Number(each), 0) ?? 0),
    p50Ms: milliseconds(/50%\s+([\d.]+\w+)/.exec(stdout)?.[1]),
    p99Ms: milliseconds(/99%\s+([\d.]+\w+)/.exec(stdout)?.[1]),
  }
}

async function h2load(processor: string, seconds: number, args: readonly string[]): Promise<Result> {
  const { stdout } = await run('taskset', [
    '-c',
    processor,
    'h2load',
    '-t',
    '1',
    '-D',
    String(seconds),
    ...args,
  ])
  const done = /requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed/.exec(stdout)
  return {
    requests: Number(done?.[3] ?? 0),
    seconds,
    errors: Number(done?.[4] ?? 0),
    p50Ms: milliseconds(/time for request:\s+\S+\s+\S+\s+(\S+)/.exec(stdout)?.[1]),
    p99Ms: Number.NaN, // it only tells the mean
  }
}

function url(port: number, path: string): string {
  return `https://127.0.0.1:${port}${path}`
}

function milliseconds(text: string | undefined): number {
  const value = Number.parseFloat(text ?? 'NaN')
  return text?.endsWith('us') ? value / 1000 : text?.endsWith('ms') ? value : value * 1000
}

const run = promisify(execFile)
const TICKS = 100
const PAGE_BYTES = 4096

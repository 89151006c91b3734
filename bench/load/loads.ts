import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** One kind of load, driven by a program from outside. */
export interface Load {
  readonly name: string
  readonly isHttp2: boolean
  run(scheme: 'http' | 'https', port: number, seconds: number, processor: string): Promise<Result>
}

export interface Result {
  readonly requests: number
  readonly seconds: number
  readonly errors: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface Sample extends Result {
  /** What a request took of the processor, in the process that served and all below it. */
  readonly cpuMicros: number
}

/** Repeats a run that does not end. */
export async function sampled(pid: number, run: () => Promise<Result>): Promise<Sample> {
  for (let isLast = false; ; isLast = true) {
    const before = usage(pid).cpuSeconds
    try {
      const result = await run()
      return { ...result, cpuMicros: ((usage(pid).cpuSeconds - before) * 1e6) / result.requests }
    } catch (error) {
      if (isLast || !(error instanceof Error && 'killed' in error && error.killed === true)) throw error
    }
  }
}

export const NEW_CONNECTIONS = load(
  'a new connection for each request',
  wrk,
  ['-c', '16', '-H', 'Connection: close'],
  '/',
)

/** Each with a session of an earlier one. */
export const RESUMED_CONNECTIONS = load('a resumed connection for each request', resumed, [], '/')

/** About half of what Gatehouse can. */
const NEW_PER_SECOND = 400

export const LOADS: readonly Load[] = [
  load('h1, 64 keep-alive connections', wrk, ['-c', '64'], '/'),
  NEW_CONNECTIONS,
  load('1 MiB answers, 16 connections', wrk, ['-c', '16'], '/big'),
  load('1 MiB uploads, 16 connections', wrk, ['-c', '16', '-s', uploads()], '/upload'),
  { ...load('h2, 64 connections', h2load, ['-c', '64', '-m', '1'], '/'), isHttp2: true },
  {
    ...load(
      'h2, 1 MiB uploads, 16 connections',
      h2load,
      ['-c', '16', '-m', '1', '-d', mebibyte()],
      '/upload',
    ),
    isHttp2: true,
  },
  { ...load(`h2, ${NEW_PER_SECOND} new connections a second`, newConnections, [], '/'), isHttp2: true },
]

/** As many as can be on 64 connections, by the one program that speaks both. */
export const KEEP_ALIVE: readonly Load[] = [
  load('h1', h2load, ['--h1', '-c', '64'], '/'),
  { ...load('h2', h2load, ['-c', '64', '-m', '1'], '/'), isHttp2: true },
]

/** This many requests a second, for every server. */
export function steady(protocol: 'h1' | 'h2', requestsPerSecond: number): Load {
  const clients = 32
  const rate = Math.max(1, Math.floor(requestsPerSecond / clients))
  const args = [...(protocol === 'h1' ? ['--h1'] : ['-m', '1']), '-c', String(clients), '--rps', String(rate)]
  const name = `${protocol}, ${rate * clients} requests/s (half of what Gatehouse can)`
  return { ...load(name, h2load, args, '/'), isHttp2: protocol === 'h2' }
}

/** Keep-alive requests of HTTP/1 with these headers besides, to a path of the app. */
export function withHeaders(path: string, headers: readonly string[], connections = 64): Load {
  const args = ['-c', String(connections), ...headers.flatMap((header) => ['-H', header])]
  return load(`h1, ${connections} connections`, wrk, args, path)
}

type Driver = (processor: string, seconds: number, args: readonly string[]) => Promise<Result>

function load(name: string, drive: Driver, args: readonly string[], path: string): Load {
  return {
    name,
    isHttp2: false,
    run: (scheme, port, seconds, processor) =>
      drive(processor, seconds, [...args, `${scheme}://127.0.0.1:${port}${path}`]),
  }
}

/**
 * Processor seconds (user and system) and resident memory of a process and all below it. The scheduler's own count is
 * exact; that of /proc/PID/stat is of whole ticks.
 */
export function usage(pid: number): { readonly cpuSeconds: number; readonly rssBytes: number } {
  let cpuSeconds = 0
  let rssBytes = 0
  for (const each of family(pid)) {
    try {
      const fields = readFileSync(`/proc/${each}/stat`, 'utf8').split(') ')[1]!.split(' ')
      rssBytes += Number(fields[21]) * PAGE_BYTES
      for (const thread of readdirSync(`/proc/${each}/task`))
        cpuSeconds +=
          Number(readFileSync(`/proc/${each}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e9
    } catch {
      // It ended in the meantime.
    }
  }
  return { cpuSeconds, rssBytes }
}

/** It, and all below it. */
export function family(pid: number): readonly number[] {
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
  const { stdout } = await run(
    'taskset',
    ['-c', processor, 'wrk', '-t', '1', '-d', `${seconds}s`, '--latency', ...args],
    seconds,
  )
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
  return h2loadWith(processor, seconds, ['-D', String(seconds), ...args])
}

/** Each connection makes one request. */
async function newConnections(processor: string, seconds: number, args: readonly string[]): Promise<Result> {
  const count = String(Math.max(1, Math.round(seconds * NEW_PER_SECOND)))
  return h2loadWith(processor, seconds, ['-n', count, '-c', count, '-r', String(NEW_PER_SECOND), ...args])
}

async function h2loadWith(processor: string, seconds: number, args: readonly string[]): Promise<Result> {
  const log = join(tmpdir(), `h2load-${process.pid}.log`)
  const { stdout } = await run(
    'taskset',
    [...['-c', processor, 'h2load', '-t', '1', '--log-file', log], ...args],
    seconds,
  )
  const done = /requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed/.exec(stdout)
  const times = logged(log)
  return {
    requests: Number(done?.[3] ?? 0),
    seconds,
    errors: Number(done?.[4] ?? 0),
    p50Ms: times[Math.floor(times.length * 0.5)] ?? Number.NaN,
    p99Ms: times[Math.floor(times.length * 0.99)] ?? Number.NaN,
  }
}

async function resumed(processor: string, seconds: number, args: readonly string[]): Promise<Result> {
  const { stdout } = await run(
    'taskset',
    ['-c', processor, process.execPath, RESUMED, args.at(-1)!, String(seconds)],
    seconds,
  )
  const done = /(\d+) requests in ([\d.]+) s, (\d+) errors/.exec(stdout)
  return {
    requests: Number(done?.[1] ?? 0),
    seconds: Number(done?.[2] ?? seconds),
    errors: Number(done?.[3] ?? 0),
    p50Ms: Number.NaN,
    p99Ms: Number.NaN,
  }
}

/** A line a request: when it started, its status, how many microseconds it took. */
function logged(log: string): readonly number[] {
  const times = readFileSync(log, 'utf8')
    .split('\n')
    .map((line) => Number(line.split('\t')[2]) / 1000)
    .filter((time) => time > 0)
  rmSync(log)
  return times.sort((a, b) => a - b)
}

/** wrk takes a body from a script only. */
function uploads(): string {
  return temporary('wrk-upload.lua', "wrk.method = 'POST'\nwrk.body = string.rep('x', 1024 * 1024)\n")
}

function mebibyte(): string {
  return temporary('h2load-upload', 'x'.repeat(1024 * 1024))
}

function temporary(name: string, text: string): string {
  const file = join(tmpdir(), `${process.pid}-${name}`)
  writeFileSync(file, text)
  process.once('exit', () => rmSync(file))
  return file
}

function milliseconds(text: string | undefined): number {
  const value = Number.parseFloat(text ?? 'NaN')
  return text?.endsWith('us') ? value / 1000 : text?.endsWith('ms') ? value : value * 1000
}

function run(program: string, args: readonly string[], seconds: number) {
  return promisify(execFile)(program, args, { timeout: (seconds + END_SECONDS_MAX) * 1000 })
}

const RESUMED = new URL('./resumed.ts', import.meta.url).pathname
/** On some runs h2load misses the end of its time and goes on for ever. */
const END_SECONDS_MAX = 20
const PAGE_BYTES = 4096

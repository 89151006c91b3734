import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { SoakFiles } from './files.ts'
import { commandOf } from './sockets.ts'
import { until } from './until.ts'

/** What is started, and how. */
export interface Started {
  readonly command: 'up' | 'proxy' | 'manage'
  /** What its files are called. */
  readonly name: string
  /** Modules that are loaded into each of its processes before anything of its own. */
  readonly preloads: readonly string[]
}

/** The gatehouse that is soaked, as an operator starts it: `up`, or another command that serves. */
export class SoakedGateway {
  readonly port: number
  readonly managePort: number
  readonly pid: number
  readonly exit: Promise<readonly [code: number | null, signal: string | null]>
  readonly #child: ChildProcess
  readonly #liveFile: string

  static async start(
    files: SoakFiles,
    config: string,
    { command = 'up', name = 'gatehouse', preloads = [] }: Partial<Started> = {},
  ): Promise<SoakedGateway> {
    const configFile = join(files.folder, `${name}.yaml`)
    writeFileSync(configFile, config)
    const liveFile = join(files.folder, 'live-memory.txt')
    const imports = [LIVE_MEMORY, ...preloads].flatMap((module) => ['--import', module])
    const child = spawn(process.execPath, [...imports, PROGRAM, command, '--config', configFile], {
      cwd: files.folder,
      env: { ...process.env, SOAK_LIVE_FILE: liveFile },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const logFile = join(files.folder, `${name}.log`)
    const log = createWriteStream(logFile, { flags: 'a' })
    child.stderr.pipe(log)
    const exit = once(child, 'exit') as Promise<[number | null, string | null]>
    let said = ''
    const ready = new Promise<Record<string, unknown>>((resolve) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said = said.length > LOG_START_MAX ? said : said + text
        const line = said.split('\n').find((each) => each.includes('"message":"ready"'))
        if (line?.endsWith('}') === true) resolve(JSON.parse(line))
      })
    })
    const late = wait(START_MS_MAX, null, { ref: false })
    const first = await Promise.race([ready, exit.then(() => null), late])
    if (first === null) {
      child.kill('SIGKILL')
      throw new Error(`gatehouse has not started: ${said}`)
    }
    return new SoakedGateway(child, exit, liveFile, portOf(first['listen']), portOf(first['manage']))
  }

  private constructor(
    child: ChildProcess,
    exit: SoakedGateway['exit'],
    liveFile: string,
    port: number,
    managePort: number,
  ) {
    this.#child = child
    this.#liveFile = liveFile
    this.pid = child.pid!
    this.exit = exit
    this.port = port
    this.managePort = managePort
  }

  /** The youngest last. Beside them is now and then a process that makes an index of signatures. */
  get workers(): readonly number[] {
    const children = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8')
    return children
      .split(' ')
      .filter(Boolean)
      .map(Number)
      .filter((pid) => commandOf(pid).includes('worker-process'))
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** What the primary still needs once it has collected its garbage. */
  async primaryLiveBytes(): Promise<number> {
    rmSync(this.#liveFile, { force: true })
    this.signal('SIGUSR2')
    const read = () => (existsSync(this.#liveFile) ? Number(readFileSync(this.#liveFile, 'utf8')) : 0)
    if (!(await until(() => read() > 0, LIVE_MS_MAX)))
      throw new Error('the primary does not say what it needs')
    return read()
  }

  async metrics(): Promise<GatewayMetrics> {
    const url = `http://127.0.0.1:${this.managePort}/metrics`
    const response = await fetch(url, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(20_000),
    })
    return new GatewayMetrics(await response.text())
  }
}

/** One reading. */
export class GatewayMetrics {
  readonly #values = new Map<string, number>()

  constructor(page: string) {
    for (const line of page.split('\n')) {
      if (!line.startsWith('gatehouse_')) continue
      const blank = line.lastIndexOf(' ')
      this.#values.set(line.slice('gatehouse_'.length, blank), Number(line.slice(blank + 1)))
    }
  }

  /** Of one name, all series whose labels contain each of these. */
  sum(name: string, ...labels: readonly string[]): number {
    let sum = 0
    for (const [series, value] of this.#values) {
      const isIt = series === name || series.startsWith(`${name}{`)
      if (isIt && labels.every((label) => series.includes(label))) sum += value
    }
    return sum
  }

  /** Those that are not zero, in words. */
  show(name: string): string {
    return [...this.#values]
      .filter(([series, value]) => series.startsWith(`${name}{`) && value !== 0)
      .map(([series, value]) => `${series.slice(name.length)} ${value}`)
      .join(', ')
  }
}

export interface AppPorts {
  readonly h1Port: number
  readonly h2cPort: number
}

/** Where the gateway is, and what it is in front of. */
export interface SoakPlaces {
  readonly h1Url: string
  readonly h2cUrl: string
  readonly listenPort: number
  readonly managePort: number
  readonly dataFolder: string
}

/**
 * Every time-out is short enough to strike within a soak, and long enough for a machine that is busy. There is no
 * `requests_per_connection`: when a session of HTTP/2 ends, Node's client (24.21) drops what a slow reader of it has not
 * taken yet.
 */
export function soakConfig(
  files: SoakFiles,
  { h1Url, h2cUrl, listenPort, managePort, dataFolder }: SoakPlaces,
  workers: number,
  timeoutS = { head: 30, connect: 5 },
): string {
  const times = `head_timeout: ${timeoutS.head}s, connect_timeout: ${timeoutS.connect}s, keep_alive: ${KEEP_ALIVE_S}s`
  return `proxy:
  listen: 127.0.0.1:${listenPort}
  workers: ${workers}
  drain_timeout: ${DRAIN_S}s
  websocket_grace: 2s
  upstreams:
    - {name: app, urls: ['${h1Url}'], ${times}}
    - {name: impatient, urls: ['${h1Url}'], head_timeout: 1s, idle_timeout: 1s, keep_alive: ${KEEP_ALIVE_S}s}
    - {name: h2c, urls: ['${h2cUrl}'], ${times}}
  tls:
    certificates:
${files.certificates.map(({ certFile, keyFile }) => `      - {cert_file: '${certFile}', key_file: '${keyFile}'}`).join('\n')}
  limits: {hello_timeout: 4s, handshake_timeout: 8s, header_timeout: 4s}
manage: {listen: '127.0.0.1:${managePort}'}
data: {dir: '${dataFolder}'}
policy: {file: '${files.policyFile}'}
`
}

/** A gateway without this listener does not report it. */
function portOf(address: unknown): number {
  return Number(String(address).split(':').at(-1))
}

const PROGRAM = new URL('../../src/bin.js', import.meta.url).pathname
const LIVE_MEMORY = new URL('live-memory.ts', import.meta.url).href
const START_MS_MAX = 60_000
const LIVE_MS_MAX = 60_000
const LOG_START_MAX = 100_000
export const DRAIN_S = 20
/** After so long nothing is open to the app. */
export const KEEP_ALIVE_S = 3

import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DIRECTORY } from '../../classify/known/signer-id.ts'
import { Fault } from '../../shared/fault.ts'
import { directoryHeaders, directoryText } from '../../identity/keys/own-directory.ts'
import { makeSigningKey, type SigningKey, signingKeysText } from '../../identity/keys/signing-key.ts'
import { createLogTo } from '../../shared/log.ts'
import { DASHBOARD_PATH } from '../../manage/http/dashboard-path.ts'
import { USAGE } from '../../terminal/arguments.ts'
import { Gateway } from '../../runtime/gateway.ts'
import { type Io, paint } from '../../terminal/io.ts'
import { Screen } from '../../terminal/screen.ts'
import { type Column, renderTable } from '../../terminal/table.ts'
import type { Running } from '../../runtime/serve.ts'
import { startupFrom } from '../../runtime/startup.ts'
import { DemoApp } from './app.ts'
import { type DemoClient, demoClients, type DemoPlace, type RunningClient } from './clients.ts'
import { type SeenByGate, seenText } from './seen.ts'

interface DemoSettings {
  /** Created here, removed by the caller. */
  readonly folder: string
  readonly adminKey: string
  /** Ports; `null`: the default port or the next free one. */
  readonly listen: string | null
  readonly manage: string | null
  readonly hasClients: boolean
}

/** The whole demo. Parts are stopped in reverse order of their start. */
export class Demo implements Running {
  readonly graceMs = 0
  readonly #io: Io
  readonly #settings: DemoSettings
  readonly #stops: (() => Promise<void> | void)[] = []
  readonly #clients: ClientState[]
  #gateway: Gateway | null = null
  #place: DemoPlace | null = null
  #screen: Screen | null = null

  /** Rejects with a Fault that says what to do, and cleans up. */
  static async start(settings: DemoSettings, io: Io): Promise<Demo> {
    const demo = new Demo(settings, io)
    try {
      await demo.#start()
      return demo
    } catch (error) {
      await demo.stop()
      throw error
    }
  }

  private constructor(settings: DemoSettings, io: Io) {
    this.#settings = settings
    this.#io = io
    this.#clients = demoClients(io.env).map((client) => new ClientState(client))
  }

  async #start(): Promise<void> {
    const { folder, adminKey, listen, manage } = this.#settings
    await mkdir(folder, { mode: 0o700 })
    const app = await DemoApp.start((client, seen) => this.#told(client, seen))
    this.#stops.push(() => app.close())
    const key = makeSigningKey()
    const agent = await this.#serveDirectory(key)
    const keyFile = join(folder, 'crawler.jwk')
    await writeFile(keyFile, signingKeysText([key]), { mode: 0o600 })
    const policy = join(folder, 'policy.json')
    await writeFile(policy, JSON.stringify({ unknown_signer: { wait: '2s' } }))
    const variables = {
      GATEHOUSE_ADMIN_KEY: adminKey,
      GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true',
      GATEHOUSE_LOG_LEVEL: 'error',
    }
    const flags = {
      upstream: [app.url],
      data: [join(folder, 'data')],
      workers: ['1'],
      policy: [policy],
      listen: [await placeAt('--listen', listen, LISTEN)],
      manage: [await placeAt('--manage', manage, MANAGE)],
    }
    const { settings } = await startupFrom(flags, null, { ...this.#io, env: variables }, 'up')
    const log = createLogTo('error', { write: (line) => void this.#io.stderr.write(line) })
    const gateway = await Gateway.start(settings, log)
    this.#gateway = gateway
    this.#stops.push(() => gateway.stop(0, DRAIN_MS))
    const { development } = gateway.certificates
    const url = `https://localhost:${gateway.addresses.listen.port}`
    this.#place = { url, caFile: development!.caFile, agent, keyFile, folder }
  }

  /** Serves the crawler's key directory; its URL is the crawler's agent id. */
  async #serveDirectory(key: SigningKey): Promise<string> {
    const server = createServer(({ url, headers }, response) => {
      if (url !== DIRECTORY) return void response.writeHead(404).end()
      const nowS = Math.floor(Date.now() / 1_000)
      response.writeHead(200, directoryHeaders([key], headers.host ?? '', nowS)).end(directoryText([key]))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.#stops.push(() => {
      server.close()
      server.closeAllConnections()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  sayReady(): void {
    const { stdout, isTerminal } = this.#io
    if (isTerminal) {
      const quit = () => process.kill(process.pid, 'SIGINT')
      this.#screen = new Screen(this.#io, quit, (key) => this.#key(key))
      const timer = setInterval(() => this.#draw(), DRAWN_EVERY_MS)
      this.#stops.push(() => {
        clearInterval(timer)
        this.#screen?.close()
      })
    } else stdout.write(`${this.#head().join('\n')}\n\n`)
    this.#stops.push(() => this.#stopAll())
    if (this.#settings.hasClients)
      for (const each of this.#clients) if (each.client.isUsual) each.start(this.#place!)
    this.#draw()
  }

  #key(key: string): void {
    if (key === 'a') {
      const isAnyOff = this.#clients.some(({ client, isRunning }) => client.absent === null && !isRunning)
      for (const each of this.#clients) {
        if (isAnyOff) each.start(this.#place!)
        else void each.stop()
      }
      return
    }
    const chosen = this.#clients[Number(key) - 1]
    if (chosen?.isRunning === true) void chosen.stop()
    else chosen?.start(this.#place!)
  }

  #told(name: string | null, seen: SeenByGate): void {
    const state = this.#clients.find(({ client }) => client.name === name)
    const before = state?.seen ?? null
    state?.told(seen)
    if (this.#screen !== null || this.#gateway === null) return
    const text = seenText(seen)
    // Without a board, print a client's first request and each change in its verdict.
    if (state === undefined || before === null || seenText(before) !== text)
      this.#io.stdout.write(`${name ?? 'another client'}: ${text}\n`)
  }

  #draw(): void {
    const rows: readonly BoardRow[] = this.#clients
    this.#screen?.draw(boardLines(this.#head(), rows, this.#io.columns))
  }

  #head(): readonly string[] {
    const { port } = this.#gateway!.manageAddress
    const { url, caFile } = this.#place!
    const manage = `http://localhost:${port}`
    return [
      paint(this.#io, 'bold', 'Gatehouse is at work, in front of a small app.'),
      `  The app       ${url}/  (the browser warns: the certificate is made for this demo)`,
      `  Dashboard     ${manage}${DASHBOARD_PATH}`,
      `  Signs you in  ${manage}${DASHBOARD_PATH}#key=${this.#settings.adminKey}`,
      `  Try           curl --cacert ${caFile} ${url}/`,
      `  Your own app  ${COMMAND} up --upstream http://localhost:3000`,
    ]
  }

  async #stopAll(): Promise<void> {
    await Promise.all(this.#clients.map((each) => each.stop()))
  }

  reload(): void {
    void this.#gateway?.reload()
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0).reverse()) await stop()
  }

  kill(): void {
    this.#screen?.close()
    void this.#stopAll()
    this.#gateway?.kill()
  }
}

/** A client and its results. */
class ClientState implements BoardRow {
  readonly client: DemoClient
  requests = 0
  seen: SeenByGate | null = null
  #running: RunningClient | null = null

  constructor(client: DemoClient) {
    this.client = client
  }

  get isRunning(): boolean {
    return this.#running !== null
  }

  start(place: DemoPlace): void {
    if (this.client.absent === null) this.#running ??= this.client.start(place)
  }

  async stop(): Promise<void> {
    const running = this.#running
    this.#running = null
    await running?.stop()
  }

  told(seen: SeenByGate): void {
    this.requests++
    this.seen = seen
  }
}

/** A local port: the requested one, or the first free port from the default on. */
async function placeAt(option: string, asked: string | null, usual: number): Promise<string> {
  if (asked !== null) {
    if (!/^\d{1,5}$/.test(asked) || Number(asked) > 65_535)
      throw new Fault(USAGE, `${option} must be a port of this machine, not "${asked}"`)
    return `127.0.0.1:${asked}`
  }
  for (let port = usual; port < usual + TRIED; port++) if (await isFree(port)) return `127.0.0.1:${port}`
  return '127.0.0.1:0'
}

async function isFree(port: number): Promise<boolean> {
  const server = createTcpServer()
  try {
    server.listen({ port, host: '127.0.0.1', exclusive: true })
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}

/** How to type the command: in a checkout, or with an installed package. */
const COMMAND = import.meta.url.endsWith('.ts') ? 'npm run -s gatehouse --' : 'npx gatehouse'
const LISTEN = 8_443
const MANAGE = 9_080
const TRIED = 20
const DRAIN_MS = 1_000
const DRAWN_EVERY_MS = 500

interface BoardRow {
  readonly client: DemoClient
  readonly isRunning: boolean
  readonly requests: number
  /** The latest headers of the gate. */
  readonly seen: SeenByGate | null
}

/** The whole screen of the demo. */
function boardLines(head: readonly string[], rows: readonly BoardRow[], columns: number): readonly string[] {
  const cells = rows.map(({ client, isRunning, requests, seen }, index) => [
    String(index + 1),
    client.name,
    client.absent ?? (isRunning ? 'runs' : 'stopped'),
    String(requests),
    seen === null ? client.about : seenText(seen),
  ])
  const table = renderTable(COLUMNS, cells, columns)
  const keys = 'Keys: 1 to 8 start and stop a client, a all of them, q or Ctrl-C ends everything.'
  // Links are not truncated, because a truncated link is useless: the terminal wraps them.
  return [...head, '', ...[...table, '', keys].map((line) => line.slice(0, columns))]
}

const COLUMNS: readonly Column[] = [
  { title: '', align: 'right' },
  { title: 'CLIENT' },
  { title: '' },
  { title: 'REQUESTS', align: 'right' },
  { title: 'THE GATE SAYS', flexible: true },
]

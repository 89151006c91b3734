import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import tls from 'node:tls'
import { made } from '../../test/identity/forgeries.ts'
import { newSigner } from '../../test/identity/signer.ts'
import { usage } from './loads.ts'

/**
 * `npm run bench:flood [-- ROUNDS]`: how long others wait while 5,000 requests a second come with signatures that do not
 * hold: each says a key that is known, and comes from an address of its own, so that nothing is saved but by what there is
 * in all. Beside it the same flood without signatures, and none at all; they take turns. The gateway has one processor, an
 * app, the flood and the others have the other.
 */
async function main(rounds: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'flood-'))
  const app = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1')
  await once(app, 'listening')
  const agents = createServer((_, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [signer.jwk] })),
  ).listen(0, '127.0.0.1')
  await once(agents, 'listening')
  const gate = await startGate(folder, portOf(app))
  const id = `http://127.0.0.1:${portOf(agents)}`
  const taken = new Map<string, Taken[]>(KINDS.map((kind) => [kind, []]))
  try {
    for (let round = 0; round <= rounds; round++)
      for (const kind of KINDS) {
        const sample = await measure(gate, id, kind)
        if (round > 0) taken.get(kind)!.push(sample)
      }
    report(taken, await signatures(gate.manage))
  } finally {
    gate.child.kill('SIGINT')
    await once(gate.child, 'exit')
    for (const server of [app, agents]) server.close().closeAllConnections()
    rmSync(folder, { recursive: true, force: true })
  }
}

type Kind = (typeof KINDS)[number]

interface Taken {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly flood: number
  /** Of the processor that the gateway has. */
  readonly busy: number
}

async function measure({ port, child }: Gate, id: string, kind: Kind): Promise<Taken> {
  const flood = kind === 'none' ? null : fork(FILE, ['flood', String(port), id, kind, signer.key.thumbprint])
  // Those who look at the clock, and the app, do not wait for the flood's own work.
  if (flood !== null) setPriority(flood.pid!, constants.priority.PRIORITY_LOW)
  await wait(WARM_MS)
  const [before, startMs] = [usage(child.pid!).cpuSeconds, performance.now()]
  const others = fork(FILE, ['others', String(port)])
  const [timesMs] = (await once(others, 'message')) as [number[]]
  const busy = (usage(child.pid!).cpuSeconds - before) / ((performance.now() - startMs) / 1_000)
  const sent = flood === null ? 0 : await stopped(flood)
  timesMs.sort((a, b) => a - b)
  const at = (part: number) => timesMs[Math.floor(timesMs.length * part)]!
  return { p50Ms: at(0.5), p99Ms: at(0.99), flood: sent, busy }
}

/** How many it has had answered in a second. */
async function stopped(flood: ChildProcess): Promise<number> {
  flood.send('stop')
  const [rate] = (await once(flood, 'message')) as [number]
  return rate
}

function report(taken: ReadonlyMap<string, readonly Taken[]>, found: string): void {
  const of = (kind: Kind, value: (sample: Taken) => number) => median(taken.get(kind)!.map(value))
  process.stdout.write(
    `${'flood'.padEnd(20)}${'answered/s'.padStart(12)}${'processor'.padStart(11)}${'p50 ms'.padStart(10)}${'p99 ms'.padStart(10)}${'x none'.padStart(8)}${'x unsigned'.padStart(12)}\n`,
  )
  for (const kind of KINDS) {
    const p99Ms = of(kind, ({ p99Ms }) => p99Ms)
    const ratios = (['none', 'unsigned'] as const).map((other) =>
      median(taken.get(kind)!.map((sample, i) => sample.p99Ms / taken.get(other)![i]!.p99Ms)),
    )
    const figures = [
      of(kind, ({ flood }) => flood)
        .toFixed(0)
        .padStart(12),
      `${(of(kind, ({ busy }) => busy) * 100).toFixed(0)} %`.padStart(11),
      of(kind, ({ p50Ms }) => p50Ms)
        .toFixed(2)
        .padStart(10),
      p99Ms.toFixed(2).padStart(10),
      ratios[0]!.toFixed(2).padStart(8),
      ratios[1]!.toFixed(2).padStart(12),
    ]
    process.stdout.write(`${kind.padEnd(20)}${figures.join('')}\n`)
  }
  process.stdout.write(`${found}\n`)
}

/** The others: so many a second, each of them when its time has come, however long the one before takes. */
async function runOthers(port: number): Promise<void> {
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
  process.send!(timesMs, () => process.exit(0))
}

async function runFlood(port: number, id: string, kind: Kind, thumbprint: string): Promise<void> {
  const connections = await Promise.all(Array.from({ length: 16 }, () => connect(port)))
  const requests = Array.from({ length: 2_000 }, () => requestOf(port, id, kind, thumbprint))
  let answered = 0
  const startMs = performance.now()
  process.once('message', () => {
    process.send!(answered / ((performance.now() - startMs) / 1_000), () => process.exit(0))
  })
  let sent = 0
  for (;;) {
    const due = ((performance.now() - startMs) / 1_000) * FLOOD_PER_SECOND
    for (; sent < due; sent++) {
      const socket = connections[sent % connections.length]!
      // Nobody is served faster for it if more of them wait.
      if (socket.waiting.length > 50) continue
      socket.waiting.push(() => answered++)
      socket.write(requests[sent % requests.length]!)
    }
    await wait(2)
  }
}

/** From an address that nobody else has. */
function requestOf(port: number, id: string, kind: Kind, thumbprint: string): string {
  const address = `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`
  const lines = [`Host: localhost:${port}`, 'User-Agent: flood', 'Accept: */*', `X-Forwarded-For: ${address}`]
  if (kind === 'signed wrongly') {
    const authority = `localhost:${port}`
    const making = { keyid: thumbprint, signature: () => randomBytes(64) }
    const agent = { id, ed25519: signer, p256: signer, rsa: signer }
    const nowS = Math.floor(Date.now() / 1_000)
    const { headers } = made({ agent, stranger: signer, authority, nowS }, making)
    for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  }
  return `GET /cart?id=7 HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
}

interface Client {
  readonly waiting: (() => void)[]
  write(text: string): void
}

/** Answers are as many as there are heads, for none has a body that looks like one. */
async function connect(port: number): Promise<Client> {
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

interface Gate {
  readonly child: ChildProcess
  readonly port: number
  readonly manage: string
}

async function startGate(folder: string, appPort: number): Promise<Gate> {
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
  writeFileSync(config, 'proxy:\n  trusted_proxies: [127.0.0.1]\nfetch:\n  allow_private_addresses: true\n')
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

async function signatures(manage: string): Promise<string> {
  const text = await (await fetch(`${manage}/metrics`)).text()
  return [...text.matchAll(/^gatehouse_signatures_total.*$/gm)].map(([line]) => line).join('\n')
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

function portOf(server: { address(): unknown }): number {
  return (server.address() as AddressInfo).port
}

const KINDS = ['none', 'unsigned', 'signed wrongly'] as const
const FILE = new URL(import.meta.url).pathname
const FLOOD_PER_SECOND = 5_000
const OTHERS_PER_SECOND = 500
const OTHERS_MS = 4_000
const WARM_MS = 1_500
const signer = newSigner('ed25519')

const [role = '5', port, id = '', kind, thumbprint = ''] = process.argv.slice(2)
if (role === 'others') await runOthers(Number(port))
else if (role === 'flood') await runFlood(Number(port), id, kind as Kind, thumbprint)
else await main(Number(role))

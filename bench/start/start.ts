import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import https from 'node:https'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  CONTENDERS,
  type Contender,
  earlier,
  GATEHOUSE_IN_IMAGE,
  listening,
  makePlace,
  startApp,
  version,
} from '../load/contenders.ts'
import { usage } from '../load/loads.ts'
import { type Column, table } from '../load/table.ts'

/**
 * `npm run bench:start [-- --rounds N --before FOLDER]`: from the start of a program to the end of the first answer that it
 * has forwarded, over TLS. The programs take turns; one round before those that count fills what they keep on disk.
 */
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '15' }, before: { type: 'string' } },
})
const folder = mkdtempSync(join(tmpdir(), 'start-'))
const place = makePlace(folder, 18_080)
const app = startApp(place)
const others = values.before === undefined ? [] : [earlier(values.before)]
const contenders = [...CONTENDERS.filter(({ isDirect }) => !isDirect), GATEHOUSE_IN_IMAGE, ...others].filter(
  ({ name }) => version(name) !== null,
)
const taken = new Map<string, Start[]>(contenders.map(({ name }) => [name, []]))
try {
  await listening(place.appPort)
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const contender of contenders) {
      const start = await started(contender)
      if (round > 0) taken.get(contender.name)!.push(start)
    }
  }
} finally {
  app.kill()
  await once(app, 'exit')
  rmSync(folder, { recursive: true, force: true })
}
const columns: readonly Column<readonly Start[]>[] = [
  ['ms to the first answer', (starts) => median(starts.map(({ ms }) => ms)).toFixed(0)],
  ['the longest', (starts) => Math.max(...starts.map(({ ms }) => ms)).toFixed(0)],
  ['processor, ms', (starts) => median(starts.map(({ processorMs }) => processorMs)).toFixed(0)],
  ['resident, MiB', (starts) => median(starts.map(({ residentMib }) => residentMib)).toFixed(0)],
]
process.stdout.write(table(`Start, ${values.rounds} rounds`, columns, taken))

interface Start {
  readonly ms: number
  /** Of all its processes, until then. */
  readonly processorMs: number
  readonly residentMib: number
}

async function started(contender: Contender): Promise<Start> {
  const port = await freePort()
  const begin = performance.now()
  const child = contender.start(place, port)!
  try {
    while (!(await isAnswered(port))) await sleep(2)
    const ms = performance.now() - begin
    const { cpuSeconds, rssBytes } = usage(child.pid!)
    return { ms, processorMs: cpuSeconds * 1000, residentMib: rssBytes / 2 ** 20 }
  } finally {
    child.kill()
    await once(child, 'exit')
  }
}

/** Another one for each, so that each is a new client. */
async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function isAnswered(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const request = https.get(
      { host: '127.0.0.1', port, agent: false, rejectUnauthorized: false },
      (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode === 200))
      },
    )
    request.on('error', () => resolve(false))
  })
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[numbers.length >> 1]!
}

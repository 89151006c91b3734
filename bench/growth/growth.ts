import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { APP_FILE_BYTES, listening, makePlace, startApp, startGatehouse } from '../load/contenders.ts'
import { type Load, usage, withHeaders } from '../load/loads.ts'
import { table } from '../load/table.ts'
import { writeLongList } from '../signatures/long-list.ts'
import { chart, type Point } from './chart.ts'

/**
 * `npm run bench:growth [-- --rounds N --only NAME --out FOLDER]`: what a request costs as one thing grows and all else stays as it
 * is: signatures, connections that wait, headers, the body of the answer, rules. Prints a table and writes a chart for each.
 */
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    out: { type: 'string', default: new URL('.', import.meta.url).pathname },
  },
})

interface Growth {
  readonly name: string
  readonly unit: string
  readonly sizes: readonly number[]
  readonly load: (size: number) => Load
  /** Settings of a gateway of this size; it may write files. */
  readonly settings: (size: number) => Promise<object>
  /** Connections that are opened before, and do nothing. */
  readonly idle: (size: number) => number
}

interface Measured extends Point {
  /** Before the load, with its connections open. */
  readonly restingMib: number
}

const folder = mkdtempSync(join(tmpdir(), 'growth-'))
const GROWTHS: readonly Growth[] = [
  growth('signatures', 'signatures of one’s own', [1000, 10_000, 100_000, 1_000_000], {
    settings: async (size) => {
      await writeLongList(join(folder, 'list.jsonl'), size)
      return { signatures: [join(folder, 'list.jsonl')] }
    },
  }),
  growth('connections', 'connections that wait for their next request', [10, 100, 1000, 10_000], {
    settings: async () => ({
      proxy: {
        limits: { connections_max: 20_000, connections_per_address: 20_000, keep_alive_timeout: '10m' },
      },
    }),
    idle: (size) => size,
  }),
  growth('headers', 'headers of a request', [1, 4, 16, 64, 128], {
    load: (size) =>
      withHeaders(
        '/',
        Array.from({ length: size }, (_, index) => `X-Header-${index}: some value of it`),
      ),
  }),
  growth('body', 'bytes of an answer', APP_FILE_BYTES, {
    load: (size) => withHeaders(`/file-${size}`, [], 16),
  }),
  growth('rules', 'rules of the policy, none of which holds', [1, 10, 100, 1000], {
    settings: async (size) => {
      const rules = Array.from({ length: size }, (_, index) => ({
        name: `rule-${index}`,
        when: { path: `/never/${index}/*`, method: ['GET'] },
        action: 'block',
      }))
      writeFileSync(join(folder, 'policy.json'), JSON.stringify({ rules }))
      return { policy: { file: join(folder, 'policy.json') } }
    },
  }),
]
const PORT = 18_443
const place = makePlace(folder, 18_080)
const app = startApp(place)
try {
  for (const one of GROWTHS.filter(({ name }) => name.includes(values.only))) {
    const points: Measured[] = []
    for (const size of one.sizes) points.push({ size, ...(await measure(one, size)) })
    writeFileSync(join(values.out, `${one.name}.svg`), chart(one.name, one.unit, points))
    const rows = new Map(points.map((point) => [String(point.size), point]))
    process.stdout.write(
      table(
        one.unit,
        [
          ['CPU µs/request', ({ micros }: Measured) => micros.toFixed(1)],
          ['resident before, MiB', ({ restingMib }: Measured) => restingMib.toFixed(0)],
        ],
        rows,
      ),
    )
  }
} finally {
  app.kill()
  await once(app, 'exit')
  rmSync(folder, { recursive: true, force: true })
}

function growth(
  name: string,
  unit: string,
  sizes: readonly number[],
  more: Partial<Pick<Growth, 'load' | 'settings' | 'idle'>>,
): Growth {
  return {
    name,
    unit,
    sizes,
    load: () => withHeaders('/', []),
    settings: async () => ({}),
    idle: () => 0,
    ...more,
  }
}

/** The machine is noisy upwards only: the least of the rounds, of which the first warms up. */
async function measure({ load, settings, idle }: Growth, size: number): Promise<Omit<Measured, 'size'>> {
  const file = join(folder, 'gatehouse.json')
  writeFileSync(file, JSON.stringify(await settings(size)))
  const gateway = startGatehouse(place, PORT, { args: ['--config', file] })
  let waiting: ChildProcess | null = null
  try {
    await listening(PORT)
    if (idle(size) > 0) waiting = await wait(idle(size))
    await settled(gateway.pid!)
    const restingMib = usage(gateway.pid!).rssBytes / 2 ** 20
    const micros: number[] = []
    for (let round = 0; round <= Number(values.rounds); round++) {
      const before = usage(gateway.pid!).cpuSeconds
      const { requests } = await load(size).run('https', PORT, 1, place.loadProcessor)
      if (round > 0) micros.push(((usage(gateway.pid!).cpuSeconds - before) * 1e6) / requests)
    }
    return { micros: Math.min(...micros), restingMib }
  } finally {
    for (const child of [waiting, gateway]) {
      if (child === null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  }
}

/** A process with so many connections, each after one request. */
async function wait(count: number): Promise<ChildProcess> {
  const program = new URL('waiting-connections.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [program, String(PORT), String(count)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout!, 'data')
  return child
}

/** It has nothing left to do: lists are compiled, and in use. */
async function settled(pid: number): Promise<void> {
  for (let quiet = 0; quiet < 4; ) {
    const before = usage(pid).cpuSeconds
    await sleep(500)
    quiet = usage(pid).cpuSeconds - before > 0.03 ? 0 : quiet + 1
  }
}

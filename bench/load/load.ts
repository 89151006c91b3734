import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  CONTENDERS,
  type Contender,
  earlier,
  listening,
  makePlace,
  NGINX_TWO_WORKERS,
  startApp,
  GATEHOUSE_TWO_WORKERS,
  version,
} from './contenders.ts'
import { costInHalves } from './halves.ts'
import { family, LOADS, type Load, type Sample, sampled, steady, usage } from './loads.ts'
import { median, quartile } from './middle.ts'
import { type Column, table } from './table.ts'

/**
 * `npm run bench:load [-- --rounds N --seconds N --only LOAD --before FOLDER]`: the proxies on one processor, the load and
 * a small app on the other, taking turns. What it measures replaces the tables in bench/README.md, but for runs of some
 * loads, and of a version before, which is built in another folder.
 */
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '3' },
    only: { type: 'string' },
    before: { type: 'string' },
  },
})
const rounds = Number(values.rounds)
const seconds = Number(values.seconds)
const README = new URL('../README.md', import.meta.url)
const BEGIN = '<!-- npm run bench:load -->'
const END = '<!-- end -->'
const MIB = 2 ** 20
/** Until V8 has compiled what a new connection takes, which is the most, and has put it in its place. */
const WARM_UP_S = 6
/** As `nice` counts. */
const BEHIND_THE_LOAD = 10
const TWO_WORKERS: readonly (readonly [one: string, two: Contender])[] = [
  ['gatehouse', GATEHOUSE_TWO_WORKERS],
  ['nginx', NGINX_TWO_WORKERS],
]
const folder = mkdtempSync(join(tmpdir(), 'load-'))
const place = makePlace(folder, 18_080)
const app = startApp(place)
const contenders = values.before === undefined ? CONTENDERS : [...CONTENDERS, earlier(values.before)]
const entrants = contenders
  .map((contender, index) => enter(contender, 18_443 + index))
  .filter((entrant) => entrant !== null)
const versions = [...new Set(entrants.map((entrant) => entrant.version))].join(', ')
let report = `Rounds: ${rounds} of ${seconds} s. ${versions}.\n`
try {
  for (const { port, isDirect } of entrants) await listening(isDirect ? place.appPort : port)
  const idle = entrants.map(({ pid }) => usage(pid).rssBytes)
  const isChosen = (name: string) => name.includes(values.only ?? '')
  for (const load of LOADS) if (isChosen(load.name)) say(await compare(load))
  for (const protocol of ['h1', 'h2'] as const)
    if (isChosen(`${protocol} half`)) say(await compare(await halfLoad(protocol)))
  if (values.only === undefined) say(memoryTable(idle))
  if (isChosen('two workers')) say(await twoWorkers())
  if (values.only === undefined && values.before === undefined) put(report)
} finally {
  for (const { child } of entrants) {
    if (child === null) continue
    child.kill()
    await once(child, 'exit')
  }
  app.kill()
  await once(app, 'exit')
  rmSync(folder, { recursive: true, force: true })
}

type Entrant = NonNullable<ReturnType<typeof enter>>

function enter(contender: Contender, port: number, where = place) {
  const { name, isDirect } = contender
  const program = version(name)
  if (program === null) {
    process.stdout.write(`${name} is not installed: left out\n`)
    return null
  }
  const child = contender.start(where, port)
  return {
    name,
    isDirect,
    speaksHttp2: contender.speaksHttp2,
    isForHttp2Only: contender.isForHttp2Only ?? false,
    version: program,
    port,
    child,
    pid: (child ?? app).pid!,
  }
}

/** Everyone in turn, `rounds` times, once each has warmed up: what is compiled as it runs has to have run. */
async function alternate(those: readonly Entrant[], load: Load): Promise<ReadonlyMap<string, Sample[]>> {
  const samples = new Map<string, Sample[]>()
  for (const entrant of those) await measure(entrant, load, WARM_UP_S)
  for (let round = 0; round < rounds; round++) {
    for (const entrant of those) {
      samples.set(entrant.name, [...(samples.get(entrant.name) ?? []), await measure(entrant, load)])
    }
  }
  return samples
}

async function compare(load: Load): Promise<string> {
  const able = entrants.filter(({ speaksHttp2, isForHttp2Only }) =>
    load.isHttp2 ? speaksHttp2 : !isForHttp2Only,
  )
  const samples = await alternate(able, load)
  const ofNginx = samples.get('nginx') ?? []
  const nginx = quartile(ofNginx.map(({ cpuMicros }) => cpuMicros))
  const columns: Column<readonly Sample[]>[] = [
    ['CPU µs/request', (taken) => quartile(taken.map(({ cpuMicros }) => cpuMicros)).toFixed(1)],
    ['× nginx', (taken) => (quartile(taken.map(({ cpuMicros }) => cpuMicros)) / nginx).toFixed(2)],
    [
      'requests/s',
      (taken) => (-quartile(taken.map(({ requests, seconds }) => -requests / seconds))).toFixed(0),
    ],
    ['p50 ms', (taken) => quartile(taken.map(({ p50Ms }) => p50Ms)).toFixed(2)],
    ['p99 ms', (taken) => quartile(taken.map(({ p99Ms }) => p99Ms)).toFixed(2)],
    [
      'p99 × nginx',
      (taken) =>
        median(taken.map(({ p99Ms }, round) => p99Ms / (ofNginx[round]?.p99Ms ?? Number.NaN))).toFixed(2),
    ],
    ['errors', (taken) => String(taken.reduce((sum, { errors }) => sum + errors, 0))],
  ]
  return table(load.name, columns, samples)
}

function measure({ pid, port, isDirect }: Entrant, load: Load, forS = seconds): Promise<Sample> {
  return sampled(pid, () =>
    isDirect
      ? load.run('http', place.appPort, forS, place.loadProcessor)
      : load.run('https', port, forS, place.loadProcessor),
  )
}

/**
 * How much more two workers on two processors can do than one, which what a request takes of a processor decides. They share
 * the second one with the load, which comes first there, so that both run at their limit; what nginx makes of it is
 * what the machine leaves to any server. All of them are new: one that has just had another load is compiled for both, and takes
 * more until that is done.
 */
async function twoWorkers(): Promise<string> {
  const pairs = TWO_WORKERS.flatMap(([name, contender], index) => {
    const one = CONTENDERS.find((each) => each.name === name)!
    if (version(name) === null) return []
    const apart = { ...place, folder: mkdtempSync(join(folder, 'one-')) }
    return [[enter(one, 18_500 + 2 * index, apart)!, enter(contender, 18_501 + 2 * index)!] as const]
  })
  const all = pairs.flat()
  for (const entrant of all) {
    entrants.push(entrant) // ended with the others
    await listening(entrant.port)
    for (const pid of family(entrant.pid)) setPriority(pid, BEHIND_THE_LOAD)
    await measure(entrant, LOADS[0]!, WARM_UP_S)
  }
  const taken = new Map<string, number[]>()
  // In each the halves begin one after the other.
  for (let round = 0; round < rounds; round++)
    for (const { name, pid, port } of all)
      taken.set(name, [
        ...(taken.get(name) ?? []),
        await costInHalves(pid, port, seconds + 1, place.loadProcessor),
      ])
  const cpu = ({ name }: Entrant) => quartile(taken.get(name)!)
  const rows = pairs.flatMap(([one, two]) => [
    [one.name, { micros: cpu(one), timesOne: 1 }] as const,
    [two.name, { micros: cpu(two), timesOne: (2 * cpu(one)) / cpu(two) }] as const,
  ])
  const columns: Column<(typeof rows)[number][1]>[] = [
    ['CPU µs/request', ({ micros }) => micros.toFixed(1)],
    ['× one', ({ timesOne }) => timesOne.toFixed(2)],
  ]
  return table('What two workers can do on two processors', columns, new Map(rows))
}

/** The waiting time without a shortage: at half of our limit, the same load for all. */
async function halfLoad(protocol: 'h1' | 'h2'): Promise<Load> {
  const ours = entrants.find(({ name }) => name === 'gatehouse')!
  const full = LOADS.find(({ name }) => name.startsWith(`${protocol}, 64`))!
  await measure(ours, full, WARM_UP_S) // it may not have served a request yet
  const { requests, seconds: took } = await measure(ours, full)
  return steady(protocol, Math.floor(requests / took / 2))
}

function memoryTable(idle: readonly number[]): string {
  const columns: Column<readonly [number, number]>[] = [
    ['MiB idle', ([before]) => before.toFixed(0)],
    ['MiB after it all', ([, after]) => after.toFixed(0)],
  ]
  const rows = entrants
    .filter(({ isDirect }) => !isDirect)
    .map(({ name, pid }) => {
      const before = idle[entrants.findIndex((entrant) => entrant.name === name)]!
      return [name, [before / MIB, usage(pid).rssBytes / MIB]] as const
    })
  return table('Memory, resident', columns, new Map(rows))
}

function say(text: string): void {
  process.stdout.write(text)
  report += text
}

function put(text: string): void {
  const [before, rest] = readFileSync(README, 'utf8').split(BEGIN) as [string, string]
  const after = rest.slice(rest.indexOf(END))
  writeFileSync(README, `${before}${BEGIN}\n${text}${after}`)
}

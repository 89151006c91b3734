import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { confidenceOf } from '../../src/classify/verdict/confidence.ts'
import { parseSoftware } from '../../src/classify/known/software.ts'
import { type SignatureRow, signatureRow, softwareRow } from '../../src/store/catalogue/catalogue.ts'
import { compareBytes } from '../../src/store/catalogue/catalogue-merge.ts'
import { sqliteFile } from '../../src/store/engine/open-database.ts'
import { Store } from '../../src/store/store.ts'
import { TestManagement } from '../../test/manage/management.ts'

/**
 * The catalogue with a million signatures: how long it takes to put it there, to find that nothing has changed, and to
 * take a change over; then how long the API takes for requests one after the other on one connection.
 * `npm run bench:lookup -- [COUNT] [--store URL]`: a database of one's own is filled the first time, and stays.
 */
const { values: options, positionals } = parseArgs({
  options: { store: { type: 'string' } },
  allowPositionals: true,
})

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-lookup-'))
  try {
    const url = options.store ?? `sqlite:${join(folder, 'gatehouse.db')}`
    const values = madeValues()
    if (!(await isFull(url))) await fill(url, values)
    const file = sqliteFile(url)
    if (file !== null) say(`database ${(statSync(file).size / 2 ** 20).toFixed(0)} MiB`)
    await ask(url, values)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function isFull(url: string): Promise<boolean> {
  const store = await Store.open(url)
  const hash = await store.catalogueMerge.hash()
  await store.close()
  return hash === LAST_MERGE
}

/** A few ciphers and extensions are common, and most are not: so that there is much that is alike. */
function madeValues(): readonly string[] {
  let state = 1
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  const hash = () => {
    const number = random(2) === 0 ? random(200) : random(2 ** 31)
    return number.toString(16).padStart(12, '0')
  }
  const values = new Set<string>()
  while (values.size < COUNT) values.add(`t13d${10 + random(60)}${10 + random(80)}h2_${hash()}_${hash()}`)
  return [...values].sort()
}

async function fill(url: string, values: readonly string[]): Promise<void> {
  const store = await Store.open(url)
  const software = Array.from({ length: SOFTWARE }, (_, i) =>
    softwareRow(parseSoftware({ id: `s${i}`, name: `S ${i}`, kind: 'tool' }), 'own', 1),
  ).sort((one, other) => compareBytes(one.id, other.id))
  const merge = async (what: string, version: string, changed: number) => {
    const rows = { software, names: [], signatures: signatures(values, changed) }
    let slicesMs: number[] = []
    let from = performance.now()
    const pause = async () => {
      slicesMs.push(performance.now() - from)
      await new Promise(setImmediate)
      from = performance.now()
    }
    const startMs = performance.now()
    const counts = await store.catalogueMerge.merge(rows, { hash: version, nowMs: 1, pause })
    const seconds = (performance.now() - startMs) / 1000
    slicesMs = slicesMs.sort((one, other) => one - other)
    const memory = (process.memoryUsage().rss / 2 ** 20).toFixed(0)
    say(
      `${what}: ${seconds.toFixed(1)} s, ${counts.put} put, a slice p50 ${at(slicesMs, 0.5)} p99 ${at(slicesMs, 0.99)} ms, process ${memory} MiB`,
    )
  }
  await merge('first merge', 'a', 0)
  await merge('nothing changed', 'b', 0)
  await merge('one in a thousand changed', LAST_MERGE, 1000)
  await store.close()
}

function* signatures(values: readonly string[], changed: number): Generator<SignatureRow> {
  for (const [i, value] of values.entries()) {
    const observations = changed > 0 && i % changed === 0 ? i + 1 : i
    const row = signatureRow({
      ...{ type: 'ja4', value, softwareId: `s${i % SOFTWARE}`, status: 'active', source: 'submitted' },
      ...{ provenance: 'generated', firstSeenMs: 1_700_000_000_000 + (i % 1000), observations },
    })
    yield { ...row, source: 'builtin', confidence: confidenceOf(observations, observations, 1) }
  }
}

async function ask(storeUrl: string, values: readonly string[]): Promise<void> {
  const ended: (() => unknown)[] = []
  const manage = await TestManagement.start({ teardown: (work) => ended.unshift(work) }, { storeUrl })
  const key = await manage.key({ scopes: ['read'] })
  const { port } = new URL(manage.url)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const one = (path: string) =>
    new Promise<number>((resolve, reject) => {
      const from = performance.now()
      request({ agent, port, path, headers: { authorization: `Bearer ${key}` } }, (response) => {
        if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode}`))
        response.resume().on('end', () => resolve(performance.now() - from))
      })
        .on('error', reject)
        .end()
    })
  const time = async (what: string, count: number, path: (i: number) => string) => {
    for (let i = 0; i < count / 10; i++) await one(path(i * 7919))
    const ms: number[] = []
    for (let i = 0; i < count; i++) ms.push(await one(path(i * 104_729)))
    ms.sort((first, second) => first - second)
    say(`${what}: p50 ${at(ms, 0.5)}, p99 ${at(ms, 0.99)}, most ${at(ms, 1)} ms`)
  }
  const value = (i: number) => values[i % values.length]!
  const lookup = '/v1/fingerprint/lookup?ja4='
  await time('health, for comparison', 2000, () => '/health/live')
  await time('lookup, exact', 3000, (i) => `${lookup}${value(i)}`)
  await time('lookup, exact, unknown', 3000, (i) => `${lookup}t12i0101h1_${value(i).slice(11)}`)
  await time('lookup, partial', 1000, (i) => `${lookup}${value(i)}&match=partial`)
  await time(
    'lookup, 50 at once',
    100,
    (i) => lookup + Array.from({ length: 50 }, (_, j) => value(i + j)).join(),
  )
  await time('signatures, first page', 20, () => '/v1/signatures')
  await time('signatures, by agent', 20, (i) => `/v1/signatures?agent_id=s${i % SOFTWARE}`)
  await time('signatures, by confidence', 5, () => '/v1/signatures?sort=-confidence&min_confidence=0.5')
  await time('signatures, far page', 5, () => '/v1/signatures?sort=fingerprint&page=10000')
  await time('signatures, q', 5, (i) => `/v1/signatures?q=${value(i).slice(11, 20)}`)
  await time('agents', 100, () => '/v1/agents')
  agent.destroy()
  for (const work of ended) await work()
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function at(sorted: readonly number[], share: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(2)
}

const COUNT = Number(positionals[0] ?? 1_000_000)
const SOFTWARE = 1000
const LAST_MERGE = `${COUNT} with changes`

await main()

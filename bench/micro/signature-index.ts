import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildSignatureIndex, type IndexedSignature } from '../../src/classify/known/index/index-builder.ts'
import { type Likeness, SignatureIndex } from '../../src/classify/known/index/signature-index.ts'
import { type IndexFile, IndexLoader, writeIndexFile } from '../../src/plane/index-file.ts'

/** What an index of a million signatures takes: bytes, time to look up, and pauses of a process that loads it. */
async function main(): Promise<void> {
  const signatures = Array.from({ length: COUNT }, signatureOf)
  const from = performance.now()
  const bytes = buildSignatureIndex(signatures, [1, 2])
  const buildSeconds = (performance.now() - from) / 1000
  say(
    `${COUNT} signatures: ${(bytes.length / COUNT).toFixed(1)} bytes each, built in ${buildSeconds.toFixed(1)} s`,
  )
  sayLookups(SignatureIndex.open(bytes.buffer), signatures, bytes.length)
  const path = join(tmpdir(), `signature-index-${process.pid}`)
  try {
    await sayLoading(await writeIndexFile(path, bytes))
  } finally {
    rmSync(path, { force: true })
  }
}

/** Hashes as they are: nothing two have in common but by chance. Part a is one of some thousands. */
function signatureOf(_: unknown, i: number): IndexedSignature {
  const hashes = randomBytes(12).toString('hex')
  const value = `t13d${10 + (i % 60)}${10 + ((i * 7) % 80)}h2_${hashes.slice(0, 12)}_${hashes.slice(12)}`
  return { type: 'ja4', value, software: i % SOFTWARE, observations: i }
}

/** Against a Map of as many strings, in turn with it, and against reads of the same memory that have to wait for each other. */
function sayLookups(index: SignatureIndex, signatures: readonly IndexedSignature[], bytes: number): void {
  const map = new Map(signatures.map(({ value, software }) => [value, software]))
  const known = () => signatures[Math.floor(Math.random() * COUNT)]!.value
  const otherA = () => `t12i0505h1${known().slice(10)}`
  const common = Array.from({ length: 100 }, known)
  const unknown = () => {
    const hashes = randomBytes(12).toString('hex')
    return `t13d1517h2_${hashes.slice(0, 12)}_${hashes.slice(12)}`
  }
  const find = (likeness: Likeness) => (value: string) => index.find('ja4', value, likeness)
  const rows: readonly Row[] = [
    ['exact, one of the million', known, find('exact')],
    ['exact, one of a hundred', () => common[Math.floor(Math.random() * common.length)]!, find('exact')],
    ['exact, unknown', unknown, find('exact')],
    ['parts b and c, known', otherA, find('b_c')],
    ['part b, known', otherA, find('b')],
    ['part b, unknown', unknown, find('b')],
    ['nearest, found by b and c', otherA, (value) => index.nearest('ja4', value), 2],
    ['nearest, unknown', unknown, (value) => index.nearest('ja4', value), 7],
    ['a Map of strings, known', known, (value) => map.get(value)],
    ['a Map of strings, unknown', unknown, (value) => map.get(value)],
    ['a read of memory that must be waited for', unknown, waitingReads(new Int32Array(bytes / 4))],
  ]
  const best = rows.map(() => Number.POSITIVE_INFINITY)
  for (let round = 0; round < ROUNDS; round++)
    for (const [i, row] of rows.entries()) best[i] = Math.min(best[i]!, nanoseconds(row))
  say(`${''.padEnd(44)}     ns  lookups  ns each`)
  for (const [i, [name, , , lookups = 1]] of rows.entries()) {
    const each = (best[i]! / lookups).toFixed(0).padStart(9)
    say(name.padEnd(44) + best[i]!.toFixed(0).padStart(7) + String(lookups).padStart(9) + each)
  }
}

/** `lookups`: how many it takes, in as many tables. */
type Row = readonly [name: string, make: () => string, look: (value: string) => unknown, lookups?: number]

function nanoseconds([, make, look]: Row): number {
  // Flat, as they are after they were written, and side by side, so that reading them costs little.
  const values = Array.from({ length: LOOKUPS }, () => Buffer.from(make()).toString('latin1'))
  const from = process.hrtime.bigint()
  for (const value of values) SINK.last = look(value)
  return Number(process.hrtime.bigint() - from) / LOOKUPS
}

/** Each read is of a place that the one before has to be there for. */
function waitingReads(zeros: Int32Array): () => number {
  zeros.fill(0)
  let at = 1
  return () => {
    at = (Math.imul(at, 1664525) + 1013904223 + zeros[(at >>> 0) % zeros.length]!) | 0
    return at
  }
}

/** A process of its own loads the index, and then another in its place, as a worker does. */
async function sayLoading(file: IndexFile): Promise<void> {
  const child = fork(new URL(import.meta.url).pathname, ['--worker'])
  say('')
  say('             ms   longest pause, ms   as long at rest   resident, bytes a signature')
  for (let load = 1; load <= LOADS; load++) {
    const { tookMs, pauseMs, restPauseMs, residentBytes } = await loadedBy(child, file)
    const figures = [tookMs.toFixed(0).padStart(9), pauseMs.toFixed(1).padStart(20)]
    figures.push(restPauseMs.toFixed(1).padStart(18), (residentBytes / COUNT).toFixed(1).padStart(30))
    say(`load ${load}${figures.join('')}`)
  }
  child.kill()
}

interface Loaded {
  readonly tookMs: number
  readonly pauseMs: number
  /** The same time without a load: what the machine itself costs. */
  readonly restPauseMs: number
  /** More than before the first load. */
  readonly residentBytes: number
}

function loadedBy(child: ChildProcess, file: IndexFile): Promise<Loaded> {
  return new Promise((resolve) => {
    child.once('message', (message) => resolve(message as Loaded))
    child.send(file)
  })
}

/** As a worker: has other things in its heap, holds one index, and the next takes its place. */
async function work(): Promise<void> {
  const others = Array.from({ length: 300_000 }, (_, i) => ({ name: `other ${i}`, list: [i] }))
  const loader = new IndexLoader()
  let held: SignatureIndex | null = null
  await sleep(500)
  const residentBefore = process.memoryUsage.rss()
  process.on('message', async (file: IndexFile) => {
    const from = performance.now()
    const pauseMs = await longestPause(async () => {
      const next = await loader.load(file)
      if (held !== null) loader.retire(held)
      held = next
    })
    const tookMs = performance.now() - from
    const restPauseMs = await longestPause(() => sleep(tookMs))
    SINK.last = others
    process.send!({ tookMs, pauseMs, restPauseMs, residentBytes: process.memoryUsage.rss() - residentBefore })
  })
}

/** From one turn of the event loop to the next. */
async function longestPause(during: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await sleep(20)
  delay.reset()
  await during()
  await sleep(5)
  delay.disable()
  // A timer of one millisecond is due after one.
  return delay.max / 1e6 - 1
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const COUNT = 1_000_000
const SOFTWARE = 5_000
const LOOKUPS = 20_000
const ROUNDS = 20
const LOADS = 8
/** What is looked up is used. */
const SINK: { last: unknown } = { last: null }

if (process.argv.includes('--worker')) await work()
else await main()

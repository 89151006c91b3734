import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { classify } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import { type CorpusRow, parseCorpusRow } from '../../src/classify/known/corpus.ts'
import type { Proofs } from '../../src/classify/verdict/proof.ts'
import { Scratch } from '../../src/classify/verdict/scratch.ts'
import { Traffic } from '../../src/classify/verdict/traffic.ts'
import type { Knowledge } from '../../src/classify/known/knowledge.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import type { Ja4 } from '../../src/fingerprint/ja4.ts'
import type { ConnectionPrint, Print } from '../../src/fingerprint/print.ts'
import type { Ja4h } from '../../src/fingerprint/ja4plus/ja4h.ts'
import type { StableKey } from '../../src/fingerprint/stable-key.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'

/**
 * What a verdict costs: for a request like the one before it, for the first one of a connection, and for clients with
 * something new. Header names and values are new strings for each request, as they are when they come from a
 * socket; making them is not timed. All take turns in each round, and the figure is the best round.
 */
async function main(): Promise<void> {
  const knowledge = await loadKnowledge(null, null)
  const clients = [
    clientOf('Chromium, a navigation', 'chromium', (head) => head.version === '20' && isNavigation(head)),
    clientOf('OpenAI SDK, a POST', 'openai', (head) => head.version === '11' && head.method === 'POST'),
    clientOf('curl, a GET', 'curl', (head) => head.method === 'GET'),
  ]
  const measured = clients.flatMap((client) =>
    CASES.map((name) => ({ client, name, best: Number.POSITIVE_INFINITY })),
  )
  for (let round = 0; round < ROUNDS; round++)
    for (const row of measured)
      row.best = Math.min(row.best, nanoseconds(knowledge, requestsOf(row.client, row.name)))
  process.stdout.write(`${'ns'.padStart(WIDTH + 8)}\n`)
  for (const { name, headers } of clients) {
    process.stdout.write(`${name}, ${headers} headers\n`)
    for (const row of measured.filter(({ client }) => client.name === name))
      process.stdout.write(`  ${row.name.padEnd(WIDTH - 2)}${row.best.toFixed(0).padStart(8)}\n`)
  }
}

interface Client {
  readonly name: string
  readonly print: Print
  readonly head: RequestHead
  /** How many, HTTP/2's own among them. */
  readonly headers: number
}

interface Request {
  readonly print: Print
  readonly head: RequestHead
  /** `null`: of a connection of its own. */
  readonly conduct: Conduct | null
}

type Case = (typeof CASES)[number]

/** As it was recorded. */
function clientOf(name: string, client: string, isWanted: (head: RequestHead) => boolean): Client {
  for (const row of ROWS) {
    const request = row.client === client ? row.requests.find(({ head }) => isWanted(head)) : undefined
    if (request === undefined) continue
    const { head, ja4h } = request
    return { name, print: { connection: row.print, ja4h }, head, headers: head.rawHeaders.length / 2 }
  }
  throw new Error(`no such request of ${client} was recorded`)
}

function isNavigation({ rawHeaders }: RequestHead): boolean {
  return rawHeaders[rawHeaders.indexOf('sec-fetch-mode') + 1] === 'navigate'
}

function requestsOf(client: Client, name: Case): readonly Request[] {
  const conduct = conductOf()
  const isSame = name === CASES[0] || name === CASES[1]
  const isNewUserAgent = name === CASES[3] || name === CASES[5]
  const isNewStack = name === CASES[4] || name === CASES[5]
  return Array.from({ length: RUNS }, () => ({
    print: printLike(client.print, isSame, isNewStack, name === CASES[0]),
    head: name === CASES[0] ? client.head : headLike(client.head, isNewUserAgent),
    conduct: isSame ? conduct : null,
  }))
}

/** Of new strings; `isNew`: with a new version in the User-Agent. */
function headLike({ method, target, version, rawHeaders }: RequestHead, isNew: boolean): RequestHead {
  const copies = rawHeaders.map(copied)
  const at = rawHeaders.findIndex((name) => name.toLowerCase() === 'user-agent') + 1
  if (isNew) copies[at] = copied(copies[at]!.replace(LAST_NUMBER, String(randomBytes(5).readUIntBE(0, 5))))
  return { method: copied(method), target: copied(target), version, rawHeaders: copies }
}

/** JA4H is a new string for each request; making it is not timed. */
function printLike({ connection, ja4h }: Print, isSame: boolean, isNew: boolean, isVerySame: boolean): Print {
  const of = isSame ? connection : isNew ? newStack(connection) : { ...connection }
  return { connection: of, ja4h: isVerySame || ja4h === null ? ja4h : (copied(ja4h) as Ja4h) }
}

function newStack(print: ConnectionPrint): ConnectionPrint {
  const hex = randomBytes(18).toString('hex')
  const [a] = print.ja4!.split('_')
  const stable = print.stable!.replace(LAST_HASH, hex.slice(24))
  const ja4 = `${a}_${hex.slice(0, 12)}_${hex.slice(12, 24)}`
  return { ...print, ja4: copied(ja4) as Ja4, stable: copied(stable) as StableKey }
}

function copied(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function nanoseconds(knowledge: Knowledge, requests: readonly Request[]): number {
  const from = process.hrtime.bigint()
  for (const { print, head, conduct } of requests)
    SINK.last = classify(
      knowledge,
      { print, head, conduct: conduct ?? conductOf(), nowMs: NOW_MS },
      UNSIGNED,
      SCRATCH,
    )
  return Number(process.hrtime.bigint() - from) / requests.length
}

/** Of a client that has been here. */
function conductOf(): Conduct {
  return new Conduct(TRAFFIC, '192.0.2.1')
}

const SCRATCH = new Scratch()
const TRAFFIC = new Traffic()
const NOW_MS = 1.8e12
/** Without signatures: addresses could be looked up, and are not. */
const UNSIGNED: Proofs = { signature: null, places: { of: () => null } }
const CASES = [
  'the very same strings again',
  'as the one before on its connection',
  'the first of a connection',
  'the same, of an unknown User-Agent',
  'the same, of an unknown stack',
  'the same, of both',
] as const
const ROUNDS = 40
const RUNS = 2000
const WIDTH = 40
const LAST_NUMBER = /\d+(?=\D*$)/
const LAST_HASH = /[0-9a-f]{12}$/
const SINK: { last: unknown } = { last: null }
const ROWS: readonly CorpusRow[] = readFileSync(
  new URL('../../test/classify/recorded.jsonl', import.meta.url),
  'utf8',
)
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => parseCorpusRow(JSON.parse(line)))

await main()

import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { calculateJa4, readTlsClientHello } from 'read-tls-client-hello'
import { ja4, ja4Forms } from '../../src/fingerprint/ja4.ts'
import { ja4h, NameHashes } from '../../src/fingerprint/ja4plus/ja4h.ts'
import { ja4x, ja4xRaw } from '../../src/fingerprint/ja4plus/ja4x.ts'
import { FingerprintText } from '../../src/fingerprint/text.ts'
import { stableKey } from '../../src/fingerprint/stable-key.ts'
import { decide } from '../../src/policy/decide.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { PolicyRequest } from '../../src/policy/request.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import { type ClientHello, parseClientHello } from '../../src/wire/client-hello.ts'
import { HelloReader } from '../../src/wire/record.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'
import { type CertificateOids, parseCertificate } from '../../src/wire/x509.ts'
import { browserHeaders } from './browser-headers.ts'

const ROUNDS = 60
const RUNS = 5000

/**
 * What a fingerprint costs, beside the unavoidable hashes and beside the npm package for the same job. All
 * are timed in turn in each round, so that the machine's mood falls on all of them; the figure is the best round.
 */
const stream = Buffer.from(readJson('./chrome-hello.json')['stream_hex']!, 'hex')
const certificate = Buffer.from(readJson('./certificate.json')['der_hex']!, 'hex')
const message = messageOf(stream)
const hello = helloOf(message)
const head: RequestHead = {
  method: 'GET',
  target: '/cart',
  version: '11',
  rawHeaders: browserHeaders('shop.example.test'),
}

const [, ja4B, ja4C] = ja4Forms(hello, 'tcp').ja4_r.split(/_(.+?)_(.+)/)
const ja4Texts = [ja4B!, ja4C!]
const cookies = head.rawHeaders.at(-1)!.split('; ')
const ja4hTexts = [
  head.rawHeaders.filter((_, i) => i % 2 === 0 && i < head.rawHeaders.length - 2).join(','),
  cookies.map((cookie) => cookie.split('=')[0]).join(','),
  cookies.join(','),
]
const ja4xTexts = ja4xRaw(oidsOf(certificate)).split('_')

/** Fifty rules that ask about everything, and none of them holds: the most that deciding costs. */
const policy = parsePolicy({ rules: Array.from({ length: 50 }, (_, index) => ruleOf(index)) })
const simple = parsePolicy({
  rules: [{ name: 'a', when: { path: '/api/*', method: 'POST' }, action: 'block' }],
})
const path = 'request.path.startsWith("/api/") && request.method == "POST"'
const expression = parsePolicy({ rules: [{ name: 'a', when: path, action: 'block' }] })
const header = 'request.headers["accept"].startsWith("application/json")'
const headers = parsePolicy({ rules: [{ name: 'a', when: header, action: 'block' }] })
const facts: Facts = {
  method: head.method,
  host: 'shop.example.test',
  path: '/cart/items?id=7',
  address: '192.0.2.77',
  rawHeaders: head.rawHeaders,
  print: {
    connection: { ja4: ja4(hello, 'tcp'), stable: stableKey(hello, 'tcp'), http2: null, noHello: null },
    ja4h: ja4h(head),
  },
  verdict: {
    kind: 'human',
    agent: null,
    software: null,
    confidence: 0.9,
    nameConfidence: 0,
    proof: null,
    conflicts: [],
    evidence: [],
  },
  forged: [],
}

const text = new FingerprintText()
const names = new NameHashes()
const request = new PolicyRequest()

const theirSource = new Readable({ read: () => undefined })
theirSource.push(stream)
const theirHello = await readTlsClientHello(theirSource)

const measured: readonly Measured[] = [
  { name: 'the two SHA-256 of a JA4', floor: 0, run: () => hashAll(ja4Texts) },
  { name: 'hello parse + JA4', floor: 0, run: () => ja4(helloOf(message), 'tcp', text) },
  { name: 'the same from TLS records', floor: 0, run: () => ja4(helloOf(messageOf(stream)), 'tcp', text) },
  { name: 'stable key of a parsed hello', floor: 0, run: () => stableKey(hello, 'tcp', text) },
  { name: 'read-tls-client-hello, parse + JA4', floor: 0, run: theirJa4 },
  { name: 'read-tls-client-hello, JA4 alone', floor: 0, run: () => calculateJa4(theirHello) },
  { name: 'the three SHA-256 of a JA4H', floor: 6, run: () => hashAll(ja4hTexts) },
  { name: 'JA4H, 14 headers and 4 cookies', floor: 6, run: () => ja4h(head, names) },
  { name: 'the three SHA-256 of a JA4X', floor: 8, run: () => hashAll(ja4xTexts) },
  { name: 'certificate parse + JA4X', floor: 8, run: () => ja4x(oidsOf(certificate)) },
  { name: 'policy of 50 rules, none holds', floor: 0, run: () => decide(policy, facts, 0, request) },
  { name: 'a rule with path and method', floor: 11, run: () => decide(simple, facts, 0, request) },
  { name: 'the same as an expression', floor: 11, run: () => decide(expression, facts, 0, request) },
  { name: 'an expression about a header', floor: 11, run: () => decide(headers, facts, 0, request) },
]

const best = measured.map(() => Number.POSITIVE_INFINITY)
for (let round = 0; round < ROUNDS; round++) {
  for (const [i, { run }] of measured.entries()) best[i] = Math.min(best[i]!, await nanoseconds(run))
}
const theirs = best[measured.findIndex(({ run }) => run === theirJa4)]!
process.stdout.write(`${'ns'.padStart(42)}${'x hashes'.padStart(10)}${'npm / this'.padStart(12)}\n`)
for (const [i, { name, floor }] of measured.entries()) {
  const figures = [best[i]!.toFixed(0).padStart(8), (best[i]! / best[floor]!).toFixed(2).padStart(10)]
  process.stdout.write(
    `${name.padEnd(34)}${figures.join('')}${(theirs / best[i]!).toFixed(1).padStart(12)}\n`,
  )
}

interface Measured {
  readonly name: string
  /** Which of the rows is the least this one could cost. */
  readonly floor: number
  run(): unknown
}

/** Per run, of a round short enough that a quiet moment of the machine holds a whole one. */
async function nanoseconds(run: () => unknown): Promise<number> {
  const from = process.hrtime.bigint()
  if (run === theirJa4) for (let i = 0; i < RUNS; i++) await run()
  else for (let i = 0; i < RUNS; i++) run()
  return Number(process.hrtime.bigint() - from) / RUNS
}

function ruleOf(index: number): object {
  const asked: readonly object[] = [
    { user_agent: `*bot${index}*` },
    { path: `/api${index}/*` },
    { ja4: `t13d${index}*_8daaf6152771_*` },
    { agent: `bot${index}`, confidence_min: 0.5 },
    { address: [`10.${index}.0.0/16`, `2001:db8:${index}::/48`] },
    { host: `*.h${index}.example.test`, method: 'GET' },
    { verdict: 'automation', path: '/login*' },
    { header: { 'x-api-key': { present: true } } },
    { category: 'crawler', not: { verified: true } },
    { ja4h: 'po11*_*_*_*', forged: true },
  ]
  return { name: `rule ${index}`, when: asked[index % asked.length], action: 'block' }
}

async function theirJa4(): Promise<string> {
  const source = new Readable({ read: () => undefined })
  source.push(stream)
  return calculateJa4(await readTlsClientHello(source))
}

function hashAll(texts: readonly string[]): string {
  let last = ''
  for (const text of texts) last = hash('sha256', text, 'hex')
  return last
}

function messageOf(bytes: Buffer): Uint8Array {
  const read = new HelloReader().push(bytes)
  if (read.kind !== 'message') throw new Error(`chrome-hello.json: ${read.kind}`)
  return read.message
}

function helloOf(bytes: Uint8Array): ClientHello {
  const read = parseClientHello(bytes)
  if (read.kind !== 'client-hello') throw new Error(`chrome-hello.json: ${read.fault}`)
  return read.hello
}

function oidsOf(der: Uint8Array): CertificateOids {
  const read = parseCertificate(der)
  if (read.kind !== 'certificate') throw new Error(`certificate.json: ${read.fault}`)
  return read.oids
}

function readJson(name: string): Record<string, string> {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))
}

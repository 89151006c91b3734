import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { GATEHOUSE } from '../e2e/programs.ts'

/**
 * The vectors next to the project, which are not ours to publish, through the commands as an operator runs them.
 * Where readings of a specification differ (`ambiguous`), ours is the vectors' own: those are tests of their own, so
 * that a difference is seen for what it is.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SHARED = join(ROOT, '../shared/vectors')

if (existsSync(SHARED)) {
  fingerprintTests(
    'ja4',
    [...pairsOf('hello-pairs.json'), ...framings()],
    ['ja4', 'ja4_r', 'ja4_o', 'ja4_ro'],
  )
  fingerprintTests('ja4s', pairsOf('ja4s-pairs.json'), ['ja4s', 'ja4s_r'])
  fingerprintTests('ja4x', pairsOf('ja4x-pairs.json'), ['ja4x', 'ja4x_r'])
  fingerprintTests('ja4h', pairsOf('ja4h-pairs.json'), ['ja4h', 'ja4h_r'])
  captureTests()
} else {
  const skip = `there is no ${SHARED}; own.test.ts has a vector for every rule`
  test('the shared vectors', { skip }, () => assert.fail(skip))
}

type Json = Readonly<Record<string, unknown>>

/** All pairs as lines to one process, whose answers come in the same order. */
function fingerprintTests(kind: string, pairs: readonly Json[], fields: readonly string[]): void {
  test(`fingerprint ${kind}`, async (t) => {
    const lines = pairs.map((pair) => `${JSON.stringify(pair)}\n`)
    const answers = await jsonLines(['fingerprint', kind], lines.join(''))
    assert.equal(answers.length, pairs.length)
    for (const ambiguous of [false, true]) {
      const among = pairs.flatMap((pair, index) =>
        'ambiguous' in pair === ambiguous ? [[pair, answers[index]!]] : [],
      )
      if (among.length === 0) continue
      t.test(`${among.length} ${ambiguous ? 'ambiguous' : 'clear'} pairs`, async () => {
        for (const [pair, answer] of among as [Json, Json][]) {
          const expected = pick(pair, fields)
          const message = `${pair['name'] ?? pair['id']}: ${pair['ambiguous'] ?? ''}`
          if (isRefusal(pair, answer)) continue
          assert.deepEqual(pick(answer, Object.keys(expected)), expected, message)
        }
      })
    }
  })
}

/** Some framings are no hello, or RFC 8446 §5.1 forbids them: `expect` then says so in words. */
function isRefusal({ expect }: Json, answer: Json): boolean {
  return expect !== undefined && 'error' in answer
}

function pairsOf(name: string): readonly Json[] {
  const file = JSON.parse(readFileSync(join(SHARED, name), 'utf8'))
  return Array.isArray(file) ? file : file.pairs
}

/** Records, a segment each; or a stream, in segments of one size. */
function framings(): Json[] {
  const { framing } = JSON.parse(readFileSync(join(SHARED, 'hello-pairs.json'), 'utf8'))
  return framing.map(({ records, stream_hex, chunk, ...rest }: Framing) => ({
    ...rest,
    stream_hex: records ?? stream_hex!.match(new RegExp(`.{1,${chunk! * 2}}`, 'g')),
  }))
}

interface Framing {
  readonly records?: readonly string[]
  readonly stream_hex?: string
  readonly chunk?: number
}

function captureTests(): void {
  test('analyze', async (t) => {
    const ending = '.expected.json'
    const names = readdirSync(SHARED).filter((name) => name.endsWith(ending))
    const captures = names.map((name) => name.slice(0, -ending.length))
    const files = captures.map((name) => join(SHARED, name))
    const findings = await jsonLines(['analyze', '--json', ...files])
    for (const capture of captures) {
      t.test(capture, async () => {
        const found = findings.filter(({ file }) => basename(String(file)) === capture)
        const expected: Expected = JSON.parse(readFileSync(join(SHARED, `${capture}${ending}`), 'utf8'))
        const isTls = ({ kind }: Json) => kind === 'tls'
        sameFindings(found.filter(isTls), expected.streams.map(asTlsFinding), TLS_KEY, TLS_FIELDS)
        sameFindings(
          found.filter((finding) => !isTls(finding)),
          expected.http,
          HTTP_KEY,
          HTTP_FIELDS,
        )
      })
    }
  })
}

interface Expected {
  readonly streams: readonly Json[]
  readonly http: readonly Json[]
}

/** Their `transport` is what carries packets, and ours what carries the handshake. */
function asTlsFinding({ proto, client_hello_frame, ...stream }: Json): Json {
  return { ...stream, transport: proto === 'tls' ? 'tcp' : proto, frame: client_hello_frame }
}

/** None missing and none too many, and the same in every field that is given. */
function sameFindings(
  found: readonly Json[],
  expected: readonly Json[],
  key: readonly string[],
  fields: readonly string[],
): void {
  const keyOf = (finding: Json) => JSON.stringify(pick(finding, key))
  const inOrder = (findings: readonly Json[]) => findings.toSorted((a, b) => keyOf(a).localeCompare(keyOf(b)))
  const [ours, theirs] = [inOrder(found), inOrder(expected)]
  assert.deepEqual(ours.map(keyOf), theirs.map(keyOf))
  for (const [index, finding] of theirs.entries()) {
    const wanted = pick(finding, fields)
    assert.deepEqual(pick(ours[index]!, Object.keys(wanted)), wanted, keyOf(finding))
  }
}

/** The fields that are there, in one order. */
function pick(from: Json, fields: readonly string[]): Json {
  return Object.fromEntries(fields.filter((field) => field in from).map((field) => [field, from[field]]))
}

/** What `npm run gatehouse -- …` runs. */
async function jsonLines(argv: readonly string[], input = ''): Promise<Json[]> {
  const child = spawn(process.execPath, [GATEHOUSE, ...argv], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.end(input)
  const output = await text(child.stdout)
  return output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

const TLS_KEY = ['src', 'src_port', 'dst', 'dst_port', 'transport', 'frame']
const TLS_FIELDS = [
  ...['ja4', 'ja4_r', 'ja4_o', 'ja4_ro', 'ja4_later', 'sni'],
  ...['ja4s', 'ja4s_r', 'ja4s_later', 'hello_retry_request', 'ja4x', 'ja4x_r', 'ja4x_client'],
]
const HTTP_KEY = ['src', 'src_port', 'dst', 'dst_port', 'transport', 'frame']
const HTTP_FIELDS = ['http', 'method', 'ja4h', 'ja4h_r']

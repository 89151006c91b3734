import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import type { Io } from '../../src/terminal/io.ts'
import { clientHello, every, records, serverHello } from '../vectors/hello-builder.ts'
import { readVectors } from '../vectors/vector.ts'
import { memoryIo } from './memory-io.ts'

const vectors = readVectors()

/** What is put in, and the answers that come out. */
async function fingerprint(kind: string, input: string, settings: Partial<Io> = {}) {
  const io = memoryIo(input, settings)
  const exitCode = await runCli(COMMANDS, ['fingerprint', kind], io)
  const answers = io.out.split('\n').slice(0, -1)
  assert.ok(io.out === '' || io.out.endsWith('\n'))
  return { exitCode, err: io.err, answers: answers.map((line): Record<string, string> => JSON.parse(line)) }
}

function lines(inputs: readonly object[]): string {
  return inputs.map((input) => `${JSON.stringify(input)}\n`).join('')
}

for (const kind of ['ja4', 'ja4s', 'ja4h', 'ja4x'] as const) {
  test(`${kind}: a line in is a line out, in the same order, with every form`, async () => {
    const cases: readonly Record<string, unknown>[] = vectors[kind].map((vector) => ({ ...vector }))
    const stdin = Readable.from(every(999, Buffer.from(lines(cases)))) // in chunks that end anywhere
    const { exitCode, answers } = await fingerprint(kind, '', { stdin })
    assert.equal(exitCode, 0)
    assert.equal(answers.length, cases.length)
    for (const [index, answer] of answers.entries()) {
      const { ja4_stable, ...forms } = answer
      const wanted = Object.entries(cases[index]!).filter(([field]) => field.startsWith('ja4'))
      assert.deepEqual(forms, Object.fromEntries(wanted), `line ${index + 1}`)
      assert.equal(ja4_stable?.startsWith('gs1-'), kind === 'ja4' ? true : undefined)
    }
  })
}

test('a stream of segments is read up to its first message', async () => {
  for (const vector of vectors.framing) {
    if (!('stream_hex' in vector)) continue
    const { name, side, stream_hex, fingerprint: expected, fault } = vector
    const kind = side === 'client' ? 'ja4' : 'ja4s'
    const { exitCode, answers } = await fingerprint(kind, lines([{ stream_hex }]))
    assert.equal(answers[0]![kind], expected ?? undefined, name)
    assert.equal(answers[0]!['error'], fault ?? (expected === null ? 'truncated' : undefined), name)
    assert.equal(exitCode, expected === null ? 1 : 0, name)
  }
})

const HELLO = clientHello({ ciphers: [0x1301] })
const HELLO_HEX = HELLO.toString('hex')

test('transport is TCP where nothing is said, and hex may be in capitals', async () => {
  const inputs = [
    { handshake_hex: HELLO_HEX },
    { handshake_hex: HELLO_HEX.toUpperCase(), transport: 'quic', unknown: 1 },
    { handshake_hex: clientHello({ ciphers: [0x1301] }, 'dtls').toString('hex'), transport: 'dtls' },
    {
      stream_hex: every(5, Buffer.concat(records([HELLO]))).map((piece) =>
        Buffer.from(piece).toString('hex'),
      ),
    },
  ]
  const { answers } = await fingerprint('ja4', lines(inputs))
  assert.deepEqual(
    answers.map((answer) => answer['ja4']?.slice(0, 3)),
    ['t12', 'q12', 'd12', 't12'],
  )
})

/** Lines that cannot be answered, and the error each gets; text that is not JSON is sent unchanged. */
const REFUSED: readonly (readonly [kind: string, error: string, line: string | object])[] = [
  ['ja4', 'not-json', '{"handshake_hex": "01'],
  ['ja4', 'not-json', 'hello'],
  ['ja4', 'invalid-input', '[]'],
  ['ja4', 'invalid-input', 'null'],
  ['ja4', 'invalid-input', '"01"'],
  ['ja4', 'invalid-input', {}],
  ['ja4', 'invalid-input', { handshake_hex: 1 }],
  ['ja4', 'invalid-input', { handshake_hex: null }],
  ['ja4', 'invalid-input', { stream_hex: HELLO_HEX }],
  ['ja4', 'invalid-input', { stream_hex: ['16', 1] }],
  ['ja4', 'invalid-input', { stream_hex: [HELLO_HEX], transport: 'dtls' }],
  ['ja4', 'invalid-input', { handshake_hex: HELLO_HEX, transport: 'udp' }],
  ['ja4', 'invalid-input', { handshake_hex: HELLO_HEX, transport: 4 }],
  ['ja4', 'invalid-hex', { handshake_hex: '010' }],
  ['ja4', 'invalid-hex', { handshake_hex: '01 0' }],
  ['ja4', 'invalid-hex', { handshake_hex: `${HELLO_HEX}\n` }],
  ['ja4', 'invalid-hex', { stream_hex: ['16', 'xy'] }],
  ['ja4', 'truncated', { handshake_hex: '' }],
  ['ja4', 'truncated', { handshake_hex: HELLO_HEX.slice(0, -2) }],
  ['ja4', 'truncated', { stream_hex: [] }],
  [
    'ja4',
    'fragment',
    { handshake_hex: `${HELLO_HEX.slice(0, 8)}000000000000ffff${HELLO_HEX.slice(8)}`, transport: 'dtls' },
  ],
  ['ja4', 'wrong-type', { handshake_hex: serverHello({}).toString('hex') }],
  ['ja4s', 'wrong-type', { handshake_hex: HELLO_HEX }],
  ['ja4s', 'wrong-type', { stream_hex: records([HELLO]).map((record) => record.toString('hex')) }],
  ['ja4s', 'truncated', { handshake_hex: '0200' }],
  ['ja4x', 'invalid-input', { handshake_hex: HELLO_HEX }],
  ['ja4x', 'truncated', { der_hex: '' }],
  ['ja4x', 'wrong-tag', { der_hex: '31023000' }],
  ['ja4h', 'invalid-input', { version: '11', headers: [] }],
  ['ja4h', 'invalid-input', { method: 'GET', headers: [] }],
  ['ja4h', 'invalid-input', { method: 'GET', version: '1.1', headers: [] }],
  ['ja4h', 'invalid-input', { method: 'GET', version: '11' }],
  ['ja4h', 'invalid-input', { method: 'GET', version: '11', headers: { Host: 'a' } }],
  ['ja4h', 'invalid-input', { method: 'GET', version: '11', headers: ['Host', 'a'] }],
  ['ja4h', 'invalid-input', { method: 'GET', version: '11', headers: [['Host']] }],
  ['ja4h', 'invalid-input', { method: 'GET', version: '11', headers: [['Host', 'a', 'b']] }],
  ['ja4h', 'invalid-input', { method: 'GET', version: '11', headers: [['Host', 1]] }],
]

for (const kind of ['ja4', 'ja4s', 'ja4h', 'ja4x'] as const) {
  test(`${kind}: a line that cannot be answered says why, and the next one is read`, async () => {
    const refused = REFUSED.filter(([given]) => given === kind)
    const right = JSON.stringify(vectors[kind][0])
    const input = refused.map(
      ([, , line]) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n${right}\n`,
    )
    const { exitCode, answers, err } = await fingerprint(kind, input.join(''))
    assert.equal(exitCode, 1)
    assert.equal(err, '')
    assert.equal(answers.length, 2 * refused.length)
    for (const [index, [, error, line]] of refused.entries()) {
      const { detail, ...answer } = answers[2 * index]!
      assert.deepEqual(answer, { error }, JSON.stringify(line))
      assert.ok(detail!.length > 0)
      assert.equal(
        answers[2 * index + 1]![kind],
        (vectors[kind][0] as unknown as Record<string, string>)[kind],
      )
    }
  })
}

test('ignores blank lines, and accepts CRLF and a last line without an end', async () => {
  const line = JSON.stringify({ handshake_hex: HELLO_HEX })
  const { exitCode, answers } = await fingerprint('ja4', `\n${line}\r\n \n\r\n${line}`)
  assert.equal(exitCode, 0)
  assert.equal(answers.length, 2)
  assert.deepEqual(await fingerprint('ja4', ''), { exitCode: 0, err: '', answers: [] })
})

test('a line too long to be kept is refused, and the next one is read', async () => {
  const line = JSON.stringify({ handshake_hex: HELLO_HEX })
  const { exitCode, answers } = await fingerprint('ja4', `${'0'.repeat(16 * 1024 * 1024 + 1)}\n${line}\n`)
  assert.equal(exitCode, 1)
  assert.equal(answers[0]!['error'], 'line-too-long')
  assert.equal(answers[1]!['ja4']?.slice(0, 4), 't12i')
})

test('JA4+ can be turned off, and JA4 stays', async () => {
  const env = { GATEHOUSE_FINGERPRINTS_JA4PLUS: 'false' }
  for (const kind of ['ja4s', 'ja4h', 'ja4x'] as const) {
    const { exitCode, answers, err } = await fingerprint(kind, lines([vectors[kind][0]!]), { env })
    assert.deepEqual([exitCode, answers], [1, []])
    assert.match(err, /GATEHOUSE_FINGERPRINTS_JA4PLUS/)
  }
  const { exitCode } = await fingerprint('ja4', lines([{ handshake_hex: HELLO_HEX }]), { env })
  assert.equal(exitCode, 0)
})

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { CLIENT_HELLO, HELLO_BYTES_MAX } from '../../src/wire/client-hello.ts'
import { HandshakeReader, HelloReader, type HelloRead, RecordReader } from '../../src/wire/record.ts'
import { SERVER_HELLO } from '../../src/wire/server-hello.ts'
import { BUDGET, helloPlans, sizes } from '../vectors/arbitraries.ts'
import {
  clientHello,
  every,
  handshakeMessage,
  pieces,
  records,
  serverHello,
} from '../vectors/hello-builder.ts'
import { bytesCopied } from './bytes-copied.ts'

test('any framing in records and segments gives the hello itself', async () => {
  const cases = fc.property(
    helloPlans,
    sizes,
    sizes,
    fc.uint8Array({ maxLength: 9 }),
    (plan, cuts, segments, more) => {
      const hello = clientHello(plan)
      const framed = records(pieces(Buffer.concat([hello, more]), cuts)).filter((record) => record.length > 5)
      const read = readAll(pieces(Buffer.concat(framed), segments))
      assert.deepEqual(read, { kind: 'message', message: hello })
    },
  )
  fc.assert(cases, BUDGET)
})

test('messages come out of records as they went in, whatever the cuts', async () => {
  const messages = fc.array(fc.tuple(fc.nat(255), fc.uint8Array({ maxLength: 100 })), {
    minLength: 1,
    maxLength: 8,
  })
  const cases = fc.property(messages, sizes, (list, cuts) => {
    const sent = list.map(([type, body]) => handshakeMessage(type, body))
    const reader = new HandshakeReader(100)
    const received: Buffer[] = []
    for (const piece of pieces(Buffer.concat(sent), cuts)) {
      reader.push(piece)
      for (let message = reader.next(); message !== null; message = reader.next())
        received.push(Buffer.from(message))
    }
    assert.deepEqual(received, sent)
  })
  fc.assert(cases, BUDGET)
})

test('each kind of record comes out with its header, and unread bytes are kept', async () => {
  const alert = records([Buffer.of(2, 40)], 0x0301, 21)[0]!
  const data = records([Buffer.from('data')], 0x0303, 23)[0]!
  const reader = new RecordReader()
  reader.push(Buffer.concat([alert, data.subarray(0, 6)]))
  const { header, fragment, ...told } = reader.next()!
  assert.deepEqual(told, { type: 21, version: 0x0301 })
  assert.deepEqual(Buffer.concat([header, fragment]), alert)
  assert.equal(reader.next(), null)
  assert.deepEqual(Buffer.from(reader.rest()), data.subarray(0, 6))
  reader.push(data.subarray(6))
  assert.deepEqual(Buffer.from(reader.next()!.fragment), Buffer.from('data'))
  assert.equal(reader.next(), null)
  assert.equal(reader.fault, null)
})

/** Hex, and what is wrong with it: said at its last byte and not before. */
const FAULTS: readonly (readonly [fault: string, hex: string])[] = [
  ['not-tls', '13'],
  ['not-tls', '19'],
  ['not-tls', '80'],
  ['not-tls', '1602'],
  ['not-tls', '16fe'],
  ['record-too-long', '1603014801'],
  ['record-too-long', '160301ffff'],
  ['empty-record', '1603010000'],
  ['empty-record', '16030100040100010016030100' + '00'],
  ['not-handshake', '140303000101'],
  ['not-handshake', '15030300020228'],
  ['not-handshake', '17030300' + '0100'],
  ['not-handshake', '1703030000'],
  ['not-handshake', '18030300' + '0101'],
  ['wrong-type', '160301000102'],
  ['wrong-type', '160301000402010000'],
  ['too-long', '160301000401010001'],
  ['too-long', '160301000101160301000301' + '0001'],
]

for (const [fault, hex] of FAULTS) {
  test(`${fault}: ${hex}`, async () => {
    const bytes = every(1, Buffer.from(hex, 'hex'))
    const reader = new HelloReader()
    const answers = bytes.map((byte) => reader.push(byte))
    assert.deepEqual(answers.at(-1), { kind: 'fault', fault })
    for (const answer of answers.slice(0, -1)) assert.equal(answer.kind, 'need-more')
    assert.deepEqual(readAll([Buffer.concat(bytes)]), { kind: 'fault', fault }, 'and all at once')
  })
}

test('a fault is for good', async () => {
  const reader = new RecordReader()
  reader.push(Buffer.from('GET / HTTP/1.1'))
  assert.equal(reader.next(), null)
  reader.push(Buffer.concat(records([serverHello({})])))
  assert.equal(reader.next(), null)
  assert.equal(reader.fault, 'not-tls')

  const messages = new HandshakeReader(3)
  messages.push(handshakeMessage(1, Buffer.alloc(4)))
  assert.equal(messages.next(), null)
  messages.push(handshakeMessage(1, Buffer.alloc(3)))
  assert.equal(messages.next(), null)
  assert.equal(messages.overflow, true)
})

test('the longest hello is read, and one byte more is refused at its header', async () => {
  const longest = handshakeMessage(1, Buffer.alloc(HELLO_BYTES_MAX))
  assert.deepEqual(readAll(records(every(16_384, longest))), { kind: 'message', message: longest })

  const [first] = records([handshakeMessage(1, Buffer.alloc(HELLO_BYTES_MAX + 1)).subarray(0, 4)])
  assert.deepEqual(readAll([first!]), { kind: 'fault', fault: 'too-long' })
})

test('a reader made for a ServerHello reads that and nothing else', async () => {
  const answer = serverHello({})
  assert.deepEqual(readAll(records(every(3, answer)), SERVER_HELLO), { kind: 'message', message: answer })
  assert.deepEqual(readAll(records([clientHello({})]), SERVER_HELLO), { kind: 'fault', fault: 'wrong-type' })
})

for (const [title, framing] of [
  ['in large records', (hello: Buffer) => Buffer.concat(records(every(16_384, hello)))],
  ['in records of one byte', (hello: Buffer) => Buffer.concat(records(every(1, hello)))],
] as const) {
  test(`a hello ${title} and segments of one byte costs a bounded number of copies a byte`, async () => {
    const stream = framing(handshakeMessage(1, Buffer.alloc(60_000)))
    const segments = every(1, stream)
    const reader = new HelloReader()
    let last: HelloRead = { kind: 'need-more' }
    const copied = bytesCopied(() => {
      for (const segment of segments) last = reader.push(segment)
    })
    assert.equal(last.kind, 'message')
    assert.ok(copied < 8 * stream.length, `${copied} bytes copied of ${stream.length}`)
  })
}

/** What a reader says in the end. Each segment is overwritten once it was pushed, as a socket's buffer is. */
function readAll(segments: readonly Uint8Array[], type = CLIENT_HELLO): HelloRead {
  const reader = new HelloReader(type)
  for (const segment of segments) {
    const lent = Uint8Array.from(segment)
    const read = reader.push(lent)
    if (read.kind === 'message') return { kind: 'message', message: Buffer.from(read.message) }
    if (read.kind === 'fault') return read
    lent.fill(0xee)
  }
  return { kind: 'need-more' }
}

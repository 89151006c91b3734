import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { chunked, INNER } from './desync-case.ts'
import { ANSWER_CASES, type AnswerCase, POISON } from './desync-answers.ts'
import { FRONTS, inTime, startGate } from './desync-gate.ts'
import { ask, BODY, type Heard, METHODS, WAYS } from './desync-hear.ts'
import { type Message, MessageReader, REQUESTS } from './desync-messages.ts'
import { answersIn } from './desync-play.ts'
import { ownName } from './desync-upstreams.ts'

for (const [front, settings] of Object.entries(FRONTS)) {
  test(`${front}: whatever an upstream answers, each client gets its own answer or an error`, async (t) => {
    const upstream = await startLiar(t)
    const gate = await startGate(t, upstream.url, settings)
    const bystander = await gate.dial('plain')
    const faults: string[] = []
    for (const one of ANSWER_CASES) {
      for (const [way, hear] of Object.entries(WAYS)) {
        for (const cut of one.hasMore ? [false] : [false, true]) {
          upstream.say(one, cut)
          try {
            assert.deepEqual(await hear(gate, one.method), heard(one))
            await ask(bystander, 'GET')
            await ask(bystander, 'POST')
          } catch (error) {
            faults.push(`${one.name} (${way}${cut ? ', in pieces' : ''}): ${(error as Error).message}`)
          }
        }
      }
    }
    assert.equal(faults.join('\n\n'), '')
    t.comment(`${ANSWER_CASES.length} answers`)
  })

  test(`${front}: bytes without a request are not an answer`, async (t) => {
    const upstream = await startLiar(t)
    const gate = await startGate(t, upstream.url, settings)
    const bystander = await gate.dial('plain')
    for (const bytes of [POISON, 'H', '\r\n', 'HTTP/1.1 100 Continue\r\n\r\n', POISON.repeat(1000)]) {
      await ask(bystander, 'GET')
      const socket = upstream.last()
      socket.write(bytes)
      await inTime(once(socket, 'close'), () => 'the connection')
      for (const method of METHODS) await ask(bystander, method)
    }
  })

  test(`${front}: an answer before the request is discarded`, async (t) => {
    const upstream = await startLiar(t)
    const gate = await startGate(t, upstream.url, settings)
    const bystander = await gate.dial('plain')
    await ask(bystander, 'GET')
    for (const method of METHODS) {
      const before = bystander.byteCount
      // Both are there when the worker looks next, the request first.
      bystander.write(`${method} /bystander HTTP/1.1\r\nHost: a\r\n${method === 'GET' ? '\r\n' : BODY}`)
      upstream.last().write(POISON)
      const answers = () => answersIn(bystander.bytes.subarray(before), [method], false).whole
      await inTime(
        bystander.hears(() => answers().length > 0),
        () => method,
      )
      const [{ body } = { body: '' }] = answers()
      // What of a body was on its way cannot be sent again.
      if (method === 'GET') assert.equal(body, ownName(method, '/bystander', 0))
      else assert.match(body, /^(?:POST|PUT) \/bystander 5$|"status":502/)
      await ask(bystander, method)
    }
  })

  test(`${front}: an answer that comes too late is discarded`, async (t) => {
    const upstream = await startLiar(t)
    const gate = await startGate(t, upstream.url, settings, { headTimeoutMs: 100 })
    const bystander = await gate.dial('plain')
    for (const before of ['', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'HTTP/1.1 200 OK\r\n']) {
      upstream.say(
        { name: '', method: 'GET', bytes: before, after: 'stays', heard: 'none', hasMore: true },
        false,
      )
      const peer = await gate.dial('plain')
      peer.write(`GET /lie HTTP/1.1\r\nHost: a\r\n\r\n`)
      await inTime(peer.hears('HTTP/1.1 504 '), () => 'the answer')
      const late = upstream.last()
      late.write(POISON)
      for (const method of METHODS) await ask(bystander, method)
      peer.socket.destroy()
    }
  })
}

/** An answer that comes before the body it is for: 0.CL, if the proxy in front of us does not wait for it. */
const EARLY: readonly (readonly [name: string, fields: string, body: string, goesOn: boolean])[] = [
  ['a length', `Content-Length: ${INNER.length}\r\n`, INNER, true],
  ['a length of much', `Content-Length: 100000\r\n`, INNER.padEnd(100_000), false],
  ['chunks', 'Transfer-Encoding: chunked\r\n', chunked(INNER), false],
  [
    'a length, and an expectation',
    `Expect: 100-continue\r\nContent-Length: ${INNER.length}\r\n`,
    INNER,
    false,
  ],
  [
    'chunks, and an expectation',
    'Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n',
    chunked(INNER),
    false,
  ],
]

for (const [front, settings] of Object.entries(FRONTS)) {
  test(`${front}: a body after an early answer is not a request, neither for us nor for the upstream`, async (t) => {
    const upstream = await startLiar(t)
    const gate = await startGate(t, upstream.url, settings)
    const bystander = await gate.dial('plain')
    for (const [name, fields, body, goesOn] of EARLY) {
      const peer = await gate.dial('plain')
      peer.write(`POST /early HTTP/1.1\r\nHost: a\r\n${fields}\r\n`)
      await inTime(peer.hears('early!'), () => name)
      peer.write(body)
      if (goesOn) await ask(peer, 'GET')
      else await inTime(peer.closed, () => `${name}: its end`)
      for (const method of METHODS) await ask(bystander, method)
      peer.socket.destroy()
    }
    const paths = new Set((await gate.sightings()).map(({ path }) => path))
    assert.deepEqual([...paths].sort(), ['/bystander', '/early'])
  })
}

interface Liar {
  readonly url: string
  /** The answer to `/lie`, from now on. Other requests get a correct answer. */
  say(one: AnswerCase, isCut: boolean): void
  /** The connection that was asked last. */
  last(): Socket
}

async function startLiar(t: Test): Promise<Liar> {
  let lie: readonly [AnswerCase, boolean] | null = null
  let last: Socket | null = null
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    const reader = new MessageReader(REQUESTS)
    socket.on('data', (bytes) => {
      last = socket
      reader.add(bytes)
      for (let message = reader.next(); message !== null; message = reader.next()) {
        if (message.start.includes(' /lie ')) void tell(socket, ...lie!)
        else socket.write(truth(message))
      }
      if (reader.rest.includes(' /early ')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nearly!')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    say: (one, isCut) => {
      lie = [one, isCut]
    },
    last: () => last!,
  }
}

function truth({ start, body }: Message): string {
  const [method = '', target = ''] = start.split(' ')
  const name = ownName(method, target, body.length)
  return `HTTP/1.1 200 OK\r\nContent-Length: ${name.length}\r\n\r\n${name}`
}

async function tell(socket: Socket, { bytes, after }: AnswerCase, isCut: boolean): Promise<void> {
  const pieces = isCut ? bytes.split('') : [bytes]
  for (const piece of pieces) {
    if (piece !== '') socket.write(piece, 'latin1')
    if (isCut) await new Promise((resolve) => setImmediate(resolve))
  }
  if (after === 'ends') socket.end()
  else if (after === 'resets') socket.resetAndDestroy()
}

function heard({ heard }: AnswerCase): Heard {
  return heard === 'none' ? { status: 502, body: '' } : heard
}

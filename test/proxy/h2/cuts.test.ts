import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import type { Exchange } from '../../../src/proxy/connection/exchange.ts'
import { dialHttp2, type Http2Peer, PING, PROTOCOL_ERROR } from '../../hostile/http2-peer.ts'
import { answerText, type Front, startFront } from '../front.ts'
import {
  data,
  fieldBlock,
  frame,
  getRequest,
  headers,
  PREFACE,
  priority,
  settings,
  windowUpdate,
} from '../http2-frames.ts'

const [CONTINUATION, END_STREAM, END_HEADERS, PADDED, HAS_PRIORITY] = [9, 1, 4, 8, 0x20]
const posted = fieldBlock(getRequest({ ':method': 'POST', ':path': '/padded' }, 'x-one', '1'))
const trailers = fieldBlock(['x-sum', '7'])
/** `:method: GET`, `:scheme: https`, `:path: /`, `:authority: www.example.com` in Huffman coding (RFC 7541, C.4.1). */
const indexed = Buffer.from('828784418cf1e3c2e5f23a6ba0ab90f4ff', 'hex')
/** The same, its authority from the dynamic table. */
const again = Buffer.from('828784be', 'hex')

/** One of each kind of frame that a client may send, and a request that must be refused. */
const CONVERSATION = Buffer.concat([
  PREFACE,
  settings([1, 4096], [4, 65_535]),
  windowUpdate(1000),
  priority(3, 0, 15),
  frame(
    1,
    PADDED | HAS_PRIORITY,
    1,
    Buffer.concat([Buffer.from('070000000010', 'hex'), posted.subarray(0, 20), Buffer.alloc(7)]),
  ),
  frame(CONTINUATION, 0, 1, posted.subarray(20, 21)),
  frame(CONTINUATION, END_HEADERS, 1, posted.subarray(21)),
  frame(0, PADDED, 1, Buffer.from('\x03hello \0\0\0', 'latin1')),
  frame(1, END_STREAM | END_HEADERS, 3, indexed),
  data(1, '', false),
  data(1, 'world', false),
  frame(1, END_STREAM, 1, trailers.subarray(0, 3)),
  frame(CONTINUATION, END_HEADERS, 1, trailers.subarray(3)),
  frame(PING, 0, 0, Buffer.from('12345678')),
  headers(5, getRequest({ ':method': 'PUT', ':path': '/measured' }, 'content-length', '10'), {
    hasEnded: false,
  }),
  frame(0xee, 0xff, 5, Buffer.from('of an extension')),
  data(5, '0123456789', false),
  data(5, ''),
  headers(7, getRequest({}, 'X-Up', 'refused')),
  settings([4, 60_000]),
  frame(1, END_STREAM | END_HEADERS, 9, again),
])

const ANSWERS: Readonly<Record<number, string>> = {
  1: 'POST /padded a hello world x-sum,7',
  3: 'GET / www.example.com  ',
  5: 'PUT /measured a 0123456789 ',
  9: 'GET / www.example.com  ',
}

test('HTTP/2: a conversation in two pieces, cut at each byte, gets the same answers', async (t) => {
  const front = await start()
  t.teardown(() => front.close())
  for (let cut = 0; cut <= CONVERSATION.length; cut++)
    await converse(front, [CONVERSATION.subarray(0, cut), CONVERSATION.subarray(cut)], `cut at ${cut}`)
})

test('HTTP/2: a conversation in pieces of 1 to 20 bytes gets the same answers, in the clear and over TLS', async (t) => {
  for (const isTls of [false, true]) {
    const front = await start(isTls)
    t.teardown(() => front.close())
    for (let size = 1; size <= 20; size++) {
      const pieces = Array.from({ length: Math.ceil(CONVERSATION.length / size) }, (_, index) =>
        CONVERSATION.subarray(index * size, (index + 1) * size),
      )
      await converse(front, pieces, `pieces of ${size}${isTls ? ' over TLS' : ''}`, isTls)
    }
  }
})

async function converse(
  front: Front,
  pieces: readonly Buffer[],
  title: string,
  isTls = false,
): Promise<void> {
  const peer = await dialHttp2(front.port, { isTls })
  peer.socket.setNoDelay(true)
  for (const piece of pieces) {
    peer.write(piece)
    // The server is in this process: its turn comes before ours does again.
    await setImmediate()
  }
  for (const stream of [1, 3, 5, 9]) await peer.until(() => peer.isAnswered(stream))
  await peer.until(() => peer.resetOf(7) !== null)
  await peer.until(() => acknowledged(peer) === 2 && isPingAnswered(peer))
  assert.deepEqual(
    Object.fromEntries([1, 3, 5, 9].map((stream) => [stream, peer.bodyOf(stream).toString()])),
    ANSWERS,
    title,
  )
  assert.deepEqual([peer.resetOf(7), peer.goaway], [PROTOCOL_ERROR, null], title)
  peer.socket.destroy()
}

function acknowledged({ frames }: Http2Peer): number {
  return frames.filter(({ type, flags }) => type === 4 && flags === 1).length
}

function isPingAnswered({ frames }: Http2Peer): boolean {
  return frames.some(
    ({ type, flags, payload }) => type === PING && flags === 1 && payload.toString() === '12345678',
  )
}

function start(isTls = false): Promise<Front> {
  return startFront({ ...(isTls ? {} : { tls: null }), request: tell })
}

/** Answers with everything that was read of the request. */
function tell(exchange: Exchange): void {
  const { head, authority, body } = exchange
  const chunks: Buffer[] = []
  body.on('data', (chunk: Buffer) => chunks.push(chunk))
  body.on('end', () => {
    const text = Buffer.concat(chunks).toString('latin1')
    answerText(exchange, `${head.method} ${head.target} ${authority} ${text} ${exchange.trailers}`)
  })
}

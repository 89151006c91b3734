import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import {
  data,
  fieldBlock,
  frame,
  getRequest,
  headers,
  PREFACE,
  settings,
  windowUpdate,
} from '../proxy/http2-frames.ts'
import { startHolder } from './holder.ts'
import { CONTINUATION, DATA, dialHttp2, HEADERS, type Http2Peer, PING } from './http2-peer.ts'
import { startVictim, startWitness } from './victim.ts'

/** So that nothing has to be waited for long. */
const LIMITS = {
  headerTimeoutMs: 300,
  keepAliveTimeoutMs: 300,
  bodyIdleTimeoutMs: 300,
  answerUnreadTimeoutMs: 1000,
  h2ResetBurst: 1000,
}

const get = (path: string, stream = 1) => headers(stream, getRequest({ ':path': path }))
const post = (path: string, stream = 1) =>
  headers(stream, getRequest({ ':method': 'POST', ':path': path }), { hasEnded: false })
const block = fieldBlock(getRequest())
const CLOSED_WINDOWS = settings([4, 0])
const OPEN_WINDOWS = settings([4, 0x7fff_ffff])

interface Slowness {
  readonly name: string
  /** Everything that is sent at first. */
  readonly first: readonly Buffer[]
  /** And this again and again, until the connection is gone. */
  readonly drip?: Buffer
  /** The client does not read. */
  readonly isDeaf?: boolean
  /** What it has got in the end; the connection is gone. */
  readonly gets?: (peer: Http2Peer) => void
}

const SLOWNESSES: readonly Slowness[] = [
  { name: 'nothing', first: [] },
  { name: 'half a preface', first: [PREFACE.subarray(0, 12)] },
  { name: 'a preface, and no SETTINGS', first: [PREFACE] },
  { name: 'half of SETTINGS', first: [PREFACE, settings([3, 1]).subarray(0, 10)] },
  { name: 'no request', first: [PREFACE, settings()], gets: (peer) => assert.equal(peer.goaway, 0) },
  {
    name: 'no request, but PINGs',
    first: [PREFACE, settings()],
    drip: frame(PING, 0, 0, Buffer.alloc(8)),
    gets: (peer) => assert.equal(peer.goaway, 0),
  },
  { name: 'no request, but SETTINGS', first: [PREFACE, settings()], drip: settings([3, 1]) },
  { name: 'no request, but PRIORITY', first: [PREFACE, settings()], drip: frame(2, 0, 1, Buffer.alloc(5)) },
  { name: 'half a frame', first: [PREFACE, settings(), get('/').subarray(0, 20)] },
  { name: 'half a field block', first: [PREFACE, settings(), frame(HEADERS, 1, 1, block.subarray(0, 9))] },
  {
    name: 'a field block byte by byte',
    first: [PREFACE, settings(), frame(HEADERS, 1, 1)],
    drip: frame(CONTINUATION, 0, 1, Buffer.of(0)),
  },
  {
    name: 'a body that stops',
    first: [PREFACE, settings(), post('/'), data(1, 'half', false)],
    gets: (peer) => assert.equal(peer.statusOf(1), 408),
  },
  {
    name: 'a body of nothing but padding',
    first: [PREFACE, settings(), post('/')],
    drip: frame(DATA, 8, 1, Buffer.of(3, 0, 0, 0)),
    gets: (peer) => assert.equal(peer.statusOf(1), 408),
  },
  {
    name: 'a body that never ends, behind its answer',
    first: [PREFACE, settings(), post('/early')],
    // Whether its app or our patience was first.
    gets: (peer) => assert.ok([200, 408].includes(peer.statusOf(1)!)),
  },
  {
    name: 'an answer that no window is opened for',
    first: [PREFACE, CLOSED_WINDOWS, get('/large')],
    gets: (peer) => assert.deepEqual([peer.statusOf(1), peer.resetOf(1) !== null], [200, true]),
  },
  {
    name: 'the same of a few bytes',
    first: [PREFACE, CLOSED_WINDOWS, get('/')],
    gets: (peer) => assert.deepEqual([peer.statusOf(1), peer.resetOf(1) !== null], [200, true]),
  },
  {
    name: 'an answer that is read byte by byte',
    first: [PREFACE, CLOSED_WINDOWS, get('/large')],
    drip: windowUpdate(1, 1),
    gets: (peer) => assert.ok(peer.resetOf(1) !== null),
  },
  {
    name: 'an answer that is not read, and PINGs',
    first: [PREFACE, CLOSED_WINDOWS, get('/large')],
    drip: frame(PING, 0, 0, Buffer.alloc(8)),
    gets: (peer) => assert.ok(peer.resetOf(1) !== null),
  },
  {
    name: 'a hundred answers that no window is opened for',
    first: [
      PREFACE,
      CLOSED_WINDOWS,
      ...Array.from({ length: 100 }, (_, index) => get('/large', 2 * index + 1)),
    ],
    gets: (peer) => assert.ok(peer.resetOf(199) !== null),
  },
  {
    name: 'a socket that is not read, with every window open',
    first: [
      PREFACE,
      OPEN_WINDOWS,
      windowUpdate(0x7fff_0000),
      ...Array.from({ length: 100 }, (_, index) => get('/large', 2 * index + 1)),
    ],
    isDeaf: true,
  },
]

test('HTTP/2 that is slow', { timeout: 120_000 }, async (t) => {
  const app = await startHolder(t)
  const victim = await startVictim(t, { upstream: app.url, limits: LIMITS })
  t.test(
    'a client that is slow, or never reads, is disconnected in time, and everything it held is freed',
    {
      timeout: 60_000,
    },
    async (t) => {
      const witness = startWitness(victim.port)
      await Promise.all(
        SLOWNESSES.map(async ({ name, first, drip = null, isDeaf = false, gets = () => undefined }) => {
          const peer = await dialHttp2(victim.port)
          try {
            if (isDeaf) peer.socket.pause()
            if (first.length > 0) peer.write(...first)
            while (!peer.isClosed && !isDeaf) {
              await wait(20)
              if (drip !== null) peer.write(drip)
            }
            // Who does not read does not hear that it is over, either.
            if (isDeaf) await t.resolves(victim.settles('connections_open h2', 0))
            gets(peer)
          } catch (error) {
            t.fail(`${name}: ${(error as Error).message}`)
          } finally {
            peer.socket.destroy()
          }
        }),
      )
      assert.ok((await witness.leave()) > 0)
      await victim.settles('connections_open h2', 0)
      await victim.settles('streams_open', 0)
      await app.settles()
      t.comment(`${SLOWNESSES.length} ways`)
    },
  )

  t.test('a stream that is not read ends alone, and one that is read slowly does not', async (t) => {
    const peer = await dialHttp2(victim.port)
    t.teardown(() => peer.socket.destroy())
    peer.write(
      PREFACE,
      CLOSED_WINDOWS,
      windowUpdate(0x7fff_0000),
      get('/large'),
      get('/large', 3),
      get('/events', 5),
      windowUpdate(0x7fff_0000, 5),
    )
    // The second one takes some of its answer now and then, four times within the time there is for that.
    while (peer.resetOf(1) === null && !peer.isClosed) {
      peer.write(windowUpdate(300_000, 3))
      await wait(LIMITS.answerUnreadTimeoutMs / 4)
    }
    peer.write(windowUpdate(10_000_000, 3))
    await peer.until(() => peer.isAnswered(3) || peer.resetOf(3) !== null)
    assert.deepEqual([peer.statusOf(3), peer.resetOf(3)], [200, null])
    // Neither does one whose app is silent.
    assert.deepEqual([peer.statusOf(5), peer.resetOf(5)], [200, null])
  })

  t.test(
    'a client that is gone in the middle of its answers leaves nothing, in the clear and over TLS',
    async () => {
      for (const isTls of [true, false]) {
        for (const isDeaf of [true, false]) {
          const peer = await dialHttp2(isTls ? victim.port : victim.plainPort, { isTls })
          if (isDeaf) peer.socket.pause()
          peer.write(
            PREFACE,
            OPEN_WINDOWS,
            windowUpdate(0x7fff_0000),
            ...Array.from({ length: 100 }, (_, index) => get('/large', 2 * index + 1)),
          )
          await app.isAsked(100)
          await wait(100)
          peer.socket.destroy()
          await victim.settles('connections_open h2', 0)
          await victim.settles('streams_open', 0)
          await app.settles()
        }
      }
    },
  )

  t.test('a client that does not close its side is closed', async () => {
    const peer = await dialHttp2(victim.plainPort, { isTls: false, closes: false })
    peer.write(PREFACE, settings(), get('/'))
    await peer.until(() => peer.goaway !== null)
    await victim.settles('connections_open h2', 0)
    peer.socket.destroy()
  })
})

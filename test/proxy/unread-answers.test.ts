import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type Test, test } from 'tap'
import { dialPlain, dialTls, type Peer } from './front.ts'
import { startGate } from './test-gate.ts'
import { settingsFor, upstream } from './upstream-fixture.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
/** On a busy machine, a process may not run for half a second. */
const TIMEOUT_MS = 1_000
/** So slow that it is not done before. */
const PAUSE_MS = 15
const TOTAL = 24 * 1024 * 1024

for (const fastLane of [true, false]) {
  for (const dial of [dialPlain, dialTls]) {
    const name = `${fastLane ? 'fast' : 'robust'} lane, ${dial === dialTls ? 'TLS' : 'plain'}`
    test(`${name}: a client that leaves its answer unread is let go of, and the app's connection with it`, async (t) => {
      const { peer, app } = await asked(t, fastLane, dial)
      await once(peer.socket, 'data')
      peer.socket.pause()
      while (app.sockets.size > 0) await pause()
      peer.socket.resume()
      await peer.closed
      assert.ok(peer.byteCount < TOTAL)
    })

    test(`${name}: one that goes on reading, however slowly, has all of it`, async (t) => {
      const { peer } = await asked(t, fastLane, dial)
      const began = performance.now()
      const isCut = peer.closed.then(() => assert.fail('it was let go of'))
      isCut.catch(() => undefined) // it is in the end
      while (performance.now() - began < 3 * TIMEOUT_MS) {
        await Promise.race([once(peer.socket, 'data'), isCut])
        peer.socket.pause()
        await pause()
        peer.socket.resume()
      }
      await peer.hears(() => peer.byteCount > TOTAL)
      peer.socket.destroy()
    })
  }
}

async function asked(t: Test, fastLane: boolean, dial: (port: number) => Promise<Peer>) {
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${TOTAL}\r\n\r\n`
  const app = await upstream((socket) => {
    socket.once('data', () => socket.write(Buffer.concat([Buffer.from(head), Buffer.alloc(TOTAL)])))
  })
  t.teardown(() => app.settled())
  const gate = await startGate(t, {
    upstreams: [settingsFor([app.url])],
    options: { fastLane },
    limits: { answerUnreadTimeoutMs: TIMEOUT_MS },
  })
  const peer = await dial(dial === dialTls ? gate.secure.port : gate.plain.port)
  peer.write(GET)
  return { peer, app }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
}

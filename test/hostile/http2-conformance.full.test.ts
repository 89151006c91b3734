import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Test, test } from 'tap'
import { SingleWorker } from '../../src/proxy/worker/single-worker.ts'
import { getRequest, headers, PREFACE, settings } from '../proxy/http2-frames.ts'
import { goodPair, liveState, surroundings } from '../proxy/test-worker.ts'
import type { Case, Outcome } from './http2-conformance-case.ts'
import { CASES } from './http2-conformance-cases.ts'
import { dialHttp2, GOAWAY, type Http2Peer, PROTOCOL_ERROR, SETTINGS } from './http2-peer.ts'

/** Notes what no app may get. */
class App {
  readonly oddities: string[] = []

  answer(request: IncomingMessage, response: ServerResponse): void {
    this.#look(request.rawHeaders)
    request.resume()
    request.on('end', () => {
      this.#look(request.rawTrailers)
      if (request.url !== '/hold') response.end('ok')
    })
  }

  #look(fields: readonly string[]): void {
    for (const text of fields) if (text.includes('smuggled') || text.startsWith(':')) this.oddities.push(text)
  }
}

for (const http2 of ['own', 'node'] as const) {
  test(`HTTP/2, ${http2}: what each client that breaks a rule gets, and each that keeps it, over TLS and in the clear`, async (t) => {
    for (const isTls of [true, false]) {
      const app = new App()
      const port = await serving(t, { http2, isTls, app })
      const witness = await dialHttp2(port, { isTls })
      witness.write(PREFACE, settings())
      const cases = CASES.filter(({ isBare }) => isTls || !isBare) // in the clear these are HTTP/1
      for (const [index, each] of cases.entries()) {
        const title = `${each.section}: ${each.title}${isTls ? '' : ', in the clear'}`
        await tried(port, isTls, each, http2 === 'node' ? (each.node?.gets ?? each.gets) : each.gets).catch(
          (error) => t.fail(`${title}: ${error.message}`),
        )
        // Nothing that was done there is felt here.
        const stream = 2 * index + 1
        witness.write(headers(stream, getRequest()))
        await witness.until(() => witness.isAnswered(stream))
        assert.equal(witness.statusOf(stream), 200, title)
        if (app.oddities.length > 0) t.fail(`${title}: the app got ${app.oddities.splice(0)}`)
      }
      witness.socket.destroy()
    }
    t.comment(`${CASES.length} cases`)
  })
}

async function tried(port: number, isTls: boolean, { steps, isBare }: Case, outcome: Outcome): Promise<void> {
  const peer = await dialHttp2(port, { isTls })
  try {
    if (!isBare) peer.write(PREFACE, settings())
    for (const step of steps) {
      if (typeof step === 'number') await peer.until(() => peer.isAnswered(step))
      else peer.write(step)
    }
    await OUTCOMES[outcome.kind](peer, outcome as never)
  } finally {
    peer.socket.destroy()
  }
}

type Of<Kind extends Outcome['kind']> = Extract<Outcome, { kind: Kind }>

const OUTCOMES = {
  async ended(peer: Http2Peer, { codes }: Of<'ended'>): Promise<void> {
    await peer.gone()
    if (codes.length === 0) return
    assert.ok(peer.goaway !== null && codes.includes(peer.goaway), `GOAWAY of ${peer.goaway}`)
    assert.ok(peer.frames.length > 0 && peer.frames[0]!.type === SETTINGS, 'its preface comes first')
  },
  async reset(peer: Http2Peer, { stream, codes }: Of<'reset'>): Promise<void> {
    await peer.until(() => peer.resetOf(stream) !== null)
    assert.ok(
      codes.includes(peer.resetOf(stream) ?? -1),
      `reset with ${peer.resetOf(stream)}, goaway ${peer.goaway}`,
    )
    await goesOn(peer)
  },
  async fault(peer: Http2Peer, { stream, codes }: Of<'fault'>): Promise<void> {
    await peer.until(() => peer.resetOf(stream) !== null || peer.goaway !== null)
    const code = peer.resetOf(stream) ?? peer.goaway
    assert.ok(codes.includes(code ?? -1), `reset with ${peer.resetOf(stream)}, goaway ${peer.goaway}`)
    if (peer.goaway === null) await goesOn(peer)
    else await peer.gone()
  },
  async malformed(peer: Http2Peer, { stream }: Of<'malformed'>): Promise<void> {
    await peer.until(() => peer.isAnswered(stream) || peer.resetOf(stream) !== null)
    const [status, code] = [peer.statusOf(stream), peer.resetOf(stream)]
    assert.ok(
      status === 400 || (status === null && code === PROTOCOL_ERROR),
      `status ${status}, reset ${code}`,
    )
    await goesOn(peer)
  },
  async served(peer: Http2Peer, { streams }: Of<'served'>): Promise<void> {
    for (const stream of streams) {
      await peer.until(() => peer.isAnswered(stream) || peer.resetOf(stream) !== null)
      assert.deepEqual([peer.statusOf(stream), peer.resetOf(stream)], [200, null], `stream ${stream}`)
    }
    await goesOn(peer)
  },
  async refused(peer: Http2Peer, { stream, status }: Of<'refused'>): Promise<void> {
    await peer.until(() => peer.isAnswered(stream))
    assert.equal(peer.statusOf(stream), status)
    await goesOn(peer)
  },
  async ignored(peer: Http2Peer): Promise<void> {
    await goesOn(peer)
    assert.equal(peer.frames[0]!.type, SETTINGS, 'its preface comes first')
    const acknowledged = peer.frames.filter(({ type, flags }) => type === SETTINGS && flags === 1)
    assert.ok(acknowledged.length > 0, 'SETTINGS are acknowledged')
  },
}

async function goesOn(peer: Http2Peer): Promise<void> {
  assert.ok(await peer.isRead(), `closed, GOAWAY of ${peer.goaway}`)
  assert.ok(!peer.frames.some(({ type }) => type === GOAWAY), 'it says GOAWAY')
}

interface Serving {
  readonly http2: 'own' | 'node'
  readonly isTls: boolean
  readonly app: App
}

/** Four streams at once, and an app that never answers `/hold`. */
async function serving(t: Test, { http2, isTls, app }: Serving): Promise<number> {
  const around = await surroundings(t, (request, response) => app.answer(request, response))
  const limits = { ...around.settings.limits, streamsPerConnectionMax: 4 }
  const plainListen = { host: '127.0.0.1', port: 0 }
  const worker = new SingleWorker({ ...around.settings, http2, limits, plainListen }, around.bus, around.log)
  const { listen, plainListen: plain } = await worker.start(liveState([await goodPair()]))
  t.teardown(() => worker.drain(0))
  return isTls ? listen.port : plain!.port
}

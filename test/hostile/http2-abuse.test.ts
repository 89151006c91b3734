import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { PREFACE, settings } from '../proxy/http2-frames.ts'
import { ABUSES, type Abuse, abuse, RESET_BURST, STREAMS_MAX } from './http2-abuse-cases.ts'
import { dialHttp2, NO_ERROR } from './http2-peer.ts'
import { type Reading, startVictim, startWitness, type Victim } from './victim.ts'

const IS_WHOLE = process.env['HOSTILE'] === 'whole'
const ROUNDS = IS_WHOLE ? 10 : 2
const SESSION_MEMORY_BYTES = 8_000_000
const LIMITS = {
  answerUnreadTimeoutMs: 1000,
  h2ResetBurst: RESET_BURST,
  h2ResetRate: 10,
  streamsPerConnectionMax: STREAMS_MAX,
  h2SessionMemoryBytes: SESSION_MEMORY_BYTES,
}
/** What a collector leaves for the next time, and what the tests of memory must not stumble over. */
const SLACK_BYTES = 4_000_000

test('HTTP/2: no abuse costs more than was allowed, ends the worker, or is felt by others', {
  timeout: IS_WHOLE ? 1_800_000 : 120_000,
}, async (t) => {
  const app = await startHolder(t)
  const victim = await startVictim(t, { upstream: app.url, limits: LIMITS })
  const held: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    let last = await victim.read()
    for (const each of ABUSES) {
      try {
        last = await suffered(victim, app, last, each)
      } catch (error) {
        t.fail(`${each.name}: ${(error as Error).message}`)
      }
    }
    const { heldBytes } = await victim.settles('connections_open h2', 0)
    held.push(heldBytes)
  }
  t.comment(`held after each round: ${held.map((bytes) => `${(bytes / 1e6).toFixed(1)} MB`).join(', ')}`)
  assert.ok(held.at(-1)! - held[0]! < SLACK_BYTES, 'what was abused is given back')
  t.pass(`${ABUSES.length} abuses`)
})

async function suffered(victim: Victim, app: Holder, last: Reading, plan: Abuse): Promise<Reading> {
  const { outcome, isDeaf = false } = plan
  const before = typeof outcome === 'string' ? last : await victim.read()
  app.asked = 0
  const witness = startWitness(victim.port)
  const peer = await dialHttp2(victim.port)
  try {
    peer.write(PREFACE, settings())
    await abuse(peer, plan)
    if (typeof outcome !== 'string') await peer.gone()
    else if (outcome === 'goes on') assert.ok(await peer.isRead(), `it has ended, GOAWAY of ${peer.goaway}`)
    const during = await victim.read()
    const heldBytes = during.heldBytes - before.heldBytes
    assert.ok(heldBytes < SESSION_MEMORY_BYTES * 2 + SLACK_BYTES, `it held ${heldBytes} bytes`)
    assert.ok(app.asked <= plan.askedMax, `${app.asked} requests have come to the app`)
    if (typeof outcome !== 'string') {
      assert.ok(peer.goaway === null || outcome.includes(peer.goaway), `GOAWAY of ${peer.goaway}`)
      if (!outcome.includes(NO_ERROR)) assert.ok(failures(during) > failures(before), 'it is counted')
    }
    if (isDeaf) peer.socket.resume()
    assert.ok((await witness.leave()) > 0)
    return during
  } finally {
    peer.socket.destroy()
  }
}

function failures({ metrics }: Reading): number {
  return metrics['connection_failures_total h2-protocol']!
}

interface Holder {
  readonly url: string
  /** Without those of witnesses. */
  asked: number
  /** Requests that are not over. */
  open: number
}

/** An app that answers `/hold` never, `/large` at length, and does not read what is sent to `/unread`. */
async function startHolder(t: Test): Promise<Holder> {
  const large = Buffer.alloc(4_000_000, 'x')
  const server = createServer((request, response) => {
    if (request.url === '/witness') return void response.end('ok')
    holder.asked++
    holder.open++
    response.on('close', () => holder.open--)
    if (request.url === '/unread') return void request.pause()
    request.resume()
    if (request.url === '/large') response.end(large)
    else if (request.url !== '/hold') request.on('end', () => response.end('ok'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const holder: Holder = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: 0,
    open: 0,
  }
  return holder
}

import assert from 'node:assert/strict'
import { test } from 'tap'
import { HTTP2_SERVER } from '../proxy/front.ts'
import { PREFACE, settings } from '../proxy/http2-frames.ts'
import { type Holder, startHolder } from './holder.ts'
import { ABUSES, type Abuse, abuse, RESET_BURST, STREAMS_MAX } from './http2-abuse-cases.ts'
import { dialHttp2, ENHANCE_YOUR_CALM, NO_ERROR } from './http2-peer.ts'
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
const FAILURES = 'connection_failures_total h2-protocol'
/** What a collector leaves for the next time, and what the tests of memory must not stumble over. */
const SLACK_BYTES = 4_000_000

test('HTTP/2: no abuse costs more than was allowed, ends the worker, or is felt by others', {
  timeout: IS_WHOLE ? 1_800_000 : 90_000,
}, async (t) => {
  const app = await startHolder(t)
  const victim = await startVictim(t, { upstream: app.url, limits: LIMITS })
  const held: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    let last = await victim.read()
    // In CI a first round only warms up.
    const cases = IS_WHOLE || round > 0 ? ABUSES : ABUSES.filter((_, index) => index % 4 === 0)
    for (const each of cases) {
      try {
        last = await suffered(victim, app, last, each, round > 0)
        // What is still on its way would be counted for the next.
        await victim.settles('connections_open h2', 0)
        await app.settles()
      } catch (error) {
        t.fail(`${each.name}: ${(error as Error).message}`)
      }
    }
    const { heldBytes } = await victim.read()
    held.push(heldBytes)
  }
  t.comment(`held after each round: ${held.map((bytes) => `${(bytes / 1e6).toFixed(1)} MB`).join(', ')}`)
  assert.ok(held.at(-1)! - held[0]! < SLACK_BYTES, 'what was abused is given back')
  t.comment(`${ABUSES.length} abuses`)
})

async function suffered(
  victim: Victim,
  app: Holder,
  last: Reading,
  plan: Abuse,
  isWeighed: boolean,
): Promise<Reading> {
  const { outcome, counted = null, isDeaf = false } = plan
  const before = typeof outcome === 'string' && counted === null ? last : await victim.read(isWeighed)
  app.asked = 0
  const witness = startWitness(victim.port)
  const peer = await dialHttp2(victim.port)
  try {
    peer.write(PREFACE, settings())
    await abuse(peer, plan)
    if (typeof outcome !== 'string') await peer.gone()
    else if (outcome === 'goes on') assert.ok(await peer.isRead(), `it has ended, GOAWAY of ${peer.goaway}`)
    const during = await victim.read(isWeighed)
    const heldBytes = during.heldBytes - before.heldBytes
    if (isWeighed) assert.ok(heldBytes < SESSION_MEMORY_BYTES * 2 + SLACK_BYTES, `it held ${heldBytes} bytes`)
    assert.ok(app.asked <= plan.askedMax, `${app.asked} requests have come to the app`)
    if (typeof outcome !== 'string') {
      const codes = [...outcome, ENHANCE_YOUR_CALM]
      assert.ok(peer.goaway === null || codes.includes(peer.goaway), `GOAWAY of ${peer.goaway}`)
      // Node says so once the connection is gone.
      if (!outcome.includes(NO_ERROR)) await victim.settles(FAILURES, { above: before.metrics[FAILURES]! })
    }
    if (HTTP2_SERVER === 'own' && counted !== null) {
      const code = `http2_failures_total ${counted}`
      await victim.settles(code, { above: before.metrics[code]! })
    }
    if (isDeaf) peer.socket.resume()
    assert.ok((await witness.leave()) > 0)
    return during
  } finally {
    peer.socket.destroy()
  }
}

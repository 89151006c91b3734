import { test } from 'tap'
import { FRONTS, IS_WHOLE, startGate } from './desync-gate.ts'
import { Play } from './desync-play.ts'
import { CASES, EXAMPLES } from './desync-table.ts'
import { UPSTREAMS } from './desync-upstreams.ts'

const TRIED = IS_WHOLE ? CASES : EXAMPLES

for (const [front, settings] of Object.entries(FRONTS)) {
  test(`${front}: it is the same however the bytes are cut`, async (t) => {
    const upstream = await UPSTREAMS['bytes']!(t)
    const play = new Play(await startGate(t, upstream.url, settings), upstream)
    for (const one of TRIED) {
      const places = Array.from({ length: Math.min(one.bytes.length, BYTES_MAX) - 1 }, (_, i) => i + 1)
      await play.play(one, 'plain', places)
      await play.play(one, 'tls', places)
      for (const place of places) if (IS_WHOLE || place % 9 === 0) await play.play(one, 'plain', [place])
    }
    await play.settle()
    t.comment(`${TRIED.length} cases, ${play.count} connections`)
  })
}

/** What is longer is so for a limit's sake. */
const BYTES_MAX = 600

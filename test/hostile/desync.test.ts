import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { FRONTS, IS_WHOLE, startGate } from './desync-gate.ts'
import { Play } from './desync-play.ts'
import { CASES } from './desync-table.ts'
import { UPSTREAMS } from './desync-upstreams.ts'

for (const [front, settings] of Object.entries(FRONTS)) {
  for (const [name, start] of Object.entries(UPSTREAMS)) {
    test(`${front} before ${name}: what is forwarded is what was decided on`, {
      skip: name === 'nginx' || name === 'apache2' ? skipped(name) : false,
    }, async (t) => {
      const upstream = await start(t)
      const play = new Play(await startGate(t, upstream.url, settings), upstream)
      for (const [index, one] of CASES.entries()) {
        if (one.except === name) continue
        await play.play(one, 'plain')
        // TLS carries the same bytes.
        if (IS_WHOLE || (name === 'bytes' && index % 4 === 0)) await play.play(one, 'tls')
      }
      await play.settle()
      t.comment(`${CASES.length} cases, ${play.count} connections`)
    })
  }
}

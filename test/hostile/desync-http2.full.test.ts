import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { HTTP2_FRONTS, IS_WHOLE, startGate } from './desync-gate.ts'
import { HTTP2_CASES } from './desync-http2.ts'
import { Play } from './desync-play.ts'
import { HTTP2_UPSTREAMS, UPSTREAMS } from './desync-upstreams.ts'

for (const [front, settings] of Object.entries(HTTP2_FRONTS)) {
  for (const [name, start] of Object.entries({ ...UPSTREAMS, ...HTTP2_UPSTREAMS })) {
    const [program = ''] = name.split(' ')
    test(`${front} before ${name}: what is forwarded of HTTP/2 is what was decided on`, {
      skip: program === 'nginx' || program === 'apache2' ? skipped(program) : false,
    }, async (t) => {
      const upstream = await start(t)
      const play = new Play(await startGate(t, upstream.url, settings), upstream)
      for (const [index, one] of HTTP2_CASES.entries()) {
        if (one.except.includes(name)) continue
        if (!IS_WHOLE && name !== 'bytes' && index % 3 !== 0) continue
        await play.playHttp2(one, 'plain')
        if (IS_WHOLE) await play.playHttp2(one, 'tls')
      }
      await play.settle()
      t.comment(`${HTTP2_CASES.length} cases, ${play.count} connections`)
    })
  }
}

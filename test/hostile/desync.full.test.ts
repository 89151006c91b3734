import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import type { Case } from './desync-case.ts'
import { FRONTS, IS_WHOLE, startGate } from './desync-gate.ts'
import { Play } from './desync-play.ts'
import { CASES } from './desync-table.ts'
import { HTTP2_UPSTREAMS, UPSTREAMS } from './desync-upstreams.ts'

for (const [front, settings] of Object.entries(FRONTS)) {
  for (const [name, start] of Object.entries({ ...UPSTREAMS, ...HTTP2_UPSTREAMS })) {
    const [program = ''] = name.split(' ')
    test(`${front} before ${name}: what is forwarded is what was decided on`, {
      skip: program === 'nginx' || program === 'apache2' ? skipped(program) : false,
    }, async (t) => {
      const upstream = await start(t)
      const play = new Play(await startGate(t, upstream.url, settings), upstream)
      for (const [index, one] of CASES.entries()) {
        if (one.except === program || !isFor(one, name)) continue
        if (IS_WHOLE || index % everyth(name) === 0) await play.play(one, 'plain')
        // TLS carries the same bytes.
        if (IS_WHOLE || (name === 'bytes' && index % 4 === 0)) await play.play(one, 'tls')
      }
      await play.settle()
      t.comment(`${CASES.length} cases, ${play.count} connections`)
    })
  }
}

/** The share that is tried where not all is. */
function everyth(upstream: string): number {
  return upstream === 'bytes' || upstream === 'node' ? 1 : upstream in HTTP2_UPSTREAMS ? 5 : 2
}

/** Over h2c there is no upgrade; and nginx (1.22) accepts no trailers there and sends no 100 Continue. */
function isFor({ family, forwarded }: Case, upstream: string): boolean {
  if (!(upstream in HTTP2_UPSTREAMS)) return true
  if (forwarded.some(({ isUpgrade }) => isUpgrade)) return false
  return upstream !== 'nginx over h2c' || (family !== 'trailers' && family !== 'expectations')
}

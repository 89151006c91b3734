import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import type { Case } from './desync-case.ts'
import { CHUNKS } from './desync-chunks.ts'
import { FRAMING } from './desync-framing.ts'
import { LINES } from './desync-lines.ts'
import { ROUTES } from './desync-routes.ts'
import { type Door, FRONTS, IS_WHOLE, startGate } from './desync-gate.ts'
import { Play } from './desync-play.ts'
import { UPSTREAMS } from './desync-upstreams.ts'

const CASES: readonly Case[] = [...FRAMING, ...CHUNKS, ...LINES, ...ROUTES]

for (const [front, settings] of Object.entries(FRONTS)) {
  for (const [name, start] of Object.entries(UPSTREAMS)) {
    test(`${front} before ${name}: what is forwarded is what was decided on`, {
      skip: name === 'nginx' || name === 'apache2' ? skipped(name) : false,
    }, async (t) => {
      const upstream = await start(t)
      const play = new Play(await startGate(t, upstream.url, settings), upstream)
      const cases = CASES.filter(({ except }) => except !== name)
      for (const door of doorsTo(name)) for (const one of cases) await play.play(one, door)
      await play.settle()
      t.comment(`${play.count} runs of ${CASES.length} cases`)
    })
  }
}

/** What TLS carries is the same bytes: one upstream is enough to see that. */
function doorsTo(name: string): readonly Door[] {
  return IS_WHOLE || name === 'bytes' ? ['plain', 'tls'] : ['plain']
}

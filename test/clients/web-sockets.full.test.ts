import assert from 'node:assert/strict'
import { test } from 'tap'
import { startGatehouse } from '../e2e/gatehouse.ts'
import { skipped } from '../e2e/programs.ts'
import { until } from '../until.ts'
import { chromiumPage, firefoxPage } from './browsers.ts'
import { CONVERSATION, expectedTalk, headMap, startSocketApp } from './socket-app.ts'

const BROWSERS = [
  ['Chromium', 'chromium', chromiumPage],
  ['Firefox', 'firefox-esr', firefoxPage],
] as const

for (const [name, program, open] of BROWSERS) {
  test(`${name}: WebSockets are the same over HTTP/2 and HTTP/1.1`, { skip: skipped(program) }, async (t) => {
    const heads: Record<string, ReadonlyMap<string, string>> = {}
    for (const http2 of ['own', 'node']) {
      const app = await startSocketApp(t)
      const gate = await startGatehouse(t, { upstream: app.url, settings: [`http2: ${http2}`] })
      const evaluate = await open(t, `${gate.url}/`)
      const said = await evaluate(
        `(${CONVERSATION})(location.origin.replace('http', 'ws'), ['chat', 'other'])`,
      )
      assert.deepEqual(JSON.parse(said as string), expectedTalk('permessage-deflate'), http2)
      await until(() => app.ended.length === 2)
      assert.deepEqual(app.ended, [
        [4001, 'that is all', 6],
        [4002, 'as you like', 100],
      ])
      const head = headMap(app.handshakes[0]!)
      heads[http2] = head
      assert.equal(head.get('x-ja4h-fingerprint')!.slice(0, 4), http2 === 'own' ? 'ge20' : 'ge11')
    }
    const [over2, over1] = [heads['own']!, heads['node']!]
    for (const name of ['x-agent-verdict', 'user-agent', 'sec-websocket-extensions', 'connection', 'upgrade'])
      assert.equal(over2.get(name), over1.get(name), name)
    const names = (head: ReadonlyMap<string, string>) =>
      [...head.keys()].filter((name) => name !== 'x-http2-fingerprint').sort()
    assert.deepEqual(names(over2), names(over1))
  })
}

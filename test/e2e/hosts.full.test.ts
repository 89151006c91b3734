import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { dialTls } from '../proxy/front.ts'
import { startGatehouse } from './gatehouse.ts'
import { skipped, temporaryFolder } from './programs.ts'
import { startWsgiApp } from './wsgi-app.ts'

const POLICY = `rules:
  - {name: no shop, when: {host: shop.example}, action: block}
  - {name: no upstream, when: {host: localhost, path: /own}, action: block}
`

test('gunicorn: what the app sees as host is what rules and settings judged', {
  skip: skipped('gunicorn'),
}, async (t) => {
  const app = await startWsgiApp(t)
  const policy = join(temporaryFolder(t), 'policy.yaml')
  writeFileSync(policy, POLICY)
  const more = { upstream: `unix:${app.socket}`, argv: ['--policy', policy] }
  const open = await startGatehouse(t, more)
  const named = await startGatehouse(t, {
    ...more,
    settings: ['hosts: [shop.example, "*.shop.example"]', 'tls: {sni_mismatch: reject}'],
  })
  const answer = async (port: number, request: string, servername = '') => {
    const peer = await dialTls(port, servername === '' ? {} : { servername })
    peer.write(`${request}\r\nConnection: close\r\n\r\n`)
    await peer.hears(/the app saw [^\n]+|HTTP\/1\.1 4\d\d [\s\S]*\r\n\r\n/)
    peer.socket.destroy()
    const [, status] = /^HTTP\/1\.1 (\d+)/.exec(peer.text)!
    return `${status} ${/the app saw .*/.exec(peer.text)?.[0] ?? ''}`.trim()
  }

  t.test('any host, with a rule for one', async () => {
    assert.equal(
      await answer(open.port, 'GET / HTTP/1.1\r\nHost: other.example'),
      '200 the app saw GET other.example',
    )
    assert.equal(await answer(open.port, 'GET / HTTP/1.1\r\nHost: SHOP.example.:1'), '403')
    assert.equal(await answer(open.port, 'GET http://shop.example/ HTTP/1.1\r\nHost: other.example'), '403')
    assert.equal(await answer(open.port, 'GET / HTTP/1.0', 'Shop.example'), '403')
    assert.equal(await answer(open.port, 'GET / HTTP/1.0', 'a.example'), '200 the app saw GET a.example')
    assert.equal(await answer(open.port, 'GET / HTTP/1.0'), '200 the app saw GET localhost')
    assert.equal(await answer(open.port, 'GET /own HTTP/1.0'), '403')
  })

  t.test('proxy.hosts and sni_mismatch', async () => {
    const host = 'a.shop.example'
    const get = `GET / HTTP/1.1\r\nHost: ${host}`
    assert.equal(await answer(named.port, get, host), `200 the app saw GET ${host}`)
    assert.equal(await answer(named.port, 'GET / HTTP/1.0', host), `200 the app saw GET ${host}`)
    assert.equal(await answer(named.port, get), '421')
    assert.equal(await answer(named.port, get, 'b.shop.example'), '421')
    assert.equal(await answer(named.port, 'GET / HTTP/1.1\r\nHost: other.example', 'other.example'), '421')
    assert.equal(await answer(named.port, 'GET / HTTP/1.0', 'other.example'), '421')
    assert.equal(await answer(named.port, 'GET / HTTP/1.0'), '421')
  })
})

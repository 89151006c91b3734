import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { dialHttp2 } from '../hostile/http2-peer.ts'
import { dialTls } from '../proxy/front.ts'
import { getRequest, headers, PREFACE, settings } from '../proxy/http2-frames.ts'
import { startGatehouse } from './gatehouse.ts'
import { skipped, temporaryFolder } from './programs.ts'
import { startWsgiApp } from './wsgi-app.ts'

const POLICY = `rules:
  - {name: no writes, when: {method: [POST, DELETE, PURGE]}, action: block}
`

test('gunicorn: a method in another case does not walk around a rule', {
  skip: skipped('gunicorn'),
}, async (t) => {
  const app = await startWsgiApp(t)
  const policy = join(temporaryFolder(t), 'policy.yaml')
  writeFileSync(policy, POLICY)
  const { port } = await startGatehouse(t, { upstream: `unix:${app.socket}`, argv: ['--policy', policy] })

  t.test('the app folds the case of a method', async () => {
    for (const [sent, read] of [
      ['post', 'POST'],
      ['DeLeTe', 'DELETE'],
      ['purge', 'PURGE'],
    ] as const)
      assert.match(
        await app.ask(`${sent} /direct HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`),
        seen(read),
      )
  })

  t.test('over HTTP/2', async () => {
    const STATUSES = {
      GET: 200,
      POST: 403,
      post: 400,
      Post: 400,
      posT: 400,
      delete: 400,
      purge: 403,
      report: 400,
    }
    for (const [method, status] of Object.entries(STATUSES)) {
      const peer = await dialHttp2(port)
      peer.write(PREFACE, settings(), headers(1, getRequest({ ':method': method })))
      await peer.until(() => peer.isAnswered(1))
      assert.equal(peer.statusOf(1), status, method)
      peer.socket.destroy()
    }
  })

  t.test('over HTTP/1, alone and behind another request', async () => {
    for (const before of [
      '',
      'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nTE: x\r\n\r\n',
    ]) {
      for (const method of ['post', 'Post', 'posT', 'delete', 'report']) {
        const peer = await dialTls(port)
        peer.write(`${before}${method} / HTTP/1.1\r\nHost: a\r\n\r\n`)
        await peer.hears('HTTP/1.1 400')
        peer.socket.destroy()
        const statuses = [...peer.text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status)
        assert.deepEqual(statuses, before === '' ? ['400'] : ['200', '400'], method)
        assert.doesNotMatch(peer.text, seen('POST'))
      }
    }
  })
})

function seen(method: string): RegExp {
  return new RegExp(`the app saw ${method}`)
}

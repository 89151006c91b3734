import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { Streams } from '../../src/manage/mcp/streams.ts'
import { TestManagement } from './management.ts'
import { headOf, modern, sent } from './mcp-client.ts'
import { dialled } from './talk.ts'

test('one caller has so many requests open, and all of them together; who has left makes room', async (t) => {
  const manage = await TestManagement.start(t)
  const [one, other] = [manage.adminKey, await manage.key({ name: 'b', scopes: ['mcp'] })]
  const open = await Promise.all(Array.from({ length: 100 }, () => listening(manage, one)))
  const refused = await sent(manage.url, one, modern('tools/list'))
  assert.deepEqual([refused.status, refused.body.error.data.code], [429, 'rate_limited'])
  assert.match(refused.body.error.message, /100 requests of this caller/)
  assert.equal((await sent(manage.url, other, modern('tools/list'))).status, 200)
  for (const socket of open) socket.destroy()
  let again = refused
  for (let tries = 0; again.status !== 200 && tries < 100; tries++) {
    await wait(20)
    again = await sent(manage.url, one, modern('tools/list'))
  }
  assert.equal(again.status, 200)

  const streams = new Streams({ perPrincipal: 2, inAll: 3 })
  const leave = streams.enter('a')
  streams.enter('a')
  assert.throws(() => streams.enter('a'), { code: 'rate_limited' })
  streams.enter('b')
  assert.throws(() => streams.enter('c'), { code: 'unavailable' })
  leave()
  leave()
  assert.equal(streams.inAll, 2)
  streams.enter('c')
})

test('whose key is revoked, or ends, hears no more', async (t) => {
  const manage = await TestManagement.start(t)
  const [revoked, kept, ending] = [
    await manage.key({ name: 'revoked', scopes: ['mcp'] }),
    await manage.key({ name: 'kept', scopes: ['mcp'] }),
    await manage.key({ name: 'ending', scopes: ['mcp'], expiresAtMs: Date.now() + 1_500 }),
  ]
  const sockets = await Promise.all([revoked, kept, ending].map((key) => listening(manage, key)))
  const [first, second, third] = sockets.map((socket) => {
    let isOver = false
    // The last chunk of a stream.
    socket.on('data', (data) => (isOver ||= String(data).endsWith('0\r\n\r\n')))
    return () => isOver
  })
  const { body } = await manage.ask('GET', '/v1/keys')
  const { id } = body.keys.find(({ name }: { name: string }) => name === 'revoked')
  assert.equal((await manage.ask('DELETE', `/v1/keys/${id}`)).status, 204)
  for (let tries = 0; !(first!() && third!()) && tries < 250; tries++) await wait(20)
  assert.deepEqual([first!(), second!(), third!()], [true, false, true])
  for (const socket of sockets) socket.destroy()
})

test('500 streams at once, again and again: all are let go of, and memory stays flat', async (t) => {
  const manage = await TestManagement.start(t)
  const keys = await Promise.all(
    Array.from({ length: 5 }, (_, index) => manage.key({ name: `k${index}`, scopes: ['mcp', 'read'] })),
  )
  const rest: number[] = []
  for (let round = 0; round < 3; round++) {
    const before = heapBytes()
    const open = await Promise.all(
      Array.from({ length: 500 }, (_, index) => listening(manage, keys[index % 5]!)),
    )
    const each = (heapBytes() - before) / 500
    // Both ends of the connection are in this process.
    assert.ok(each < 100_000, `a stream takes ${Math.round(each)} bytes`)
    const heard = open.map((socket) => once(socket, 'data'))
    await manage.publish({ rules: [{ name: `r${round}`, when: {}, action: 'tag' }] })
    for (const [data] of await Promise.all(heard)) assert.match(String(data), /resources\/list_changed/)
    // Half of them say nothing and are gone, half end in order.
    for (const [index, socket] of open.entries())
      if (index % 2 === 0) socket.destroy()
      else socket.end()
    await Promise.all(open.map((socket) => socket.destroyed || once(socket.resume(), 'close')))
    for (let tries = 0; tries < 50; tries++) {
      await wait(20)
      if ((await Promise.all(keys.map((key) => sent(manage.url, key, modern('tools/list'))))).length === 5)
        break
    }
    rest.push(heapBytes())
  }
  const grown = rest.at(-1)! - rest[0]!
  assert.ok(
    grown < 4_000_000,
    `after three rounds ${rest.map((bytes) => Math.round(bytes / 1000)).join(', ')} kB`,
  )
  assert.deepEqual(manage.failures, [])
})

/** Resolves when the stream is open: its first event is that it is. */
async function listening(manage: TestManagement, key: string): Promise<Socket> {
  const notifications = { resourcesListChanged: true }
  const message = JSON.stringify(modern('subscriptions/listen', { notifications }))
  const socket = await dialled(manage.url)
  socket.on('error', () => undefined)
  socket.write(headOf(manage.url, key, JSON.parse(message), Buffer.byteLength(message)) + message)
  let text = ''
  while (!text.includes('subscriptions/acknowledged')) {
    const [data] = (await once(socket, 'data')) as [Buffer]
    text += data.toString()
    assert.ok(text.startsWith('HTTP/1.1 200'), text)
  }
  return socket
}

function heapBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

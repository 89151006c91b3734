import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { OpenStreams } from '../../src/manage/http/open-streams.ts'
import { TestManagement } from './management.ts'
import { listening, modern, sent } from './mcp-client.ts'

test('one caller has so many requests open, and all of them together; who has left makes room', async (t) => {
  const manage = await TestManagement.start(t)
  const [one, other] = [manage.adminKey, await manage.key({ name: 'b', scopes: ['mcp'] })]
  const open = await Promise.all(Array.from({ length: 100 }, () => listening(manage.url, one)))
  const refused = await sent(manage.url, one, modern('tools/list'))
  assert.deepEqual([refused.status, refused.body.error.data.code], [429, 'rate_limited'])
  assert.match(refused.body.error.message, /this caller already has 100 open requests/)
  assert.equal((await sent(manage.url, other, modern('tools/list'))).status, 200)
  for (const socket of open) socket.destroy()
  let again = refused
  for (let tries = 0; again.status !== 200 && tries < 100; tries++) {
    await wait(20)
    again = await sent(manage.url, one, modern('tools/list'))
  }
  assert.equal(again.status, 200)

  const streams = new OpenStreams({ perPrincipal: 2, inAll: 3 })
  const leave = streams.enter('a')
  streams.enter('a')
  assert.throws(() => streams.enter('a'), { code: 'rate_limited' })
  assert.equal(streams.enterIfRoom('a'), null)
  streams.enter('b')
  assert.throws(() => streams.enter('c'), { code: 'unavailable' })
  leave()
  leave()
  assert.equal(streams.size, 2)
  assert.notEqual(streams.enterIfRoom('c'), null)
})

test('whose key is revoked, or ends, hears no more', async (t) => {
  const manage = await TestManagement.start(t)
  const [revoked, kept, ending] = [
    await manage.key({ name: 'revoked', scopes: ['mcp'] }),
    await manage.key({ name: 'kept', scopes: ['mcp'] }),
    await manage.key({ name: 'ending', scopes: ['mcp'], expiresAtMs: Date.now() + 1_500 }),
  ]
  const sockets = await Promise.all([revoked, kept, ending].map((key) => listening(manage.url, key)))
  const [first, second, third] = sockets.map((socket) => {
    let isOver = false
    // The last chunk of a stream.
    socket.on('data', (data) => (isOver ||= String(data).endsWith('0\r\n\r\n')))
    return () => isOver
  })
  // Nor by having so many guesses refused from the same address that nobody is told anything of keys.
  for (let guess = 0; guess < 130; guess++)
    await manage.ask('GET', '/v1/keys', undefined, { authorization: `Bearer guess-${guess}` })
  const { body } = await manage.ask('GET', '/v1/keys')
  const { id } = body.keys.find(({ name }: { name: string }) => name === 'revoked')
  assert.equal((await manage.ask('DELETE', `/v1/keys/${id}`)).status, 204)
  for (let tries = 0; !(first!() && third!()) && tries < 250; tries++) await wait(20)
  assert.deepEqual([first!(), second!(), third!()], [true, false, true])
  for (const socket of sockets) socket.destroy()
})

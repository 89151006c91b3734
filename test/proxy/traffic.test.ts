import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import { LOOPBACK } from './front.ts'
import { headerV2 } from './proxy-header.ts'
import { type Gate, type GatePlan, startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'

const KNOWLEDGE = await loadKnowledge(null, null)
const PAGES = 40

test('what a client does shows over its connections, and not on those of others', async (t) => {
  const gate = await gateTo(t, {})
  for (const front of ['plain', 'secure'] as const) {
    await askPages(gate, front, { 'user-agent': 'thing/1.0' })
    assert.deepEqual(habitsOf(gate), ['asks-broadly', 'asks-fast'])
    await ask(gate, front, '/', { 'user-agent': 'curl/8.0' })
    assert.deepEqual(habitsOf(gate), [], 'another program behind the same address')
  }
})

test('robots.txt was asked for on another connection', async (t) => {
  const gate = await gateTo(t, {})
  await ask(gate, 'secure', '/robots.txt', {})
  await ask(gate, 'secure', '/', {})
  assert.deepEqual(habitsOf(gate), ['robots-first'])
})

test('what the policy refuses is traffic, too', async (t) => {
  const gate = await gateTo(t, { policy: { rules: [], otherwise: 'block' } })
  await askPages(gate, 'secure', {})
  assert.equal(gate.sightings.at(-1)!.action, 'block')
  assert.deepEqual(habitsOf(gate), ['asks-broadly', 'asks-fast'])
})

test('it is forgotten', async (t) => {
  const gate = await gateTo(t, {})
  await askPages(gate, 'plain', {})
  gate.clock.nowMs += 15 * 60_000
  await ask(gate, 'plain', '/', {})
  assert.deepEqual(habitsOf(gate), [])
})

test('whose request it is, a trusted hop says', async (t) => {
  const gate = await gateTo(t, { options: { trusted: LOOPBACK } })
  await askPages(gate, 'plain', { 'x-forwarded-for': '192.0.2.1' })
  assert.deepEqual(habitsOf(gate), ['asks-broadly', 'asks-fast'])
  await ask(gate, 'plain', '/', { 'x-forwarded-for': '192.0.2.2' })
  assert.deepEqual(habitsOf(gate), [])
  await askPages(gate, 'plain', {})
  assert.deepEqual(habitsOf(gate), [], 'where it does not, all its clients may be meant')
})

test('IPv6 addresses of one network count as one client', async (t) => {
  const gate = await gateTo(t, { options: { trusted: LOOPBACK, proxyProtocol: 'required' } })
  for (let i = 0; i < PAGES; i++) await askFrom(gate, `2001:db8::1:${i + 1}`, `/page/${i}`)
  assert.deepEqual(habitsOf(gate), ['asks-broadly', 'asks-fast'])
  await askFrom(gate, '2001:db8:0:1::1', '/')
  assert.deepEqual(habitsOf(gate), [])
})

async function gateTo(t: Test, plan: Partial<GatePlan>): Promise<Gate> {
  const app = http.createServer((_, response) => response.end('a page')).listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => app.close())
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  return startGate(t, { upstreams: [settingsFor([url])], knowledge: KNOWLEDGE, ...plan })
}

async function askPages(
  gate: Gate,
  front: 'plain' | 'secure',
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  for (let i = 0; i < PAGES; i++) await ask(gate, front, `/page/${i}`, headers)
}

/** On a connection of its own. */
async function ask(
  gate: Gate,
  front: 'plain' | 'secure',
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const options = { host: '127.0.0.1', port: gate[front].port, path, headers, agent: false }
  const request = front === 'plain' ? http.get(options) : https.get({ ...options, rejectUnauthorized: false })
  const [response] = await once(request, 'response')
  await once(response.resume(), 'end')
}

async function askFrom(gate: Gate, source: string, path: string): Promise<void> {
  const socket = net.connect(gate.plain.port, '127.0.0.1')
  socket.write(headerV2({ source }))
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a.example.test\r\nConnection: close\r\n\r\n`)
  await once(socket.resume(), 'close')
}

/** What the last request has shown of them. */
function habitsOf(gate: Gate): readonly string[] {
  const habits = ['robots-first', 'asks-broadly', 'asks-fast', 'asks-sitemap', 'asks-from-many', 'crawls']
  return habits.filter((kind) => gate.sightings.at(-1)!.evidence.includes(kind))
}

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'tap'
import { UNKNOWN, type Verdict } from '../../src/classify/verdict/verdict.ts'
import type { Ja4 } from '../../src/fingerprint/ja4.ts'
import type { Ja4h } from '../../src/fingerprint/ja4plus/ja4h.ts'
import type { Print } from '../../src/fingerprint/print.ts'
import type { Connection } from '../../src/proxy/connection/connection.ts'
import { fieldLines } from '../../src/proxy/connection/field-syntax.ts'
import type { Introduction } from '../../src/proxy/connection/app-headers.ts'
import { introduce } from '../../src/proxy/request/introduction.ts'
import {
  NO_HOP,
  pushForwarding,
  pushTags,
  type RelayedFrom,
} from '../../src/proxy/connection/request-headers.ts'
import { MemoryExchange } from './memory-exchange.ts'

const HUMAN: Verdict = { ...UNKNOWN, kind: 'human', confidence: 0.9 }
const HOP = relayedBy('192.0.2.1')

test('a client that is the same is introduced with the same words, and one that is not, anew', async () => {
  const connection = newConnection()
  const print: Print = { connection: connection.print, ja4h: 'ge11nn01' as Ja4h }
  const first = introduce(connection, 'app.test', null, { print, verdict: HUMAN }, 'tag')
  assertSays(first, connection, 'app.test', print, HUMAN, 'tag')
  // Objects that are made for each request, of the same content.
  const again = introduce(
    connection,
    ['app', 'test'].join('.'),
    null,
    { print: { ...print }, verdict: HUMAN },
    'tag',
  )
  assert.equal(again, first)

  const other: Print = {
    connection: { ...connection.print, ja4: 't13d1516h2_8daaf6152771_d8a2da3f94cd' as Ja4 },
    ja4h: null,
  }
  const changes: [string | null, Print, Verdict, string | null][] = [
    ['other.test', print, HUMAN, 'tag'],
    [null, print, HUMAN, 'tag'],
    ['app.test', { ...print, ja4h: 'po11nn01' as Ja4h }, HUMAN, 'tag'],
    ['app.test', { ...print, ja4h: null }, HUMAN, 'tag'],
    ['app.test', other, HUMAN, 'tag'],
    ['app.test', print, UNKNOWN, 'tag'],
    ['app.test', print, HUMAN, 'route'],
    ['app.test', print, HUMAN, null],
  ]
  for (const change of changes) {
    const [authority, shown, verdict, action] = change
    introduce(connection, 'app.test', null, { print, verdict: HUMAN }, 'tag')
    const changed = introduce(connection, authority, null, { print: shown, verdict }, action)
    assertSays(changed, connection, authority, shown, verdict, action)
    assert.notEqual(changed.lines, first.lines)
  }
})

test('what a hop says of one request is not said of the next', async () => {
  const connection = newConnection()
  const print: Print = { connection: connection.print, ja4h: null }
  const before = introduce(connection, 'app.test', null, { print, verdict: HUMAN }, 'tag')
  const relayed = introduce(connection, 'app.test', HOP, { print, verdict: HUMAN }, 'tag')
  assert.match(relayed.lines!, /^X-Forwarded-For: 192\.0\.2\.1, /)
  const another = introduce(connection, 'app.test', relayedBy('192.0.2.2'), { print, verdict: HUMAN }, 'tag')
  assert.match(another.lines!, /^X-Forwarded-For: 192\.0\.2\.2, /)
  assert.equal(introduce(connection, 'app.test', null, { print, verdict: HUMAN }, 'tag'), before)
})

test('what a client makes long is not remembered', async () => {
  const connection = newConnection()
  const print: Print = { connection: connection.print, ja4h: null }
  const short = introduce(connection, 'app.test', null, { print, verdict: HUMAN }, 'tag')
  const authority = 'a'.repeat(2_000)
  assertSays(
    introduce(connection, authority, null, { print, verdict: HUMAN }, 'tag'),
    connection,
    authority,
    print,
    HUMAN,
    'tag',
  )
  assert.equal(connection.introduction, short)
})

test('what would be another line is not written', async () => {
  const connection = newConnection()
  const print: Print = { connection: connection.print, ja4h: null }
  const hop = relayedBy('192.0.2.1\r\nX-Agent-Verified: ip-range')
  assert.equal(introduce(connection, 'app.test', hop, { print, verdict: HUMAN }, 'tag').lines, null)
})

test('of a whole URL a connection remembers no more than the host', async () => {
  const program = `
    import { checkHttp1 } from ${JSON.stringify(new URL('../../src/proxy/connection/request-check.ts', import.meta.url).href)}
    const used = () => { gc(); gc(); return process.memoryUsage().heapUsed }
    const limits = { requestLineBytesMax: 100_000, headerBytesMax: 100_000, headerCountMax: 100 }
    const before = used()
    const kept = []
    for (let i = 0; i < 1000; i++) {
      const url = 'http://app.example.test:8443/' + Buffer.alloc(60_000, 'text ' + i).toString('latin1').replaceAll(' ', '')
      const facts = checkHttp1('GET', url, '11', ['Host', 'app.example.test:8443'], limits)
      kept.push(facts.authority)
    }
    if (kept[0] !== 'app.example.test:8443') throw new Error(String(kept[0]))
    console.log(used() - before)`
  const args = ['--expose-gc', '--input-type=module', '--eval', program]
  const held = Number(execFileSync(process.execPath, args, { encoding: 'utf8' }))
  assert.ok(held < 2_000_000, `${held} bytes`)
})

function newConnection(): Connection {
  return { ...new MemoryExchange().connection, introduction: null }
}

function assertSays(
  { headers, lines }: Introduction,
  connection: Connection,
  authority: string | null,
  print: Print,
  verdict: Verdict,
  action: string | null,
): void {
  const anew: string[] = []
  pushForwarding(anew, connection, authority, null)
  if (action !== null) pushTags(anew, print, verdict, action)
  assert.deepEqual(headers, anew)
  assert.equal(lines, fieldLines(anew))
}

function relayedBy(forwardedFor: string): RelayedFrom {
  const hop = { ...NO_HOP, forwardedFor, forwardedProto: 'http' }
  return { hop, passesForwarded: false, path: ['192.0.2.1', '127.0.0.1'] }
}

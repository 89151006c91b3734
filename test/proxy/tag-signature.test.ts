import assert from 'node:assert/strict'
import { createHmac, createPublicKey, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { verifyBytes } from '../../src/identity/verify/http-signature.ts'
import { readSignatureKey } from '../../src/identity/signature/signature-key.ts'
import { makeSigningKey, SIGNING_ALGORITHMS } from '../../src/identity/keys/signing-key.ts'
import { type TaggedRequest, TagSigner } from '../../src/proxy/request/tag-signature.ts'
import { dialPlain, dialTls, LOOPBACK } from './front.ts'
import { type Gate, type GatePlan, startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'
import { agreement, opening } from './web-socket.ts'
import { timeBox } from '../time-box.ts'

const KEY = 'a key of sixteen characters and more'
const NOW_S = 1_763_700_000
const REQUEST: TaggedRequest = {
  method: 'GET',
  authority: 'shop.example.test',
  scheme: 'https',
  target: '/cart?id=7',
}

/** A request as node:http shows it. */
interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: Record<string, string>
}
type Verifier = (request: Seen, key: string | KeyObject, nowS?: number) => boolean

const { isProven } = (await import(`data:text/javascript,${encodeURIComponent(documented())}`)) as {
  isProven: Verifier
}

test('a signature is what RFC 9421 makes of the request and its headers', async () => {
  const value = new TagSigner(KEY).sign(REQUEST, ['X-Agent-Verdict', 'agent', 'X-Agent-Name', 'A B'], NOW_S)
  const covered = '("@method" "@authority" "@path" "@query" "x-agent-verdict" "x-agent-name")'
  const params = `${covered};created=${NOW_S};keyid="gatehouse";alg="hmac-sha256"`
  const base = [
    '"@method": GET',
    '"@authority": shop.example.test',
    '"@path": /cart',
    '"@query": ?id=7',
    '"x-agent-verdict": agent',
    '"x-agent-name": A B',
    `"@signature-params": ${params}`,
  ]
  const signature = createHmac('sha256', KEY).update(base.join('\n')).digest('base64')
  assert.equal(value, `${params};sig=:${signature}:`)
})

test('what a request is for is written in one way (RFC 9421 §2.2, RFC 9110 §4.2.3)', async () => {
  const authorities: readonly [scheme: string, sent: string, signed: string][] = [
    ['https', 'Shop.Example.TEST', 'shop.example.test'],
    ['https', 'shop.example.test:443', 'shop.example.test'],
    ['https', 'shop.example.test:80', 'shop.example.test:80'],
    ['https', 'shop.example.test:8443', 'shop.example.test:8443'],
    ['http', 'shop.example.test:80', 'shop.example.test'],
    ['http', 'shop.example.test:443', 'shop.example.test:443'],
    ['https', '[2001:DB8::443]', '[2001:db8::443]'],
    ['https', '[2001:db8::1]:443', '[2001:db8::1]'],
  ]
  for (const [scheme, authority, signed] of authorities) {
    assertSame(
      { ...REQUEST, scheme, authority },
      [],
      { ...REQUEST, scheme, authority: signed },
      [],
      authority,
    )
  }
  const targets: readonly [target: string, path: string, query: string][] = [
    ['', '/', '?'],
    ['/', '/', '?'],
    ['/?', '/', '?'],
    ['?a=1', '/', '?a=1'],
    ['/a/../b%2f', '/a/../b%2f', '?'],
    ['/a?b?c', '/a', '?b?c'],
    ['//a', '//a', '?'],
    ['/http://a/b', '/http://a/b', '?'],
    ['https://shop.example.test', '/', '?'],
    ['https://shop.example.test?a', '/', '?a'],
    ['HTTPS://shop.example.test/p?q=/', '/p', '?q=/'],
    ['*', '*', '?'],
  ]
  for (const [target, path, query] of targets) {
    const value = new TagSigner(KEY).sign({ ...REQUEST, target }, [], NOW_S)
    assert.equal(value, byHand({ ...REQUEST, path, query }, []), target)
  }
})

test('a host the app does not see is not signed', async () => {
  const value = new TagSigner(KEY).sign({ ...REQUEST, authority: null }, ['X-Agent-Verdict', 'human'], NOW_S)
  assert.match(value, /^\("@method" "@path" "@query" "x-agent-verdict"\);/)
})

test('values are signed as a reader of the headers has them (RFC 9421 §2.1)', async () => {
  const cases: readonly [sent: readonly string[], signed: readonly string[]][] = [
    [
      ['X-Agent-Plan', ' \t free \t'],
      ['x-agent-plan', 'free'],
    ],
    [
      ['X-Agent-Plan', 'free \r\n  of charge'],
      ['x-agent-plan', 'free of charge'],
    ],
    [
      ['X-Agent-Plan', 'a', 'X-Agent-Other', 'c', 'x-AGENT-plan', ' b '],
      ['x-agent-plan', 'a, b', 'x-agent-other', 'c'],
    ],
    [
      ['X-Agent-Plan', ''],
      ['x-agent-plan', ''],
    ],
    [
      ['X-Agent-Plan', '\xa0free\xa0'],
      ['x-agent-plan', '\xa0free\xa0'],
    ],
  ]
  for (const [sent, signed] of cases) assertSame(REQUEST, sent, REQUEST, signed, JSON.stringify(sent))
})

test('a key id is a string of RFC 8941', async () => {
  const value = new TagSigner(KEY, 'a "b" \\c').sign(REQUEST, [], NOW_S)
  assert.match(value, /;keyid="a \\"b\\" \\\\c";alg=/)
})

test('whatever we sign, the verifier of the manual takes it, and takes nothing else', async () => {
  const name = fc
    .stringMatching(/^[Xx]-[Aa]gent-[a-zA-Z0-9-]{1,10}$/)
    .filter((each) => !/signature$/i.test(each))
  const plan = fc.record({
    method: fc.constantFrom('GET', 'POST', 'QUERY'),
    authority: fc.stringMatching(/^[a-zA-Z0-9.-]{1,20}(:(443|80|8443))?$/),
    scheme: fc.constantFrom('https', 'http'),
    target: fc.stringMatching(/^\/[!-"$->@-~]{0,10}(\?[!-"$-~]{0,10})?$/),
    tags: fc.array(
      fc.tuple(name, fc.stringMatching(/^[!-~\xa1-\xff]([ -~\xa1-\xff]{0,8}[!-~\xa1-\xff])?$/)),
      { minLength: 1 },
    ),
  })
  const own = makeSigningKey()
  const pairs = [
    [KEY, KEY],
    [own, publicHalf(own.jwk)],
  ] as const
  const property = fc.property(
    plan,
    fc.nat(),
    fc.constantFrom(...pairs),
    ({ tags, ...request }, at, [ours, theirs]) => {
      const flat = ['X-Forwarded-Proto', request.scheme, ...tags.flat()]
      const signature = new TagSigner(ours).sign(request, flat, NOW_S)
      const headers: Record<string, string> = { host: request.authority, 'x-agent-signature': signature }
      for (let i = 0; i < flat.length; i += 2) {
        const key = flat[i]!.toLowerCase()
        headers[key] = headers[key] === undefined ? flat[i + 1]! : `${headers[key]}, ${flat[i + 1]}`
      }
      const seen = { method: request.method, url: request.target, headers }
      assert.equal(isProven(seen, theirs, NOW_S), true)
      assert.equal(isProven(seen, pairs.find(([, other]) => other !== theirs)![1], NOW_S), false)
      const changed = tags[at % tags.length]![0].toLowerCase()
      assert.equal(
        isProven({ ...seen, headers: { ...headers, [changed]: `${headers[changed]}x` } }, theirs, NOW_S),
        false,
      )
    },
  )
  fc.assert(property, timeBox(3_000, 3_000))
})

test('with a key of our own the algorithm and the key are named, and its public half is enough', async () => {
  for (const algorithm of SIGNING_ALGORITHMS) {
    const key = makeSigningKey(algorithm)
    const value = new TagSigner(key).sign(REQUEST, ['X-Agent-Verdict', 'agent'], NOW_S)
    const [, parameters, signature] = /^(.*);sig=:(.*):$/.exec(value)!
    assert.match(parameters!, new RegExp(`;created=${NOW_S};keyid="${key.thumbprint}";alg="${algorithm}"$`))
    const read = readSignatureKey(key.jwk)
    assert.ok(read.kind === 'key')
    const lines = ['"@method": GET', '"@authority": shop.example.test', '"@path": /cart', '"@query": ?id=7']
    const base = [...lines, '"x-agent-verdict": agent', `"@signature-params": ${parameters}`].join('\n')
    const bytes = Buffer.from(signature!, 'base64')
    assert.equal(verifyBytes(read.key, base, bytes), true)
    assert.equal(verifyBytes(read.key, base.replace('agent', 'human'), bytes), false)
    assert.ok(!value.includes(key.key.export({ format: 'jwk' }).d!))
  }
})

test('requests that came through the gate are proven, over HTTP/1, HTTP/2 and as upgrades', async (t) => {
  const { gate, seen } = await signing(t)
  for (const dial of [dialPlain, dialTls]) {
    const port = dial === dialPlain ? gate.plain.port : gate.secure.port
    for (const host of ['shop.example.test', 'Shop.Example.test:443', 'shop.example.test:80', '[::1]:8443']) {
      const peer = await dial(port)
      const forged =
        'X-Agent-Name: me\r\nX_Agent_Signature: x\r\nX-Agent-Signature: y\r\nX-Forwarded-Host: me\r\n'
      peer.write(`GET /a{b}?c=d?e HTTP/1.1\r\nHost: ${host}\r\n${forged}Connection: close\r\n\r\n`)
      await peer.closed
      assert.match(peer.text, /^HTTP\/1\.1 200/)
      assert.equal(isProven(seen.at(-1)!, KEY), true, host)
      const upgrading = await dial(port)
      upgrading.write(opening('/chat?room=1', host, 'X-Agent-Verified: yes'))
      await upgrading.hears('101 Switching')
      upgrading.socket.destroy()
      assert.deepEqual([seen.at(-1)!.url, isProven(seen.at(-1)!, KEY)], ['/chat?room=1', true])
    }
  }
  const session = http2.connect(`https://127.0.0.1:${gate.secure.port}`, { rejectUnauthorized: false })
  const stream = session.request({
    ':method': 'POST',
    ':path': '/x',
    ':authority': 'Shop.example.test',
    'x-agent-plan': 'me',
  })
  stream.end('body').resume()
  await once(stream, 'close')
  session.destroy()
  assert.deepEqual([seen.at(-1)!.method, isProven(seen.at(-1)!, KEY)], ['POST', true])
  assert.match(seen.at(-1)!.headers['x-agent-signature']!, /"x-http2-fingerprint" .*"x-agent-decision-id"/)
})

test('a changed request is not proven', async (t) => {
  const { gate, seen } = await signing(t)
  gate.judgeBy({ rules: [], otherwise: { tag: { headers: { 'X-Agent-Plan': 'free' } } } })
  const answer = await fetch(`http://127.0.0.1:${gate.plain.port}/cart?id=7`)
  assert.equal(answer.status, 200)
  const request = seen.at(-1)!
  const { headers } = request
  const nowS = gate.clock.nowMs / 1000
  const without = (name: string) =>
    Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name))
  assert.equal(isProven(request, KEY, nowS), true)
  assert.equal(isProven(request, KEY, nowS + 59), true)
  assert.deepEqual([headers['x-agent-plan'], headers['x-forwarded-for']], ['free', '127.0.0.1'])
  const wrongs: readonly [title: string, request: Seen, key?: string, nowS?: number][] = [
    ['another key', request, `${KEY}!`],
    ['an old one', request, KEY, nowS + 62],
    ['one of the future', request, KEY, nowS - 62],
    ['another path', { ...request, url: '/admin?id=7' }],
    ['another query', { ...request, url: '/cart?id=8' }],
    ['no query', { ...request, url: '/cart' }],
    ['another method', { ...request, method: 'DELETE' }],
    ['another host', { ...request, headers: { ...headers, host: 'bank.example.test' } }],
    ['no signature', { ...request, headers: without('x-agent-signature') }],
    ['a changed tag', { ...request, headers: { ...headers, 'x-agent-plan': 'paid' } }],
    ['an added tag', { ...request, headers: { ...headers, 'x-agent-name': 'GPTBot' } }],
    ['an added source', { ...request, headers: { ...headers, 'x-ja4-source': 'own' } }],
    ['an added fingerprint', { ...request, headers: { ...headers, 'x-ja4-fingerprint': 't' } }],
    [
      'an address before ours',
      { ...request, headers: { ...headers, 'x-forwarded-for': '192.0.2.1, 127.0.0.1' } },
    ],
  ]
  for (const [title, wrong, key = KEY, atS = nowS] of wrongs)
    assert.equal(isProven(wrong, key, atS), false, title)
  const tags = Object.keys(headers).filter((name) =>
    /^(x-agent|x-ja4|x-http2|x-forwarded|forwarded)/.test(name),
  )
  assert.ok(tags.length >= 9, tags.join())
  for (const name of tags) {
    assert.equal(isProven({ ...request, headers: without(name) }, KEY, nowS), false, `without ${name}`)
  }
  const signature = headers['x-agent-signature']!
  for (let i = 0; i < signature.length; i++) {
    if (i === signature.length - 3) continue // two bits of it mean nothing
    const changed = signature.slice(0, i) + (signature[i] === 'A' ? 'B' : 'A') + signature.slice(i + 1)
    assert.equal(
      isProven({ ...request, headers: { ...headers, 'x-agent-signature': changed } }, KEY, nowS),
      false,
      `another character at ${i}`,
    )
  }
})

test('behind a trusted hop, and with a host of the upstream, requests are proven too', async (t) => {
  const { gate, seen } = await signing(t, { options: { trusted: LOOPBACK } }, 'upstream')
  for (const proto of ['https', 'http']) {
    const peer = await dialPlain(gate.plain.port)
    const hop = `X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: ${proto}\r\n`
    peer.write(`GET / HTTP/1.1\r\nHost: shop.example.test:443\r\n${hop}Connection: close\r\n\r\n`)
    await peer.closed
    const request = seen.at(-1)!
    assert.equal(isProven(request, KEY), true)
    assert.deepEqual(
      [request.headers['x-forwarded-for'], request.headers['x-forwarded-proto']],
      ['192.0.2.7, 127.0.0.1', proto],
    )
  }
})

test('a request that is passed untagged has no signature', async (t) => {
  const { gate, seen } = await signing(t)
  gate.judgeBy({ rules: [], otherwise: 'pass' })
  await fetch(`http://127.0.0.1:${gate.plain.port}/`)
  assert.equal(seen.at(-1)!.headers['x-agent-signature'], undefined)
  assert.equal(isProven(seen.at(-1)!, KEY), false)
})

/** A gate that signs, before an app that keeps what it sees. */
async function signing(t: Test, plan: Partial<GatePlan> = {}, host: 'preserve' | 'upstream' = 'preserve') {
  const seen: Seen[] = []
  const see = ({ method, url, headers }: http.IncomingMessage) =>
    void seen.push({ method, url, headers } as Seen)
  const app = http.createServer((request, response) => {
    see(request)
    request.resume()
    response.end('fine')
  })
  app.on('upgrade', (request, socket) => {
    see(request)
    socket.on('error', () => {})
    socket.end(agreement('Sec-WebSocket-Key: x\r\n'))
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => {
    app.closeAllConnections()
    app.close()
  })
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  const context = { signer: new TagSigner(KEY) }
  const gate: Gate = await startGate(t, { context, ...plan, upstreams: [settingsFor([url], { host })] })
  return { gate, seen }
}

function publicHalf(jwk: Readonly<Record<string, string>>): KeyObject {
  return createPublicKey({ key: { ...jwk }, format: 'jwk' })
}

/** The block of the manual. */
function documented(): string {
  const block = /\n## Proof for the app\n[^#]*?```js\n(.*?)```\n/s.exec(
    readFileSync('config/guide/what-the-app-sees.md', 'utf8'),
  )?.[1]
  assert.ok(block !== undefined, 'what-the-app-sees.md has a section "Proof for the app" with a js block')
  return block
}

function assertSame(
  one: TaggedRequest,
  tags: readonly string[],
  other: TaggedRequest,
  otherTags: readonly string[],
  title: string,
): void {
  const { authority } = other
  const [path, query] = ['/cart', '?id=7']
  const expected = byHand({ method: other.method, authority: authority ?? '', path, query }, otherTags)
  assert.equal(new TagSigner(KEY).sign(one, tags, NOW_S), expected, title)
}

interface Parts {
  readonly method: string
  readonly authority: string | null
  readonly path: string
  readonly query: string
}

function byHand({ method, authority, path, query }: Parts, tags: readonly string[]): string {
  const names = ['@method', '@authority', '@path', '@query']
  const lines = [
    `"@method": ${method}`,
    `"@authority": ${authority}`,
    `"@path": ${path}`,
    `"@query": ${query}`,
  ]
  for (let i = 0; i < tags.length; i += 2) {
    names.push(tags[i]!)
    lines.push(`"${tags[i]}": ${tags[i + 1]}`)
  }
  const list = names.map((name) => `"${name}"`).join(' ')
  const params = `(${list});created=${NOW_S};keyid="gatehouse";alg="hmac-sha256"`
  const base = Buffer.from([...lines, `"@signature-params": ${params}`].join('\n'), 'latin1')
  return `${params};sig=:${createHmac('sha256', KEY).update(base).digest('base64')}:`
}

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { type Pasted, readPasted } from '../../src/dashboard/pages/explore/pasted.ts'
import { timeBox } from '../time-box.ts'

test('fingerprints of each type', async () => {
  for (const [type, fingerprint] of [
    ['ja4', 't13i3111h2_e8f1e7e78f70_b26ce05bbdd6'],
    ['ja4s', 't130200_1301_a56c5b993250'],
    ['ja4h', 'ge11nn030000_428bbb5ec3ae_000000000000_000000000000'],
    ['ja4x', 'a373a9f83c6b_2bab15409345_7bf9a7bf7029'],
  ] as const)
    assert.deepEqual(readPasted(`  ${fingerprint}\n`), { kind: 'fingerprint', type, fingerprint })
})

test('what curl -v prints, with what is secret left out', async () => {
  const text = [
    '*   Trying 127.0.0.1:443...',
    '* TLSv1.3 (OUT), TLS handshake, Client hello (1):',
    '> GET /a?key=secret HTTP/1.1',
    '> Host: shop.example',
    '> User-Agent: curl/8.5.0',
    '> Authorization: Bearer never-to-be-sent',
    '> Cookie: a=never-to-be-sent; b=never-to-be-sent',
    '> ',
    '< HTTP/1.1 200 OK',
    '< Content-Type: text/plain',
  ].join('\r\n')
  const pasted = readPasted(text)
  assert.deepEqual(pasted, {
    kind: 'request',
    from: 'curl -v output',
    request: {
      ...{ method: 'GET', path: '/a', http_version: '1.1' },
      headers: {
        ...{ Host: 'shop.example', 'User-Agent': 'curl/8.5.0', Authorization: 'withheld' },
        Cookie: 'a=withheld; b=withheld',
      },
    },
    withheld: ['Authorization', 'Cookie'],
  })
  assert.ok(!JSON.stringify(pasted).includes('never-to-be-sent'))
})

test('whatever a header with a secret is called, its value stays here', async () => {
  for (const name of [
    'X-Amz-Security-Token',
    'Ocp-Apim-Subscription-Key',
    'X-Session',
    'PRIVATE-TOKEN',
    'Set-Cookie',
  ]) {
    const pasted = readPasted(`User-Agent: x/1\n${name}: never-to-be-sent`)
    assert.ok(!JSON.stringify(pasted).includes('never-to-be-sent'), name)
    assert.deepEqual((pasted as { withheld: unknown }).withheld, [name])
  }
})

test('a request, headers, JSON of three kinds, and a User-Agent', async () => {
  const headers = { 'User-Agent': 'x/1', Accept: '*/*' }
  const request = (text: string) => {
    const pasted = readPasted(text) as Extract<Pasted, { kind: 'request' }>
    return [pasted.from, pasted.request]
  }
  assert.deepEqual(request('POST /x HTTP/2\nUser-Agent: x/1\nAccept: */*\n\nbody: no header'), [
    'a request',
    { method: 'POST', path: '/x', http_version: '2', headers },
  ])
  assert.deepEqual(request('User-Agent: x/1\nAccept: */*'), ['headers', { headers }])
  assert.deepEqual(request('X: 1\nX: 2'), ['headers', { headers: { X: ['1', '2'] } }])
  for (const json of [
    headers,
    { headers },
    Object.entries(headers),
    Object.entries(headers).map(([name, value]) => ({ name, value })),
  ])
    assert.deepEqual(request(JSON.stringify(json)), ['JSON', { headers }])
  assert.deepEqual(readPasted('Mozilla/5.0 (compatible; GPTBot/1.2)'), {
    kind: 'user-agent',
    request: { user_agent: 'Mozilla/5.0 (compatible; GPTBot/1.2)' },
  })
})

test('reports text that is not a request, and survives any text', async () => {
  for (const [text, why] of [
    ['{"a": ', /invalid JSON/],
    ['[1, 2]', /no headers found in this JSON/],
    ['{"headers": null}', /no headers found in this JSON/],
    ['one\ntwo', /line 1 is not a header/],
    ['> \n> ', /no headers found/],
    ['x'.repeat(100_001), /more than 100000 characters/],
  ] as const) {
    const pasted = readPasted(text)
    assert.equal(pasted.kind, 'unknown', text.slice(0, 20))
    assert.match((pasted as { why: string }).why, why)
  }
  assert.deepEqual(readPasted(' \n'), { kind: 'empty' })
  const odd = readPasted('__proto__: x\nconstructor: y\n:authority: z\nA B: c') as { kind: string }
  assert.equal(odd.kind, 'unknown')
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom('>', ' ', ':', '\n', '\r', 'a', '{', '"', '\0') }),
  )
  fc.assert(
    fc.property(text, (given) => void readPasted(given)),
    timeBox(20_000, 1_000),
  )
})

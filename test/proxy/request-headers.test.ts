import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Conduct } from '../../src/classify/conduct.ts'
import { UNKNOWN, type Verdict } from '../../src/classify/verdict.ts'
import type { Print } from '../../src/fingerprint/print.ts'
import type { Connection } from '../../src/proxy/connection.ts'
import { pushForwarding, pushTags, receiveHeaders } from '../../src/proxy/request-headers.ts'

const OURS = [
  ...['X-JA4-Fingerprint', 'X-JA4H-Fingerprint', 'X-JA4S-Fingerprint', 'X-HTTP2-Fingerprint'],
  ...['X-Agent-Verdict', 'X-Agent-Name', 'X-Agent-Category', 'X-Agent-Confidence', 'X-Agent-Verified'],
  ...['X-Agent-Action', 'X-Agent-Decision-Id', 'X-Agent-Signature', 'X-Agent-Anything'],
]
const FORWARDING = [
  'X-Forwarded-For',
  'X-Forwarded-Proto',
  'X-Forwarded-Host',
  'X-Forwarded-Port',
  'Forwarded',
]
const HOP_BY_HOP = [
  'Connection',
  'Keep-Alive',
  'Proxy-Connection',
  'Transfer-Encoding',
  'Upgrade',
  'Expect',
  'Content-Length',
]

test('a client cannot tag itself, whatever spelling it takes', async () => {
  for (const name of [...OURS, ...FORWARDING]) {
    for (const spelling of spellings(name)) {
      const { kept, forged } = receiveHeaders(['Host', 'a', spelling, 'forged', 'Accept', '*/*'], 'a')
      assert.deepEqual(kept, ['Host', 'a', 'Accept', '*/*'], spelling)
      const expected = FORWARDING.includes(name) && !spelling.includes('_') ? [] : [name.toLowerCase()]
      assert.deepEqual(forged, expected, spelling)
    }
  }
})

test('hop-by-hop fields and framing stay here, in every case', async () => {
  for (const name of HOP_BY_HOP) {
    for (const spelling of [name, name.toLowerCase(), name.toUpperCase()]) {
      assert.deepEqual(receiveHeaders([spelling, 'x', 'B', '2'], null).kept, ['B', '2'], spelling)
    }
  }
})

test('what Connection lists stays here too, but for the host', async () => {
  const raw = ['Host', 'a', 'connection', 'X-Secret, host ,close', 'x-secret', '1', 'X_SECRET', '2', 'Y', '3']
  assert.deepEqual(receiveHeaders(raw, 'a').kept, ['Host', 'a', 'Y', '3'])
})

test('everything else goes on: order, case, duplicates, and names that only look special', async () => {
  const raw = [
    'b',
    '1',
    'A',
    '2',
    'b',
    '',
    'Content-Type',
    't',
    'Cookie',
    'a=1',
    'xcookie',
    'c',
    'tea',
    'd',
    'X-Agentur',
    'e',
  ]
  assert.deepEqual(receiveHeaders(raw, null).kept, raw)
})

test('the host is the authority the request is for, under the name the client used', async () => {
  assert.deepEqual(receiveHeaders(['hOST', 'old', 'A', '1'], 'new').kept, ['hOST', 'new', 'A', '1'])
  const h2 = [':method', 'GET', ':authority', 'new', ':path', '/', 'a', '1']
  assert.deepEqual(receiveHeaders(h2, 'new').kept, ['Host', 'new', 'a', '1'])
})

test('crumbs of a cookie are one header again', async () => {
  const raw = ['cookie', 'a=1', 'x', 'y', 'cookie', 'b=2', 'cookie', 'c=3']
  assert.deepEqual(receiveHeaders(raw, null).kept, ['cookie', 'a=1; b=2; c=3', 'x', 'y'])
})

test('of TE only trailers go on', async () => {
  assert.deepEqual(receiveHeaders(['TE', 'gzip, trailers'], null).kept, ['TE', 'trailers'])
  assert.deepEqual(receiveHeaders(['TE', 'gzip'], null).kept, [])
})

test('nothing in our namespace ever passes, and no other header is lost', async () => {
  const name = fc.oneof(
    fc
      .constantFrom(...OURS, ...FORWARDING, ...HOP_BY_HOP, 'Host', 'Cookie', 'TE')
      .chain((each) => fc.constantFrom(...spellings(each))),
    fc.stringMatching(/^[a-zA-Z0-9-]{1,20}$/),
  )
  const property = fc.property(fc.array(fc.tuple(name, fc.stringMatching(/^[ -~]{0,12}$/))), (pairs) => {
    const { kept } = receiveHeaders(pairs.flat(), 'host.example.test')
    const names = kept.filter((_, i) => i % 2 === 0).map((each) => each.toLowerCase().replaceAll('_', '-'))
    const special = [...OURS, ...FORWARDING, ...HOP_BY_HOP].map((each) => each.toLowerCase())
    for (const each of names) assert.ok(!special.includes(each) && !each.startsWith('x-agent-'), each)
  })
  fc.assert(property, { interruptAfterTimeLimit: 2000, numRuns: 100_000 })
})

test('the client is named to the app anew, or after a trusted hop', async () => {
  const anew: string[] = []
  pushForwarding(anew, connection('2001:db8::7'), 'shop.example.test:8443', null)
  assert.deepEqual(anew, [
    ...[
      'X-Forwarded-For',
      '2001:db8::7',
      'X-Forwarded-Proto',
      'https',
      'X-Forwarded-Host',
      'shop.example.test:8443',
    ],
    ...[
      'X-Forwarded-Port',
      '8443',
      'Forwarded',
      'for="[2001:db8::7]";host="shop.example.test:8443";proto=https',
    ],
  ])
  const { hop } = receiveHeaders(
    ['x-forwarded-for', '192.0.2.1', 'X-Forwarded-Proto', 'http', 'Forwarded', 'for=192.0.2.1'],
    null,
  )
  const after: string[] = []
  pushForwarding(after, connection('198.51.100.9'), null, hop)
  assert.deepEqual(after, [
    ...[
      'X-Forwarded-For',
      '192.0.2.1, 198.51.100.9',
      'X-Forwarded-Proto',
      'http',
      'X-Forwarded-Port',
      '8443',
    ],
    ...['Forwarded', 'for=192.0.2.1, for=198.51.100.9;proto=https'],
  ])
})

test('what is known is said, and nothing is said of what is not', async () => {
  const headers: string[] = []
  pushTags(headers, { connection: connection('192.0.2.1').print, ja4h: null } as Print, UNKNOWN, 'tag')
  const known = ['X-Agent-Verdict', 'unknown', 'X-Agent-Confidence', '0.00', 'X-Agent-Action', 'tag']
  assert.deepEqual(headers, known)

  const agent = { id: 'gptbot', name: 'GPTBot', category: 'crawler' }
  const verdict: Verdict = {
    kind: 'agent',
    agent,
    software: null,
    confidence: 0.987,
    proof: { method: 'ip-range', agent: 'x', key: null },
    conflicts: [],
    evidence: [],
  }
  const all: string[] = []
  pushTags(all, { connection: connection('192.0.2.1').print, ja4h: 'h' } as Print, verdict, 'pass')
  assert.ok(
    all
      .join('|')
      .includes(
        'X-JA4H-Fingerprint|h|X-Agent-Verdict|agent|X-Agent-Name|GPTBot|X-Agent-Category|crawler|X-Agent-Confidence|0.99|X-Agent-Verified|ip-range|X-Agent-Action',
      ),
  )

  const proof = { method: 'web-bot-auth', agent: 'https://stranger.test', key: 'k1' } as const
  const conflicts = ['signed-as-another', 'address-foreign']
  const signed: string[] = []
  const stranger = { ...verdict, agent: null, proof, conflicts }
  pushTags(signed, { connection: connection('192.0.2.1').print, ja4h: null } as Print, stranger, 'pass')
  assert.ok(!signed.includes('X-Agent-Name'))
  assert.ok(
    signed
      .join('|')
      .includes(
        'X-Agent-Verified|web-bot-auth|X-Agent-Identity|https://stranger.test|X-Agent-Key|k1|X-Agent-Conflict|signed-as-another, address-foreign|X-Agent-Action',
      ),
  )
})

function spellings(name: string): string[] {
  const mixed = name.replace(/-/g, (_, at: number) => (at % 2 === 0 ? '_' : '-'))
  return [name, name.toLowerCase(), name.toUpperCase(), name.replaceAll('-', '_'), mixed]
}

function connection(address: string): Connection {
  const print = {
    ja4: null,
    unresumed: null,
    stable: null,
    traits: null,
    ja4s: null,
    ja4x: null,
    http2: null,
    noHello: 'malformed',
    ja4Source: null,
  } as const
  return {
    ...{
      id: 1,
      address,
      port: 5,
      peerAddress: address,
      localPort: 8443,
      localAddress: '127.0.0.1',
      protocol: 'h1',
      isTls: true,
    },
    ...{
      serverName: null,
      print,
      conduct: new Conduct(),
      introduction: null,
      admittedAuthority: null,
      isTrusted: false,
      isJa4Hop: false,
    },
  }
}

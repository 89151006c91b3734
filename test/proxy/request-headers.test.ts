import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import { forgedHeaders } from '../../src/classify/verdict/our-headers.ts'
import { UNKNOWN, type Verdict } from '../../src/classify/verdict/verdict.ts'
import type { Print } from '../../src/fingerprint/print.ts'
import type { Connection } from '../../src/proxy/connection/connection.ts'
import { HOP_BY_HOP, type HeaderRules, type HeaderSettings } from '../../src/proxy/connection/header-rules.ts'
import { clientPath } from '../../src/proxy/connection/peer-address.ts'
import { AddressSet } from '../../src/wire/ip-address.ts'
import {
  pushForwarding,
  pushTags,
  type ReceivedHeaders,
  receiveHeaders,
  receiveTrailers,
} from '../../src/proxy/connection/request-headers.ts'
import { foldHeaderName, hasOddNames, isFoldedName, isPlainName } from '../../src/wire/header-name.ts'
import { FORWARDING, NOT_FROM_CLIENTS, ODD_CHARACTERS, OURS, spellingsOf } from './header-spellings.ts'
import { headerRules } from './test-headers.ts'
import { timeBox } from '../time-box.ts'

const CLIENT = { isTrusted: false, isJa4Hop: false }
const MODES = ['drop', 'pass', 'refuse'] as const
/** What HTTP itself, and apps, act on. */
const ACTED_ON = ['Host', 'Content-Length', 'Transfer-Encoding', 'Cookie', 'Authorization', 'Content-Type']
const METHOD_OVERRIDES = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override']

test('no spelling of a header that only the proxy sets gets through, whatever odd_header_names says', async () => {
  for (const oddNames of MODES) {
    const rules = headerRules({ oddNames })
    for (const name of [...OURS, ...FORWARDING, ...NOT_FROM_CLIENTS]) {
      for (const spelling of spellingsOf(name)) {
        const { kept, forged } = received(['Host', 'a', spelling, 'forged', 'Accept', '*/*'], 'a', rules)
        assert.deepEqual(kept, ['Host', 'a', 'Accept', '*/*'], spelling)
        const isForged = OURS.includes(name) || (FORWARDING.includes(name) && !isPlainName(spelling))
        assert.deepEqual(forged, isForged ? [name.toLowerCase()] : [], spelling)
        assert.deepEqual(forgedHeaders(['Accept', '*/*', spelling, 'x']), forged, spelling)
      }
    }
  }
})

test('no odd spelling of a header that servers act on gets through as the real one', async () => {
  const standard = [
    ...ACTED_ON,
    ...METHOD_OVERRIDES,
    ...HOP_BY_HOP,
    'TE',
    'User-Agent',
    'Proxy-Authorization',
  ]
  for (const oddNames of MODES) {
    const rules = headerRules({ oddNames })
    for (const name of standard) {
      for (const spelling of spellingsOf(name).filter((each) => !isPlainName(each))) {
        const { kept, oddNames: count } = received([spelling, 'forged', 'Accept', '*/*'], null, rules)
        assert.deepEqual(kept, ['Accept', '*/*'], spelling)
        assert.equal(count, 1)
      }
    }
  }
})

test('odd names are dropped, or pass where the setting says so, and are counted', async () => {
  for (const character of ODD_CHARACTERS) {
    const raw = ['Host', 'a', `X${character}Plan`, 'gold', `${character}`, '1', 'X-Plan', 'none']
    for (const oddNames of MODES) {
      const { kept, oddNames: count } = received(raw, 'a', headerRules({ oddNames }))
      assert.deepEqual(kept, oddNames === 'pass' ? raw : ['Host', 'a', 'X-Plan', 'none'])
      assert.equal(count, 2)
    }
  }
})

test('headers that apps commonly trust are removed from every client', async () => {
  const raw = NOT_FROM_CLIENTS.flatMap((name) => [name, '192.0.2.66'])
  assert.deepEqual(received(['Host', 'a', ...raw, 'B', '2'], 'a').kept, ['Host', 'a', 'B', '2'])
  const mine = headerRules({ untrusted: ['x-my-user', 'x_my_team'] })
  const sent = ['X-My-User', 'root', 'X-My-Team', 'ops', 'X_My_User', 'root', 'True-Client-IP', '192.0.2.66']
  assert.deepEqual(received(sent, null, mine).kept, ['True-Client-IP', '192.0.2.66'])
})

test('a trusted proxy passes on what it is trusted in, and nothing else of the kind', async () => {
  const raw = ['CF-Connecting-IP', '192.0.2.1', 'True-Client-IP', '192.0.2.66', 'X-Forwarded-Prefix', '/x']
  assert.deepEqual(receivedFromHop(raw).kept, [])
  const named = headerRules({ trusted: ['CF_Connecting_IP', 'x-forwarded-prefix'] })
  assert.deepEqual(receivedFromHop(raw, named).kept, [
    ...['CF-Connecting-IP', '192.0.2.1', 'X-Forwarded-Prefix', '/x'],
  ])
  assert.deepEqual(receivedFromHop(['CF_Connecting_IP', '192.0.2.66'], named).kept, [])
  assert.deepEqual(received(raw, null, named).kept, [])
})

test('settings can neither have our headers believed nor passed on', async () => {
  const rules = headerRules({
    ...{ oddNames: 'pass', untrusted: ['x-agent-name', 'host'], trusted: ['x-agent-name', 'x-ja4-source'] },
  })
  const raw = ['Host', 'a', 'X-Agent-Name', 'GPTBot', 'X_JA4_Source', 'hop']
  const { kept, forged } = receivedFromHop(raw, rules, 'a')
  assert.deepEqual(
    [kept, forged],
    [
      ['Host', 'a'],
      ['x-agent-name', 'x-ja4-source'],
    ],
  )
})

test('method overrides are removed when the policy asks for the method, and pass when not', async () => {
  const raw = METHOD_OVERRIDES.flatMap((name) => [name, 'DELETE'])
  assert.deepEqual(received(raw).kept, raw)
  const { kept } = receiveHeaders(headerRules(), CLIENT, headOf([...raw, 'A', '1']), null, true)
  assert.deepEqual(kept, ['A', '1'])
})

test('a JA4 is taken from a listed hop in the name of the setting, and in no other spelling', async () => {
  const hop = { isTrusted: false, isJa4Hop: true }
  for (const [name, isTaken] of [
    ['x-ja4-fingerprint', true],
    ['X-JA4-Fingerprint', true],
    ['X_JA4_Fingerprint', false],
    ['X.JA4.Fingerprint', false],
  ] as const) {
    const { kept, forged } = receiveHeaders(headerRules(), hop, headOf([name, 't13d']), null, false)
    assert.deepEqual([kept, forged], [[], isTaken ? [] : ['x-ja4-fingerprint']], name)
  }
  const underscored = headerRules({ ja4Header: 'cdn_ja4', oddNames: 'refuse' })
  const read = receiveHeaders(underscored, hop, headOf(['cdn_ja4', 't13d']), null, false)
  assert.deepEqual([read.kept, read.oddNames], [[], 0])
  const custom = headerRules({ ja4Header: 'cdn-ja4' })
  assert.deepEqual(receiveHeaders(custom, hop, headOf(['CDN-JA4', 't13d']), null, false).kept, [])
})

test('hop-by-hop fields and framing stay here, in every case', async () => {
  for (const name of HOP_BY_HOP) {
    for (const spelling of [name, name.toUpperCase()]) {
      assert.deepEqual(received([spelling, 'x', 'B', '2']).kept, ['B', '2'], spelling)
    }
  }
})

test('what Connection lists stays here too, but for the host and what we say', async () => {
  const raw = ['Host', 'a', 'connection', 'X-Secret, host ,close', 'x-secret', '1', 'X_SECRET', '2', 'Y', '3']
  for (const oddNames of MODES)
    assert.deepEqual(received(raw, 'a', headerRules({ oddNames })).kept, ['Host', 'a', 'Y', '3'])
  // Nor does it hide a forged header from the verdict, or take away what a trusted proxy says.
  const listing = ['Connection', 'X-Agent-Name, X_Agent_Verdict, X-Forwarded-For, X.Plan']
  const sent = [
    ...listing,
    'X-Agent-Name',
    'a',
    'X_Agent_Verdict',
    'b',
    'X-Forwarded-For',
    '192.0.2.1',
    'X-Plan',
    'c',
  ]
  const { kept, forged, hop } = receivedFromHop(sent)
  assert.deepEqual([kept, forged, hop.forwardedFor], [[], ['x-agent-name', 'x-agent-verdict'], '192.0.2.1'])
})

test('everything else goes on: order, case, duplicates, and names that only look special', async () => {
  const raw = [
    ...['b', '1', 'A', '2', 'b', '', 'Content-Type', 't', 'Cookie', 'a=1', 'xcookie', 'c', 'tea', 'd'],
    ...['X-Agentur', 'e', 'X-Request-Id', 'f', 'Forwarder', 'g', 'X-Real-IPs', 'h', 'Proxying', 'i'],
  ]
  assert.deepEqual(received(raw).kept, raw)
})

test('the host is the authority the request is for, under the name the client used', async () => {
  assert.deepEqual(received(['hOST', 'old', 'A', '1'], 'new').kept, ['hOST', 'new', 'A', '1'])
  const h2 = [':method', 'GET', ':authority', 'new', ':path', '/', 'a', '1']
  assert.deepEqual(received(h2, 'new').kept, ['Host', 'new', 'a', '1'])
})

test('crumbs of a cookie are one header again', async () => {
  const raw = ['cookie', 'a=1', 'x', 'y', 'cookie', 'b=2', 'cookie', 'c=3']
  assert.deepEqual(received(raw).kept, ['cookie', 'a=1; b=2; c=3', 'x', 'y'])
})

test('of TE only trailers go on', async () => {
  assert.deepEqual(received(['TE', 'gzip, trailers']).kept, ['TE', 'trailers'])
  assert.deepEqual(received(['TE', 'gzip']).kept, [])
})

test('trailers tell the app nothing in our name, and nothing that it takes for a header of HTTP', async () => {
  const refused = [
    ...OURS,
    ...FORWARDING,
    ...NOT_FROM_CLIENTS,
    ...METHOD_OVERRIDES,
    ...ACTED_ON,
    ...HOP_BY_HOP,
  ]
  for (const oddNames of MODES) {
    const rules = headerRules({ oddNames })
    for (const name of refused) {
      for (const spelling of spellingsOf(name)) {
        let counted = 0
        const kept = receiveTrailers(rules, [spelling, 'x', 'Digest', 'y'], (count) => {
          counted += count
        })
        assert.deepEqual(kept, ['Digest', 'y'], spelling)
        assert.equal(counted, isPlainName(spelling) ? 0 : 1, spelling)
      }
    }
  }
  const odd = ['X_Checksum', '1', 'X-Checksum', '2']
  assert.deepEqual(
    receiveTrailers(headerRules(), odd, () => {}),
    ['X-Checksum', '2'],
  )
  assert.deepEqual(
    receiveTrailers(headerRules({ oddNames: 'pass' }), odd, () => {}),
    odd,
  )
})

test('nothing in our namespace ever passes, and no other header is lost', async () => {
  const name = fc.oneof(
    fc
      .constantFrom(...OURS, ...FORWARDING, ...HOP_BY_HOP, 'Host', 'Cookie', 'TE')
      .chain((each) => fc.constantFrom(...spellingsOf(each))),
    fc.stringMatching(/^[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,20}$/),
  )
  const pairs = fc.array(fc.tuple(name, fc.stringMatching(/^[ -~]{0,12}$/)))
  const property = fc.property(pairs, fc.constantFrom(...MODES), (sent, oddNames) => {
    const { kept } = received(sent.flat(), 'host.example.test', headerRules({ oddNames }))
    const names = kept.filter((_, i) => i % 2 === 0).map(foldHeaderName)
    const special = [...OURS, ...FORWARDING, ...HOP_BY_HOP].map((each) => each.toLowerCase())
    for (const each of names) assert.ok(!special.includes(each) && !each.startsWith('x-agent-'), each)
    const plain = sent.filter(([each]) => /^[a-zA-Z]{20}$/.test(each)).length
    assert.ok(plain <= names.length)
  })
  fc.assert(property, timeBox(100_000, 2_000))
})

test('names that servers fold are compared folded, byte by byte', async () => {
  for (let code = 0; code < 256; code++) {
    const character = String.fromCharCode(code)
    const isAlphanumeric = /[a-z0-9]/i.test(character)
    const name = `A${character}b`
    const folded = foldHeaderName(name)
    assert.equal(folded, isAlphanumeric ? name.toLowerCase() : 'a-b')
    assert.ok(isFoldedName(name, folded))
    assert.equal(isFoldedName(name, 'a-c'), false)
    assert.equal(isFoldedName(name, 'a-bc'), false)
    assert.equal(isPlainName(name), isAlphanumeric || character === '-')
    assert.equal(hasOddNames(['x', character, name, 'y']), !isPlainName(name))
  }
  assert.equal(hasOddNames([':method', 'GET', 'a', 'b_c']), false)
})

test('the client is named to the app anew, or after a trusted hop', async () => {
  const anew: string[] = []
  pushForwarding(anew, connection('2001:db8::7'), 'shop.example.test:8443', null)
  assert.deepEqual(anew, [
    ...['X-Forwarded-For', '2001:db8::7', 'X-Forwarded-Proto', 'https'],
    ...['X-Forwarded-Host', 'shop.example.test:8443', 'X-Forwarded-Port', '8443', 'X-Real-IP', '2001:db8::7'],
    ...['Forwarded', 'for="[2001:db8::7]";host="shop.example.test:8443";proto=https'],
  ])
  const sent = ['x-forwarded-for', '192.0.2.1', 'X-Forwarded-Proto', 'http', 'Forwarded', 'for=192.0.2.1']
  assert.deepEqual(told(sent, null), [
    ...['X-Forwarded-For', '192.0.2.1, 10.0.0.9', 'X-Forwarded-Proto', 'http', 'X-Forwarded-Port', '8443'],
    ...['X-Real-IP', '192.0.2.1', 'Forwarded', 'for=192.0.2.1;proto=http, for=10.0.0.9;proto=https'],
  ])
})

test('Forwarded and X-Forwarded-Host of a client do not pass through a hop that writes only X-Forwarded-For', async () => {
  const sent = [
    ...['Forwarded', 'for=192.0.2.66;host=evil.example;proto=http', 'X-Forwarded-Host', 'evil.example'],
    ...['X-Real-IP', '192.0.2.66', 'X-Forwarded-For', '192.0.2.66, 192.0.2.1, 10.0.0.8'],
  ]
  assert.deepEqual(told(sent, 'app.test'), [
    ...['X-Forwarded-For', '192.0.2.66, 192.0.2.1, 10.0.0.8, 10.0.0.9', 'X-Forwarded-Proto', 'https'],
    ...['X-Forwarded-Host', 'app.test', 'X-Forwarded-Port', '8443', 'X-Real-IP', '192.0.2.1'],
    ...['Forwarded', 'for=192.0.2.1;host="app.test", for=10.0.0.8, for=10.0.0.9;host="app.test";proto=https'],
  ])
  const all = ['forwarded', 'x-forwarded-host', 'x-real-ip', 'x-forwarded-for']
  assert.deepEqual(told(sent, 'app.test', { trusted: all }), [
    ...['X-Forwarded-For', '192.0.2.66, 192.0.2.1, 10.0.0.8, 10.0.0.9', 'X-Forwarded-Proto', 'https'],
    ...['X-Forwarded-Host', 'evil.example', 'X-Forwarded-Port', '8443', 'X-Real-IP', '192.0.2.66'],
    'Forwarded',
    'for=192.0.2.66;host=evil.example;proto=http, for=10.0.0.9;host="app.test";proto=https',
  ])
})

test('what a client writes in front of X-Forwarded-For adds nothing to Forwarded', async () => {
  for (const entry of ['192.0.2.1;proto=http', '"', 'for=x', '192.0.2.1";host="evil.example', '_hidden', ''])
    assert.equal(
      told(['X-Forwarded-For', entry], 'app.test').at(-1),
      'for=10.0.0.9;host="app.test";proto=https',
      entry,
    )
  const proto = told(['X-Forwarded-For', '192.0.2.1', 'X-Forwarded-Proto', 'https;host=evil'], 'app.test')
  assert.equal(proto.at(-1), 'for=192.0.2.1;host="app.test", for=10.0.0.9;host="app.test";proto=https')
})

test('the address of a client is read from Forwarded where a trusted hop sends no X-Forwarded-For', async () => {
  assert.deepEqual(told(['Forwarded', 'for="[2001:db9::5]:99", for=10.0.0.8'], 'app.test'), [
    ...['X-Forwarded-For', '2001:db9::5, 10.0.0.8, 10.0.0.9', 'X-Forwarded-Proto', 'https'],
    ...['X-Forwarded-Host', 'app.test', 'X-Forwarded-Port', '8443', 'X-Real-IP', '2001:db9::5'],
    'Forwarded',
    'for="[2001:db9::5]";host="app.test", for=10.0.0.8, for=10.0.0.9;host="app.test";proto=https',
  ])
  // A client's X-Forwarded-For, through a hop that is trusted in Forwarded alone.
  const sent = ['X-Forwarded-For', '192.0.2.66', 'Forwarded', 'for=192.0.2.1;proto=https']
  assert.deepEqual(told(sent, null, { trusted: ['forwarded'] }), [
    ...['X-Forwarded-For', '192.0.2.1, 10.0.0.9', 'X-Forwarded-Proto', 'https', 'X-Forwarded-Port', '8443'],
    ...['X-Real-IP', '192.0.2.1', 'Forwarded', 'for=192.0.2.1;proto=https, for=10.0.0.9;proto=https'],
  ])
})

test('known facts become headers, unknown ones do not', async () => {
  const headers: string[] = []
  pushTags(headers, { connection: connection('192.0.2.1').print, ja4h: null } as Print, UNKNOWN, 'tag')
  const known = ['X-Agent-Verdict', 'unknown', 'X-Agent-Confidence', '0.00', 'X-Agent-Action', 'tag']
  assert.deepEqual(headers, known)

  const agent = { id: 'gptbot', name: 'GPTBot', category: 'crawler', purposes: ['archive', 'training'] }
  const verdict: Verdict = {
    kind: 'agent',
    agent,
    software: null,
    confidence: 0.987,
    nameConfidence: 0.999,
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
        'X-JA4H-Fingerprint|h|X-Agent-Verdict|agent|X-Agent-Name|GPTBot|X-Agent-Category|crawler|X-Agent-Purpose|archive, training|X-Agent-Name-Confidence|1.00|X-Agent-Confidence|0.99|X-Agent-Verified|ip-range|X-Agent-Action',
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

function received(
  rawHeaders: readonly string[],
  authority: string | null = null,
  rules: HeaderRules = headerRules(),
): ReceivedHeaders {
  return receiveHeaders(rules, CLIENT, headOf(rawHeaders), authority, false)
}

function receivedFromHop(
  rawHeaders: readonly string[],
  rules: HeaderRules = headerRules(),
  authority: string | null = null,
): ReceivedHeaders {
  return receiveHeaders(rules, { isTrusted: true, isJa4Hop: false }, headOf(rawHeaders), authority, false)
}

/** What the app is told of where such a request of a trusted proxy comes from. */
function told(
  rawHeaders: readonly string[],
  authority: string | null,
  settings: Partial<HeaderSettings> = {},
): readonly string[] {
  const rules = headerRules(settings)
  const { hop } = receivedFromHop(rawHeaders, rules)
  const relay = { ...connection('10.0.0.9'), isTrusted: true }
  const path = clientPath(relay, hop, AddressSet.parse(['10.0.0.0/8'])!)
  const headers: string[] = []
  pushForwarding(headers, relay, authority, { hop, passesForwarded: rules.isTrusted('forwarded'), path })
  return headers
}

function headOf(rawHeaders: readonly string[]) {
  return { rawHeaders, hasOddNames: hasOddNames(rawHeaders) }
}

function connection(address: string): Connection {
  const print = {
    ja4: null,
    unresumed: null,
    pageWeight: null,
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

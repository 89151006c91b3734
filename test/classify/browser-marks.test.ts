import assert from 'node:assert/strict'
import { createReadStream, existsSync } from 'node:fs'
import { test } from 'tap'
import { evidenceOf } from '../../src/classify/verdict/classify.ts'
import type { CorpusRow } from '../../src/classify/known/corpus.ts'
import { DISAGREEMENTS, type EvidenceKind, SOFT_DISAGREEMENTS } from '../../src/classify/known/evidence.ts'
import type { Engine } from '../../src/classify/known/software.ts'
import { readCorpus } from '../../src/commands/record/corpus-file.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import { type HelloTraits, hasTraits, TRAIT } from '../../src/fingerprint/hello-traits.ts'
import type { Ja4 } from '../../src/fingerprint/ja4.ts'
import type { ConnectionPrint } from '../../src/fingerprint/print.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'

const RECORDED = 'test/classify/recorded.jsonl'
const SHARED = '../shared/corpus/clients.jsonl'
const isThere = existsSync(SHARED)

const KNOWLEDGE = await loadKnowledge(null, null)
const HUMAN = await humanRows(RECORDED)

interface Request {
  readonly print: ConnectionPrint
  readonly head: RequestHead
}

/** The first page that a recorded Chromium opened. */
const CHROMIUM = pageOf(HUMAN, 'chromium')
/** A Firefox over HTTP/2, as it was recorded; its hello is one of those that are known. */
const FIREFOX: Request = {
  print: {
    ...{
      ja4: knownJa4('gecko'),
      unresumed: null,
      pageWeight: null,
      stable: null,
      ja4s: null,
      ja4x: null,
      noHello: null,
      ja4Source: 'own',
    },
    traits: (TRAIT.recordSizeLimit |
      TRAIT.delegatedCredentials |
      TRAIT.postQuantum |
      TRAIT.sessionTicket |
      TRAIT.pskModes |
      TRAIT.tls13Ciphers) as HelloTraits,
    http2: '1:65536;2:0;4:131072;5:16384|12517377|0|m,p,a,s',
  },
  head: page('20', [
    ...['user-agent', 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0'],
    ...['accept', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'],
    ...['accept-language', 'en-US,en;q=0.9', 'accept-encoding', 'gzip, deflate, br, zstd'],
    ...['upgrade-insecure-requests', '1', 'sec-fetch-dest', 'document', 'sec-fetch-mode', 'navigate'],
    ...['sec-fetch-site', 'none', 'sec-fetch-user', '?1', 'priority', 'u=0, i', 'te', 'trailers'],
  ]),
}
const APPLE_TRAITS = TRAIT.greaseCiphers | TRAIT.compressCertificate | TRAIT.pskModes | TRAIT.tls13Ciphers
/** A Safari of a Mac: its hello and its HTTP/2 are unknown here. */
const SAFARI: Request = {
  print: {
    ...FIREFOX.print,
    ja4: 't13d2014h2_a09f3c656075_000000000000' as Ja4,
    traits: (APPLE_TRAITS | TRAIT.postQuantum) as HelloTraits,
    http2: null,
  },
  head: page('20', [
    ...['sec-fetch-dest', 'document'],
    'user-agent',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
    ...[
      'accept',
      'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
      'sec-fetch-site',
      'none',
    ],
    ...['sec-fetch-mode', 'navigate', 'accept-language', 'en-GB,en;q=0.9', 'priority', 'u=0, i'],
    ...['accept-encoding', 'gzip, deflate, br'],
  ]),
}

test('what a real page of each shows denies nothing', async () => {
  for (const [name, request] of Object.entries({ CHROMIUM, FIREFOX, SAFARI }))
    assert.deepEqual(disagreements(request), [], name)
  for (const kind of ['names-browser', 'stack-agrees', 'http2-agrees', 'header-order-agrees'] as const)
    for (const request of [CHROMIUM, FIREFOX]) assert.ok(marks(request).includes(kind), kind)
})

/** `+` what the change adds, `-` what it takes away; everything else stays. */
type Change = readonly [what: string, changed: Request, difference: readonly string[]]

const HEADER_CHANGES: readonly Change[] = [
  ['no sec-ch-ua', without(CHROMIUM, 'sec-ch-ua'), ['+client-hints-missing']],
  ['a version that its hints do not have', version(CHROMIUM, 155), ['+client-hints-disagree']],
  [
    'hints of another system',
    withHeader(CHROMIUM, 'sec-ch-ua-platform', '"Windows"'),
    ['+client-hints-disagree'],
  ],
  ['hints without quotes', withHeader(CHROMIUM, 'sec-ch-ua-platform', 'Linux'), ['+client-hints-disagree']],
  [
    'hints of a Firefox',
    withHeader(FIREFOX, 'sec-ch-ua', '"Firefox";v="153"', 'last'),
    ['+client-hints-disagree', '-header-order-agrees'],
  ],
  [
    'hints of a Safari',
    withHeader(SAFARI, 'sec-ch-ua', '"Safari";v="26"', 'last'),
    ['+client-hints-disagree', '-header-order-agrees'],
  ],
  [
    'hints that say headless',
    withHeader(CHROMIUM, 'sec-ch-ua', `${header(CHROMIUM, 'sec-ch-ua')}, "HeadlessChrome";v="156"`),
    ['+agent-header', '+headless'],
  ],
  [
    'no sec-fetch header',
    without(CHROMIUM, 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-user', 'sec-fetch-dest'),
    ['+fetch-metadata-missing'],
  ],
  [
    'no sec-fetch header, in a Firefox',
    without(FIREFOX, 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-user', 'sec-fetch-dest'),
    ['+fetch-metadata-missing'],
  ],
  ['sec-fetch-mode alone', without(CHROMIUM, 'sec-fetch-site', 'sec-fetch-dest'), ['+fetch-metadata-odd']],
  ['no sec-fetch-dest', without(FIREFOX, 'sec-fetch-dest'), ['+headers-missing']],
  ['a navigation that accepts anything', withHeader(CHROMIUM, 'accept', '*/*'), ['+fetch-metadata-odd']],
  ['a navigation to nowhere', withHeader(CHROMIUM, 'sec-fetch-dest', 'empty'), ['+fetch-metadata-odd']],
  [
    'a navigation that sends JSON',
    method(withHeader(CHROMIUM, 'content-type', 'application/json'), 'POST'),
    ['+fetch-metadata-odd'],
  ],
  ['a form without a content-type', method(CHROMIUM, 'POST'), ['+headers-missing']],
  ['a form', method(withHeader(CHROMIUM, 'content-type', 'application/x-www-form-urlencoded'), 'POST'), []],
  ['a fetch of a page', withHeader(CHROMIUM, 'sec-fetch-mode', 'cors'), ['+fetch-metadata-odd']],
  [
    'a fetch by a click',
    withHeader(withHeader(CHROMIUM, 'sec-fetch-mode', 'cors'), 'sec-fetch-dest', 'empty'),
    ['+fetch-metadata-odd'],
  ],
  ['no upgrade-insecure-requests', without(CHROMIUM, 'upgrade-insecure-requests'), ['+headers-missing']],
  ['no priority', without(CHROMIUM, 'priority'), ['+headers-missing']],
  ['no te, in a Firefox', without(FIREFOX, 'te'), ['+headers-missing']],
  ['no accept-language', without(CHROMIUM, 'accept-language'), ['+language-missing']],
  ['no Brotli', withHeader(CHROMIUM, 'accept-encoding', 'gzip, deflate'), ['+encoding-disagrees']],
  ['no accept-encoding', without(FIREFOX, 'accept-encoding'), ['+encoding-disagrees']],
  ['another order', reordered(CHROMIUM), ['+header-order-disagrees', '-header-order-agrees']],
]

const CONNECTION_CHANGES: readonly Change[] = [
  [
    'unknown settings',
    print(CHROMIUM, { http2: '1:65536;2:0;4:1;6:262144|15663105|0|m,a,s,p' }),
    ['+http2-unlike', '-http2-agrees'],
  ],
  [
    'settings that no Chromium has had',
    print(CHROMIUM, { http2: '2:0;4:6291456;6:262144|15663105|0|m,a,s,p' }),
    ['+http2-disagrees', '-http2-agrees'],
  ],
  [
    'a frame size, which no Chromium sets',
    print(CHROMIUM, { http2: '1:65536;2:0;4:6291456;5:16384;6:262144|15663105|0|m,a,s,p' }),
    ['+http2-disagrees', '-http2-agrees'],
  ],
  [
    'pseudo-headers in an order that no Chromium has had',
    print(CHROMIUM, { http2: '1:65536;2:0;4:6291456;6:262144|15663105|0|m,p,a,s' }),
    ['+http2-disagrees', '-http2-agrees'],
  ],
  ['HTTP/2 of which nothing is known', print(CHROMIUM, { http2: null }), ['-http2-agrees']],
  [
    'a hello of which a part is a Chromium’s',
    print(CHROMIUM, { ja4: `t13d1599h2_${part(CHROMIUM, 1)}_000000000000` as Ja4, stable: null }),
    ['+stack-alike', '+stack-unknown', '-stack-agrees', ...stackKinds(CHROMIUM)],
  ],
  [
    'a hello of which no part is known',
    print(CHROMIUM, { ja4: 't13d0303h2_000000000000_000000000000' as Ja4, stable: null }),
    ['+stack-unknown', '+stack-unlike', '-stack-agrees', ...stackKinds(CHROMIUM)],
  ],
  [
    'a hello that could not be read',
    print(CHROMIUM, noHello('malformed')),
    ['-stack-agrees', ...stackKinds(CHROMIUM)],
  ],
  ['no GREASE', lacking(CHROMIUM, TRAIT.greaseCiphers), ['+version-disagrees']],
  ['no ALPS', lacking(CHROMIUM, TRAIT.alps), ['+version-disagrees']],
  ['no compressed certificates', lacking(CHROMIUM, TRAIT.compressCertificate), ['+version-disagrees']],
  ['no post-quantum group', lacking(CHROMIUM, TRAIT.postQuantum), ['+post-quantum-missing']],
  ['tickets in a Chromium that uses none', lacking(CHROMIUM, TRAIT.pskModes), ['+version-disagrees']],
  ['tickets in a Firefox that uses none', lacking(FIREFOX, TRAIT.pskModes), ['+version-disagrees']],
  ['a Firefox that resumes no sessions', lacking(FIREFOX, TRAIT.pskModes | TRAIT.sessionTicket), []],
  ['tickets in a Safari that uses none', lacking(SAFARI, TRAIT.pskModes), ['+version-disagrees']],
  ['TLS 1.3 without its ciphers', lacking(CHROMIUM, TRAIT.tls13Ciphers), ['+version-disagrees']],
  ['TLS 1.3 without its ciphers in a Firefox', lacking(FIREFOX, TRAIT.tls13Ciphers), ['+version-disagrees']],
  ['TLS 1.3 without its ciphers in a Safari', lacking(SAFARI, TRAIT.tls13Ciphers), ['+version-disagrees']],
  ['GREASE in a Firefox', having(FIREFOX, TRAIT.greaseCiphers), ['+version-disagrees']],
  ['no record size limit in a Firefox', lacking(FIREFOX, TRAIT.recordSizeLimit), ['+version-disagrees']],
  [
    'no delegated credentials in a Firefox',
    lacking(FIREFOX, TRAIT.delegatedCredentials),
    ['+version-disagrees'],
  ],
  ['no post-quantum group in a Firefox', lacking(FIREFOX, TRAIT.postQuantum), ['+post-quantum-missing']],
  ['a post-quantum group in Firefox 117', version(FIREFOX, 117), ['+version-disagrees']],
  ['no GREASE in a Safari', lacking(SAFARI, TRAIT.greaseCiphers), ['+version-disagrees']],
  ['no post-quantum group in a Safari of macOS, which may be older', lacking(SAFARI, TRAIT.postQuantum), []],
  ['a session ticket in a Safari', having(SAFARI, TRAIT.sessionTicket), ['+version-disagrees']],
  ['a post-quantum group in Safari 17', version(SAFARI, 17), ['+version-disagrees']],
  ['a post-quantum group in Safari 18', version(SAFARI, 18), []],
]

for (const [what, changed, difference] of [...HEADER_CHANGES, ...CONNECTION_CHANGES]) {
  test(`a real page changed in one way: ${what}`, async () => {
    const base = [CHROMIUM, FIREFOX, SAFARI].find((each) => isOf(each, changed))!
    assert.deepEqual(differences(marks(base), marks(changed)), difference.toSorted())
  })
}

test('settings of HTTP/2 that no Safari has had', async () => {
  const opened = (http2: string) => disagreements(print(SAFARI, { http2 }))
  assert.deepEqual(opened('7:1|1|0|m,s,a,p'), ['http2-unlike'])
  assert.deepEqual(opened('7:1|1|0|m,s,p,a'), ['http2-unlike'])
  assert.deepEqual(opened('7:1|1|0|m,a,s,p'), ['http2-disagrees'])
})

const APPLE = [
  ['macOS 11 to 13', 't13d2014h2_a09f3c656075_14788d8d241b', '4:4194304;3:100|10485760|0|m,s,p,a', 255, 16],
  ['macOS 14', 't13d2014h2_a09f3c656075_14788d8d241b', '2:0;4:4194304;3:100|10485760|0|m,s,p,a', 255, 17],
  ['iOS 16', 't13d2014h2_a09f3c656075_14788d8d241b', '4:2097152;3:100|10485760|0|m,s,p,a', 255, 16],
  ['iOS 17', 't13d2014h2_a09f3c656075_14788d8d241b', '2:0;4:2097152;3:100|10485760|0|m,s,p,a', 255, 17],
  [
    'iOS 18.0',
    't13d2014h2_a09f3c656075_14788d8d241b',
    '2:0;3:100;4:2097152;8:1;9:1|10420225|0|m,s,a,p',
    256,
    18,
  ],
  [
    'iOS 18.3',
    't13d2014h2_a09f3c656075_e42f34c56612',
    '2:0;3:100;4:2097152;8:1;9:1|10420225|0|m,s,a,p',
    256,
    18,
  ],
  [
    'macOS 15.5',
    't13d2014h2_a09f3c656075_e42f34c56612',
    '2:0;3:100;4:2097152;9:1|10420225|0|m,s,a,p',
    256,
    18,
  ],
  [
    'Safari 26 on macOS 15',
    't13d2014h2_a09f3c656075_e42f34c56612',
    '2:0;3:100;4:2097152;9:1|10420225|0|m,s,a,p',
    256,
    26,
  ],
  ['macOS 26', 't13d2013h2_a09f3c656075_7f0f34a4126d', '2:0;3:100;4:2097152;9:1|10420225|0|m,s,a,p', 0, 26],
] as const

function ofApple([, ja4, http2, pageWeight, safari]: (typeof APPLE)[number]): Request {
  const isLate = pageWeight === 0
  const traits = APPLE_TRAITS | (isLate ? TRAIT.postQuantum : 0)
  return version(print(SAFARI, { ja4: ja4 as Ja4, http2, pageWeight, traits: traits as HelloTraits }), safari)
}

test('Safari as it was published for each of Apple’s systems', async () => {
  for (const system of APPLE) {
    const found = marks(ofApple(system))
    assert.deepEqual(disagreements(ofApple(system)), [], system[0])
    assert.ok(found.includes('http2-agrees') && found.includes('stack-agrees'), system[0])
  }
})

test('a page without the stream priority that its system sends, or with one where it sends none', async () => {
  for (const system of APPLE) {
    const [name, , , pageWeight, safari] = system
    const changed = print(ofApple(system), { pageWeight: pageWeight === 0 ? 256 : 0 })
    const isDoubtful = safari === 26 && pageWeight !== 0
    assert.deepEqual(disagreements(changed), [isDoubtful ? 'http2-unlike' : 'http2-disagrees'], name)
    assert.deepEqual(disagreements(print(changed, { pageWeight: null })), [], name)
    assert.deepEqual(disagreements(print(changed, { traits: null })), [], name)
  }
})

test('settings that Apple’s network stack never sends', async () => {
  for (const http2 of [
    '1:4096;4:2097152|10485760|0|m,s,p,a',
    '2:0;4:2097152;5:16384;6:16384|10420225|0|m,s,a,p',
  ])
    assert.deepEqual(disagreements(print(SAFARI, { http2 })), ['http2-disagrees'])
  assert.deepEqual(disagreements(print(SAFARI, { http2: '2:0;4:16;5:16384|10420225|0|m,s,a,p' })), [
    'http2-unlike',
  ])
})

const NEWER: readonly (readonly [what: string, claimed: Request, isNewer: boolean])[] = [
  ['trust anchors in Chromium 151', as(CHROMIUM, 151, TRAIT.trustAnchors), true],
  ['trust anchors in Chromium 152', as(CHROMIUM, 152, TRAIT.trustAnchors), false],
  ['ALPS under its new number in Chromium 125', as(CHROMIUM, 125, TRAIT.newAlps), true],
  ['ALPS under its new number in Chromium 126', as(CHROMIUM, 126, TRAIT.newAlps), false],
  ['ML-KEM in Chromium 127', as(CHROMIUM, 127, TRAIT.mlKem), true],
  ['ML-KEM in Chromium 128, behind a flag', as(CHROMIUM, 128, TRAIT.mlKem), false],
  ['ML-KEM in Firefox 127', as(FIREFOX, 127, TRAIT.mlKem), true],
  ['ML-KEM in Firefox 128, by a setting', as(FIREFOX, 128, TRAIT.mlKem), false],
  ['ML-KEM in Safari 18', as(SAFARI, 18, TRAIT.mlKem), true],
  ['ML-KEM in Safari 26', as(SAFARI, 26, TRAIT.mlKem), false],
  ['zstd in Safari 18', encodings(as(SAFARI, 18, 0), 'gzip, deflate, br, zstd'), true],
  ['zstd in Safari 26', encodings(as(SAFARI, 26, 0), 'gzip, deflate, br, zstd'), false],
  ['zstd in Firefox that states 115', encodings(as(FIREFOX, 115, 0), 'gzip, deflate, br, zstd'), false],
  ['zstd in Firefox 114', encodings(as(FIREFOX, 114, 0), 'gzip, deflate, br, zstd'), true],
]

for (const [what, { print, head }, isNewer] of NEWER) {
  test(`newer than claimed: ${what}`, async () => {
    const kinds = evidenceOf(KNOWLEDGE, { print: { connection: print, ja4h: null }, head, conduct: null })
    assert.equal(kinds.includes('newer-than-claimed'), isNewer, kinds.join(' '))
  })
}

test('Internet Explorer never had TLS 1.3, but the mode of Edge has', async () => {
  const isNewer = (userAgent: string, ja4: string) =>
    marks(print(withHeader(CHROMIUM, 'user-agent', userAgent), { ja4: ja4 as Ja4 })).includes(
      'newer-than-claimed',
    )
  const [modern, old] = ['t13d3112h1_e8f1e7e78f70_6bebaf5329ac', 't12d3112h1_e8f1e7e78f70_6bebaf5329ac']
  const [six, mode] = [
    'Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)',
    'Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 10.0; Trident/7.0)',
  ]
  assert.deepEqual([isNewer(six, modern), isNewer(six, old), isNewer(mode, modern)], [true, false, false])
})

test('accept-encoding is held to the version and to its spelling', async () => {
  const odd = (request: Request) => disagreements(request).includes('encoding-disagrees')
  assert.equal(odd(encodings(CHROMIUM, 'gzip, deflate, br')), true)
  assert.equal(odd(encodings(CHROMIUM, 'zstd,gzip,deflate,br')), true)
  assert.equal(odd(encodings(CHROMIUM, 'gzip, deflate, br, zstd, dcb, dcz')), false)
  assert.equal(odd(encodings(CHROMIUM, 'identity;q=1, *;q=0')), false)
  assert.equal(odd(encodings(as(CHROMIUM, 137, 0), 'gzip, deflate, br')), false, 'a policy could turn it off')
  assert.equal(odd(encodings(SAFARI, 'gzip, deflate, br')), false)
})

/** With another version, and of the newer traits only these. */
function as(request: Request, claimed: number, traits: number): Request {
  const old = request.print.traits! & ~(TRAIT.newAlps | TRAIT.mlKem | TRAIT.trustAnchors)
  return print(version(request, claimed), { traits: (old | traits) as HelloTraits })
}

function encodings(request: Request, value: string): Request {
  return withHeader(request, 'accept-encoding', value)
}

test('a missing post-quantum group is a mark if the hello differs otherwise too', async () => {
  const unknown = { ja4: 't13d0303h2_000000000000_000000000000' as Ja4, stable: null }
  assert.deepEqual(disagreements(print(lacking(CHROMIUM, TRAIT.postQuantum), unknown)), ['version-disagrees'])
  const both = lacking(lacking(CHROMIUM, TRAIT.postQuantum), TRAIT.alps)
  assert.deepEqual(disagreements(both), ['version-disagrees'])
})

test('HTTP/3 is not held to what TCP and HTTP/1 would show', async () => {
  const ja4 = 'q13d0312h3_55b375c5d22e_000000000000' as Ja4
  const over = print(CHROMIUM, { ja4, stable: null, http2: null, traits: 0 as HelloTraits })
  const found = marks({ ...over, head: { ...over.head, version: '30' } })
  assert.deepEqual(
    found.filter((kind) => DISAGREEMENTS.has(kind) || kind === 'stack-unlike'),
    [],
  )
  assert.ok(found.includes('stack-unknown'))
})

test('headers that a visitor’s settings add do not change the order, nor do unplaced ones', async () => {
  const found = (name: string) =>
    marks(withHeader(CHROMIUM, name, '1', 'last')).filter((kind) => kind.startsWith('header-order'))
  for (const name of ['dnt', 'sec-gpc', 'save-data', 'x-of-an-extension'])
    assert.deepEqual(found(name), ['header-order-agrees'], name)
  for (const name of ['te', 'sec-purpose']) assert.deepEqual(found(name), [], name)
})

test('a hello of a library denies a browser', async () => {
  const curl = KNOWLEDGE.list.find(({ id }) => id === 'curl')!
  const ja4 = curl.signatures.find(({ type }) => type === 'ja4') as { value: string }
  assert.ok(
    disagreements(print(CHROMIUM, { ja4: ja4.value as Ja4, stable: null })).includes('stack-disagrees'),
  )
  const firefox = print(CHROMIUM, { ja4: knownJa4('gecko'), stable: null })
  assert.ok(disagreements(firefox).includes('stack-disagrees'), 'and so does that of another browser')
})

test('HTTP/1 where HTTP/2 is not offered, and names in lower case', async () => {
  const ja4 = 't13d0303h1_000000000000_000000000000' as Ja4
  const traits = (CHROMIUM.print.traits! & ~TRAIT.alps) as HelloTraits
  const titled = http1(CHROMIUM, (name) => name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase()))
  assert.deepEqual(disagreements(print(titled, { ja4, traits, stable: null })), ['http1-only'])
  assert.deepEqual(disagreements(titled), [], 'it may be offered, and not taken')
  const lower = http1(CHROMIUM, (name) => name.toLowerCase())
  assert.deepEqual(disagreements(lower), ['header-case-odd'])
})

/** As browsers of these versions have sent it, each by its release. */
const BRANDS: readonly (readonly [version: number, brand: string])[] = [
  [110, '"Not A(Brand";v="24"'],
  [111, '"Not(A:Brand";v="8"'],
  [112, '"Not:A-Brand";v="99"'],
  [113, '"Not-A.Brand";v="24"'],
  [114, '"Not.A/Brand";v="8"'],
  [115, '"Not/A)Brand";v="99"'],
  [116, '"Not)A;Brand";v="24"'],
  [117, '"Not;A=Brand";v="8"'],
  [118, '"Not=A?Brand";v="99"'],
  [119, '"Not?A_Brand";v="24"'],
  [120, '"Not_A Brand";v="8"'],
  [121, '"Not A(Brand";v="99"'],
  [124, '"Not-A.Brand";v="99"'],
  [131, '"Not_A Brand";v="24"'],
  [134, '"Not:A-Brand";v="24"'],
  [156, '"Not:A-Brand";v="8"'],
]

test('the placeholder brand is that of the version', async () => {
  for (const [of, brand] of BRANDS) assert.ok(!isBrandOdd(of, brand), `${of}: ${brand}`)
  const all = [...' (:-./);=?_']
    .flatMap((first) => [...' (:-./);=?_'].map((second) => `Not${first}A${second}Brand`))
    .flatMap((name) => ['8', '99', '24'].map((number) => `"${name}";v="${number}"`))
  for (let of = 110; of <= 157; of++) {
    const right = all.filter((brand) => !isBrandOdd(of, brand))
    assert.equal(right.length, 1, `${of}: ${right}`)
  }
})

test('what versions before and after do for a brand is not held against them', async () => {
  for (const each of [90, 109, 158, 200])
    for (const brand of ['" Not A;Brand";v="99"', '"Not?A_Brand";v="1"'])
      assert.ok(!isBrandOdd(each, brand), `${each}: ${brand}`)
  assert.ok(isBrandOdd(156, '" Not A;Brand";v="99"'))
  assert.ok(isBrandOdd(156, '"Chromium";v="156"'), 'none at all')
})

test('order and company of brands are free', async () => {
  for (const brands of [
    '"Chromium";v="131", "Google Chrome";v="131", "Not_A Brand";v="24"',
    '"Microsoft Edge";v="131", "Chromium";v="131", "Not_A Brand";v="24"',
    '"Not_A Brand";v="24", "Chromium";v="131", "Opera";v="116"',
  ])
    assert.ok(
      !marks(withHeader(version(CHROMIUM, 131), 'sec-ch-ua', brands)).includes('client-hints-disagree'),
    )
})

const OFFERING_HTTP1: Partial<ConnectionPrint> = {
  ja4: 't13d1516h1_8daaf6152771_000000000000' as Ja4,
  stable: null,
  http2: null,
  traits: (CHROMIUM.print.traits! & ~TRAIT.alps) as HelloTraits,
}
const CHROME = header(CHROMIUM, 'user-agent')

/** What browsers send otherwise than a page over TLS. */
const LEFT_OUT: readonly (readonly [what: string, request: Request])[] = [
  [
    'a WebSocket handshake of a Chromium',
    {
      print: { ...CHROMIUM.print, ...OFFERING_HTTP1 },
      head: page('11', [
        ...['Host', 'a.test', 'Connection', 'Upgrade', 'Pragma', 'no-cache', 'Cache-Control', 'no-cache'],
        ...['User-Agent', CHROME, 'Upgrade', 'websocket', 'Origin', 'https://a.test'],
        ...['Sec-WebSocket-Version', '13', 'Accept-Encoding', 'gzip, deflate, br, zstd'],
        ...[
          'Accept-Language',
          'en',
          'Sec-WebSocket-Key',
          'AAAA',
          'Sec-WebSocket-Extensions',
          'permessage-deflate',
        ],
      ]),
    },
  ],
  [
    'a WebSocket handshake of a Firefox',
    {
      print: { ...FIREFOX.print, ja4: 't13d1516h1_000000000000_000000000000' as Ja4, http2: null },
      head: page('11', [
        ...['Host', 'a.test', 'User-Agent', header(FIREFOX, 'user-agent'), 'Accept', '*/*'],
        ...['Accept-Language', 'en-US,en;q=0.5', 'Accept-Encoding', 'gzip, deflate, br, zstd'],
        ...['Sec-WebSocket-Version', '13', 'Origin', 'https://a.test', 'Sec-WebSocket-Key', 'AAAA'],
        ...['Connection', 'keep-alive, Upgrade', 'Sec-Fetch-Dest', 'empty', 'Sec-Fetch-Mode', 'websocket'],
        ...['Sec-Fetch-Site', 'same-origin', 'Pragma', 'no-cache', 'Upgrade', 'websocket'],
      ]),
    },
  ],
  [
    'a CORS preflight of a Chromium',
    {
      print: CHROMIUM.print,
      head: {
        ...page('20', [
          ...['accept', '*/*', 'access-control-request-method', 'PUT', 'origin', 'https://b.test'],
          ...['user-agent', CHROME, 'sec-fetch-mode', 'cors', 'sec-fetch-site', 'cross-site'],
          ...[
            'sec-fetch-dest',
            'empty',
            'referer',
            'https://b.test/',
            'accept-encoding',
            'gzip, deflate, br, zstd',
          ],
          ...['accept-language', 'en', 'priority', 'u=1, i'],
        ]),
        method: 'OPTIONS',
      },
    },
  ],
  [
    'a page of a Chromium over plain HTTP',
    {
      print: { ...CHROMIUM.print, ...noHello('not-tls'), http2: null },
      head: page('11', [
        ...['Host', 'a.test', 'Connection', 'keep-alive', 'Upgrade-Insecure-Requests', '1'],
        ...['User-Agent', CHROME, 'Accept', 'text/html,*/*;q=0.8', 'Accept-Encoding', 'gzip, deflate'],
        ...['Accept-Language', 'en-US,en;q=0.9'],
      ]),
    },
  ],
  [
    'a page of a Firefox over plain HTTP',
    {
      print: { ...FIREFOX.print, ...noHello('not-tls'), http2: null },
      head: page('11', [
        ...['Host', 'a.test', 'User-Agent', header(FIREFOX, 'user-agent'), 'Accept', 'text/html,*/*;q=0.8'],
        ...['Accept-Language', 'en', 'Accept-Encoding', 'gzip, deflate', 'Connection', 'keep-alive'],
        ...['Upgrade-Insecure-Requests', '1'],
      ]),
    },
  ],
  [
    'QtWebEngine, which has neither hints nor the TLS of its version',
    {
      print: {
        ...CHROMIUM.print,
        ...{ ja4: 't13d1515h2_8daaf6152771_000000000000' as Ja4, stable: null },
        traits: (TRAIT.greaseCiphers | TRAIT.compressCertificate) as HelloTraits,
        http2: '1:65536;3:1000;4:6291456;6:262144|15663105|0|m,a,s,p',
      },
      head: page('20', [
        'upgrade-insecure-requests',
        '1',
        'user-agent',
        'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) QtWebEngine/6.8.2 Chrome/134.0.6998.208 Safari/537.36',
        ...['accept', 'text/html,*/*;q=0.8', 'sec-fetch-site', 'none', 'sec-fetch-mode', 'navigate'],
        ...['sec-fetch-user', '?1', 'sec-fetch-dest', 'document', 'accept-encoding', 'gzip, deflate, br'],
        ...['accept-language', 'en'],
      ]),
    },
  ],
  [
    'WebKitGTK, which has the TLS of its system and sends no sec-fetch headers',
    {
      print: {
        ...SAFARI.print,
        ja4: 't13d2911h2_000000000000_000000000000' as Ja4,
        traits: TRAIT.extendedMasterSecret as HelloTraits,
        http2: '2:0;4:65535|00|0|m,a,s,p',
      },
      head: page('20', [
        'user-agent',
        'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
        ...['accept', 'text/html,*/*;q=0.8', 'accept-encoding', 'gzip, deflate', 'accept-language', 'en'],
      ]),
    },
  ],
  [
    'a WebView of Android, whose application adds a header',
    {
      print: { ...CHROMIUM.print, ja4: 't13d1599h2_8daaf6152771_000000000000' as Ja4, stable: null },
      head: page('20', [
        ...['sec-ch-ua', '"Not:A-Brand";v="8", "Chromium";v="156", "Android WebView";v="156"'],
        ...['sec-ch-ua-mobile', '?1', 'sec-ch-ua-platform', '"Android"', 'upgrade-insecure-requests', '1'],
        'user-agent',
        'Mozilla/5.0 (Linux; Android 16; K; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/156.0.0.0 Mobile Safari/537.36',
        ...['accept', 'text/html,*/*;q=0.8', 'x-requested-with', 'com.example.app', 'sec-fetch-site', 'none'],
        ...['sec-fetch-mode', 'navigate', 'sec-fetch-user', '?1', 'sec-fetch-dest', 'document'],
        ...['accept-encoding', 'gzip, deflate, br, zstd', 'accept-language', 'en'],
      ]),
    },
  ],
]

for (const [what, request] of LEFT_OUT) {
  test(`not held to what it does not send: ${what}`, async () => {
    assert.ok(marks(request).includes('names-browser'))
    assert.deepEqual(disagreements(request), [])
  })
}

test('a browser of which little is known is held to nothing', async () => {
  const plain = withHeader(CHROMIUM, 'user-agent', 'NetSurf/3.10 (Linux)')
  const found = marks(without(plain, 'sec-ch-ua', 'accept-encoding', 'priority', 'sec-fetch-dest'))
  assert.ok(found.includes('names-plain-browser'))
  assert.deepEqual(
    found.filter((kind) => DISAGREEMENTS.has(kind)),
    [],
  )
})

test('no request of a recorded person’s browser has a hard disagreement', async () => {
  assertNoneDenied(HUMAN)
})

test('nor has one of the shared recordings', { skip: !isThere && `${SHARED} is not there` }, async () => {
  const rows = await humanRows(SHARED)
  assert.ok(new Set(rows.map(({ client }) => client)).size >= 6)
  assertNoneDenied(rows)
})

function assertNoneDenied(rows: readonly CorpusRow[]): void {
  let count = 0
  for (const { id, print: of, requests } of rows) {
    for (const { head } of requests) {
      const hard = disagreements({ print: of, head }).filter((kind) => !SOFT_DISAGREEMENTS.has(kind))
      assert.deepEqual(hard, [], `${id}: ${head.method} ${head.target}`)
      count++
    }
  }
  assert.ok(count >= 40, `${count} requests`)
}

async function humanRows(path: string): Promise<readonly CorpusRow[]> {
  const rows: CorpusRow[] = []
  const found = readCorpus(createReadStream(path), (number, fault) => {
    throw new Error(`${path}:${number}: ${fault.message}`)
  })
  for await (const { row } of found) if (row.label === 'human-browser') rows.push(row)
  return rows
}

function pageOf(rows: readonly CorpusRow[], client: string): Request {
  const row = rows.find((each) => each.client === client && each.requests.length > 0)!
  return { print: row.print, head: row.requests[0]!.head }
}

function marks({ print: of, head }: Request): readonly EvidenceKind[] {
  return evidenceOf(KNOWLEDGE, { print: { connection: of, ja4h: null }, head, conduct: null })
}

function disagreements(request: Request): readonly EvidenceKind[] {
  return marks(request).filter((kind) => DISAGREEMENTS.has(kind))
}

function differences(before: readonly string[], after: readonly string[]): readonly string[] {
  const added = after.filter((kind) => !before.includes(kind)).map((kind) => `+${kind}`)
  const gone = before.filter((kind) => !after.includes(kind)).map((kind) => `-${kind}`)
  return [...added, ...gone].sort()
}

/** Whose page it was changed from. */
function isOf(base: Request, changed: Request): boolean {
  const product = (request: Request) =>
    /(?:Chrome|Firefox|Version)\//.exec(header(request, 'user-agent'))?.[0]
  return product(base) === product(changed)
}

function isBrandOdd(of: number, brand: string): boolean {
  const hints = `"Chromium";v="${of}", ${brand}`
  return marks(withHeader(version(CHROMIUM, of), 'sec-ch-ua', hints)).includes('client-hints-disagree')
}

function header({ head }: Request, name: string): string {
  return head.rawHeaders[head.rawHeaders.indexOf(name) + 1]!
}

function withHeader(request: Request, name: string, value: string, where: 'last' | null = null): Request {
  const { head } = request
  const at = head.rawHeaders.indexOf(name)
  if (at === -1) assert.ok(where === 'last' || name === 'content-type', name)
  // Where a Chromium has it.
  const index = name === 'content-type' ? head.rawHeaders.indexOf('user-agent') : head.rawHeaders.length
  const rawHeaders =
    at === -1 ? head.rawHeaders.toSpliced(index, 0, name, value) : head.rawHeaders.with(at + 1, value)
  return { ...request, head: { ...head, rawHeaders } }
}

function without(request: Request, ...names: readonly string[]): Request {
  const { head } = request
  const rawHeaders = pairs(head).filter(([name]) => !names.includes(name))
  assert.equal(rawHeaders.length, pairs(head).length - names.length)
  return { ...request, head: { ...head, rawHeaders: rawHeaders.flat() } }
}

/** The same headers, the User-Agent last. */
function reordered(request: Request): Request {
  const { head } = request
  const rest = pairs(head).filter(([name]) => name !== 'user-agent')
  const rawHeaders = [...rest.flat(), 'user-agent', header(request, 'user-agent')]
  return { ...request, head: { ...head, rawHeaders } }
}

function http1(request: Request, named: (name: string) => string): Request {
  const rest = pairs(request.head).filter(([name]) => !name.startsWith(':') && name !== 'priority')
  const all = [['host', 'a.test'], ['connection', 'keep-alive'], ...rest] as const
  const rawHeaders = all.flatMap(([name, value]) => [named(name), value])
  return { print: { ...request.print, http2: null }, head: page('11', rawHeaders) }
}

function version(request: Request, to: number): Request {
  const said = header(request, 'user-agent').replaceAll(/((?:Chrome|Firefox|Version|rv:)\/?)\d+/g, `$1${to}`)
  return withHeader(request, 'user-agent', said)
}

function method(request: Request, to: string): Request {
  return { ...request, head: { ...request.head, method: to } }
}

function print(request: Request, change: Partial<ConnectionPrint>): Request {
  return { ...request, print: { ...request.print, ...change } }
}

function lacking(request: Request, trait: number): Request {
  assert.ok(hasTraits(request.print.traits!, trait))
  return print(request, { traits: (request.print.traits! & ~trait) as HelloTraits })
}

function having(request: Request, trait: number): Request {
  return print(request, { traits: (request.print.traits! | trait) as HelloTraits })
}

function noHello(why: 'not-tls' | 'malformed'): Partial<ConnectionPrint> {
  return { ja4: null, stable: null, traits: null, noHello: why, ja4Source: null }
}

function part({ print: { ja4 } }: Request, index: number): string {
  return ja4!.split('_')[index]!
}

/** That its hello is known, and whose it is: gone where it is not known any more. */
function stackKinds(request: Request): readonly string[] {
  return marks(request)
    .filter((kind) => ['stack-of-browsers', 'stack-of-libraries', 'stack-shared'].includes(kind))
    .map((kind) => `-${kind}`)
}

function knownJa4(engine: Engine): Ja4 {
  const known = KNOWLEDGE.list.find((software) => software.kind === 'browser' && software.engine === engine)!
  const found = known.signatures.find(
    (signature) => signature.type === 'ja4' && !signature.value.includes('*'),
  )
  return (found as { value: string }).value as Ja4
}

function page(of: RequestHead['version'], rawHeaders: readonly string[]): RequestHead {
  return { method: 'GET', target: '/', version: of, rawHeaders }
}

function pairs({ rawHeaders }: RequestHead): readonly (readonly [name: string, value: string])[] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, i) => [rawHeaders[2 * i]!, rawHeaders[2 * i + 1]!])
}

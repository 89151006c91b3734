import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { alpnMark, ja4, ja4Forms, twoDigits, versionMark } from '../../src/fingerprint/ja4.ts'
import { type ClientHello, parseClientHello, parseDtlsClientHello } from '../../src/wire/client-hello.ts'
import { BUDGET, greaseValues, helloPlans } from '../vectors/arbitraries.ts'
import { ja4Of } from '../vectors/derive.ts'
import { clientHello, extension, type HelloPlan, type Transport } from '../vectors/hello-builder.ts'

const transports = fc.constantFrom<Transport>('tcp', 'quic', 'dtls')

/** JA4.md in the plainest words, over strings. */
function rawForms(hello: ClientHello, transport: Transport): { ja4_r: string; ja4_ro: string } {
  const hex = (value: number) => value.toString(16).padStart(4, '0')
  const known = (values: readonly number[]) => values.map(hex).filter((value) => !/^(.a)\1$/.test(value))
  const ciphers = known(hello.ciphers)
  const extensions = known(hello.extensions)
  const algorithms = known(hello.signatureAlgorithms)
  const versions = known(hello.supportedVersions ?? [hello.legacyVersion]).toSorted()
  const dtls = versions.filter((version) => version.startsWith('fe'))
  const newest =
    transport === 'dtls' && dtls.length > 0 && versions.at(-1)! < 'ff' ? dtls[0] : versions.at(-1)
  const name = Buffer.from(hello.alpn[0] ?? '')
  const isText = /^[0-9A-Za-z](.*[0-9A-Za-z])?$/s.test(name.toString('latin1'))
  const spelt = name.length === 0 ? '00' : name.toString(isText ? 'latin1' : 'hex')

  const count = (list: readonly string[]) => `${Math.min(list.length, 99)}`.padStart(2, '0')
  const a =
    { tcp: 't', quic: 'q', dtls: 'd' }[transport] +
    (VERSIONS[newest ?? ''] ?? '00') +
    (extensions.includes('0000') ? 'd' : 'i') +
    `${count(ciphers)}${count(extensions)}${spelt[0]}${spelt.at(-1)}`
  const tail = algorithms.length === 0 ? '' : `_${algorithms}`
  const hashed = extensions.filter((type) => type !== '0000' && type !== '0010')
  return {
    ja4_r: `${a}_${ciphers.toSorted()}_${hashed.toSorted()}${tail}`,
    ja4_ro: `${a}_${ciphers}_${extensions}${tail}`,
  }
}

const VERSIONS: Readonly<Record<string, string>> = {
  ...{ '0304': '13', '0303': '12', '0302': '11', '0301': '10', '0300': 's3', '0002': 's2' },
  ...{ feff: 'd1', fefd: 'd2', fefc: 'd3' },
}

test('any hello has the fingerprint that the specification says', async () => {
  const cases = fc.property(helloPlans, transports, (plan, transport) => {
    const hello = helloOf(plan, transport)
    const raw = rawForms(hello, transport)
    const expected = { ja4: ja4Of(raw.ja4_r), ja4_r: raw.ja4_r, ja4_o: ja4Of(raw.ja4_ro), ja4_ro: raw.ja4_ro }
    assert.deepEqual(ja4Forms(hello, transport), expected)
    assert.equal(ja4(hello, transport), expected.ja4)
  })
  fc.assert(cases, BUDGET)
})

test('every 16-bit version', async () => {
  for (let version = 0; version <= 0xffff; version++) {
    assert.equal(versionMark(version), VERSIONS[version.toString(16).padStart(4, '0')] ?? '00')
  }
})

test('every protocol name of one or two bytes, and those with others between', async () => {
  const isText = (byte: number) => /^[0-9A-Za-z]$/.test(String.fromCharCode(byte))
  for (let first = 0; first < 256; first++) {
    const single = Buffer.of(first)
    const doubled = isText(first) ? single.toString().repeat(2) : single.toString('hex')
    assert.equal(alpnMark(single), doubled)
    for (let last = 0; last < 256; last++) {
      const name = Buffer.of(first, last)
      const spelt =
        isText(first) && isText(last) ? name.toString() : name.toString('hex').replace(/(.)..(.)/, '$1$2')
      assert.equal(alpnMark(name), spelt, name.toString('hex'))
      if (last % 16 === first % 16) assert.equal(alpnMark(Buffer.of(first, 0x2d, 0xff, last)), spelt)
    }
  }
  assert.equal(alpnMark(Buffer.alloc(0)), '00')
  assert.equal(alpnMark(undefined), '00')
})

test('counts have two digits, whatever they are', async () => {
  for (const [count, digits] of [
    [0, '00'],
    [9, '09'],
    [10, '10'],
    [99, '99'],
    [100, '99'],
    [1000, '99'],
  ] as const) {
    assert.equal(twoDigits(count), digits)
  }
})

test('the order of extensions shows in the original order alone, as does that of ciphers', async () => {
  const shuffled = helloPlans.chain((plan) => {
    // The first of two known ones speaks, so each may be there only once.
    const extensions = [...new Map((plan.extensions ?? []).map((sent) => [sent.type, sent])).values()]
    const whole = (list: readonly unknown[]) => ({ minLength: list.length, maxLength: list.length })
    return fc.record({
      plan: fc.constant({ ...plan, extensions }),
      extensions: fc.shuffledSubarray(extensions, whole(extensions)),
      ciphers: fc.shuffledSubarray([...plan.ciphers!], whole(plan.ciphers!)),
    })
  })
  const cases = fc.property(shuffled, ({ plan, extensions, ciphers }) => {
    const sent = formsOf(plan)
    const other = formsOf({ ...plan, extensions, ciphers })
    assert.deepEqual([other.ja4, other.ja4_r], [sent.ja4, sent.ja4_r])
    const isSame = other.ja4_ro === sent.ja4_ro
    assert.equal(other.ja4_o === sent.ja4_o, isSame)
  })
  fc.assert(cases, BUDGET)

  const one = formsOf({ ciphers: [0x1301, 0x1302], extensions: [extension(0x0017), extension(0xff01)] })
  const two = formsOf({ ciphers: [0x1302, 0x1301], extensions: [extension(0xff01), extension(0x0017)] })
  assert.notEqual(one.ja4_o, two.ja4_o)
})

test('GREASE put in anywhere changes nothing', async () => {
  const places = fc.array(fc.tuple(fc.nat(1000), greaseValues), { minLength: 1, maxLength: 6 })
  const cases = fc.property(helloPlans, places, places, (plan, inCiphers, inExtensions) => {
    const ciphers = [...plan.ciphers!]
    for (const [place, value] of inCiphers) ciphers.splice(place % (ciphers.length + 1), 0, value)
    const extensions = [...(plan.extensions ?? [])]
    for (const [place, value] of inExtensions) {
      extensions.splice(place % (extensions.length + 1), 0, extension(value, '00'))
    }
    assert.deepEqual(formsOf({ ...plan, ciphers, extensions }), formsOf(plan))
  })
  fc.assert(cases, BUDGET)
})

test('GREASE among versions and algorithms changes nothing', async () => {
  const places = fc.array(fc.tuple(fc.nat(1000), greaseValues), { minLength: 1, maxLength: 6 })
  const lists = fc.array(fc.constantFrom(0x0304, 0x0303, 0x0403, 0x0804), { minLength: 1 })
  const cases = fc.property(lists, lists, places, (versions, algorithms, grease) => {
    const greased = (list: readonly number[]) => {
      const longer = [...list]
      for (const [place, value] of grease) longer.splice(place % (longer.length + 1), 0, value)
      return longer
    }
    const plain = { ...EMPTY, supportedVersions: versions, signatureAlgorithms: algorithms }
    const other = { ...EMPTY, supportedVersions: greased(versions), signatureAlgorithms: greased(algorithms) }
    assert.deepEqual(ja4Forms(other, 'tcp'), ja4Forms(plain, 'tcp'))
  })
  fc.assert(cases, BUDGET)
})

const EMPTY: ClientHello = helloOf({})

function formsOf(plan: HelloPlan) {
  return ja4Forms(helloOf(plan), 'tcp')
}

function helloOf(plan: HelloPlan, transport: Transport = 'tcp'): ClientHello {
  const message = clientHello(plan, transport)
  const read = transport === 'dtls' ? parseDtlsClientHello(message) : parseClientHello(message)
  assert(read.kind === 'client-hello', JSON.stringify(read))
  return read.hello
}

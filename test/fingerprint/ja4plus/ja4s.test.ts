import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { ja4s, ja4sRaw } from '../../../src/fingerprint/ja4plus/ja4s.ts'
import { parseServerHello, type ServerHello } from '../../../src/wire/server-hello.ts'
import { BUDGET, serverHelloPlans } from '../../vectors/arbitraries.ts'
import { ja4sOf } from '../../vectors/derive.ts'
import { extension, serverHello, type ServerHelloPlan, type Transport } from '../../vectors/hello-builder.ts'

/** The rules in the plainest words, over strings; ALPN is only looked at where it is `h2`. */
function raw(hello: ServerHello, transport: Transport): string {
  const hex = (value: number) => value.toString(16).padStart(4, '0')
  const extensions = hello.extensions.map(hex).filter((type) => !/^(.a)\1$/.test(type))
  const version = VERSIONS[hex(hello.selectedVersion ?? hello.legacyVersion)] ?? '00'
  const count = `${Math.min(extensions.length, 99)}`.padStart(2, '0')
  const a = { tcp: 't', quic: 'q', dtls: 'd' }[transport] + version + count
  return `${a}${spelt(hello.alpn)}_${hex(hello.cipher)}_${extensions}`
}

function spelt(name: Uint8Array | null): string {
  const bytes = Buffer.from(name ?? '')
  const text = /^[0-9A-Za-z](.*[0-9A-Za-z])?$/s.test(bytes.toString('latin1'))
    ? bytes.toString('latin1')
    : bytes.toString('hex')
  return bytes.length === 0 ? '00' : `${text[0]}${text.at(-1)}`
}

const VERSIONS: Readonly<Record<string, string>> = {
  ...{ '0304': '13', '0303': '12', '0302': '11', '0301': '10', '0300': 's3', '0002': 's2' },
  ...{ feff: 'd1', fefd: 'd2', fefc: 'd3' },
}

test('any answer has the fingerprint that the rules say', async () => {
  const transports = fc.constantFrom<Transport>('tcp', 'quic', 'dtls')
  const cases = fc.property(serverHelloPlans, transports, (plan, transport) => {
    const hello = helloOf(plan)
    assert.equal(ja4sRaw(hello, transport), raw(hello, transport))
    assert.equal(ja4s(hello, transport), ja4sOf(raw(hello, transport)))
  })
  fc.assert(cases, BUDGET)
})

test('the order of extensions is part of it', async () => {
  const one = helloOf({ extensions: [extension(0x002b, '0304'), extension(0x0033)] })
  const two = helloOf({ extensions: [extension(0x0033), extension(0x002b, '0304')] })
  assert.notEqual(ja4s(one, 'tcp'), ja4s(two, 'tcp'))
})

function helloOf(plan: ServerHelloPlan): ServerHello {
  const read = parseServerHello(serverHello(plan))
  assert(read.kind === 'server-hello')
  return read.hello
}

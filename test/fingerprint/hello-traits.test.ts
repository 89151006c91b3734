import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import {
  type HelloTraits,
  hasTraits,
  helloTraits,
  TRAIT,
  type TraitName,
  traitNames,
} from '../../src/fingerprint/hello-traits.ts'
import { parseClientHello } from '../../src/wire/client-hello.ts'
import { HelloReader } from '../../src/wire/record.ts'
import { clientHello, extension, type HelloPlan, supportedGroups } from '../vectors/hello-builder.ts'

/** The trait, and those that it implies. */
const ALONE: readonly (readonly [name: TraitName, plan: HelloPlan, ...also: TraitName[]])[] = [
  ['greaseCiphers', { ciphers: [0xc02b, 0xdada] }],
  ['greaseExtensions', { extensions: [extension(0x0a0a)] }],
  ['greaseGroups', { extensions: [supportedGroups(0x001d, 0xfafa)] }],
  ['alps', { extensions: [extension(17513)] }],
  ['newAlps', { extensions: [extension(17613)] }, 'alps'],
  ['encryptedClientHello', { extensions: [extension(65037)] }],
  ['compressCertificate', { extensions: [extension(27)] }],
  ['mlKem', { extensions: [supportedGroups(4588)] }, 'postQuantum'],
  ['postQuantum', { extensions: [supportedGroups(0x0017, 25497)] }],
  ['postQuantum', { extensions: [supportedGroups(4587)] }],
  ['sessionTicket', { extensions: [extension(35)] }],
  ['preSharedKey', { extensions: [extension(41)] }],
  ['earlyData', { extensions: [extension(42)] }],
  ['tls13Ciphers', { ciphers: [0x1301] }],
  ['pskModes', { extensions: [extension(45)] }],
  ['padding', { extensions: [extension(21)] }],
  ['delegatedCredentials', { extensions: [extension(34)] }],
  ['recordSizeLimit', { extensions: [extension(28)] }],
  ['extendedMasterSecret', { extensions: [extension(23)] }],
  ['renegotiationInfo', { extensions: [extension(0xff01)] }],
  ['signedCertificateTimestamps', { extensions: [extension(18)] }],
  ['statusRequest', { extensions: [extension(5)] }],
  ['trustAnchors', { extensions: [extension(0xca34)] }],
]

for (const [name, plan, ...also] of ALONE) {
  test(`${name} is seen, and nothing else: ${JSON.stringify(plan)}`, async () => {
    assert.deepEqual(new Set(traitNames(traitsOf(clientHello(plan)))), new Set([name, ...also]))
  })
}

test('each trait has a bit of its own, and is tested above', async () => {
  const bits = Object.values(TRAIT)
  assert.equal(new Set(bits).size, bits.length)
  assert.ok(bits.every((bit) => bit > 0 && Number.isInteger(Math.log2(bit))))
  assert.deepEqual(new Set(ALONE.map(([name]) => name)), new Set(Object.keys(TRAIT)))
})

test('a hello that shows none of it, and what is close to it', async () => {
  const plan = {
    ciphers: [0x0a1a, 0xc02b, 0x0013],
    extensions: [extension(0xfa0a), extension(0), supportedGroups(0x001d, 0x0a1a)],
  }
  assert.deepEqual(traitNames(traitsOf(clientHello(plan))), [])
})

test('several are asked for at once', async () => {
  const traits = traitsOf(clientHello({ extensions: [extension(35), extension(23)] }))
  assert.equal(hasTraits(traits, TRAIT.sessionTicket | TRAIT.extendedMasterSecret), true)
  assert.equal(hasTraits(traits, TRAIT.sessionTicket | TRAIT.padding), false)
})

test('a recorded Chromium shows what it is known for', async () => {
  const recorded = JSON.parse(readFileSync('bench/micro/chrome-hello.json', 'utf8')) as { stream_hex: string }
  const read = new HelloReader().push(Buffer.from(recorded.stream_hex, 'hex'))
  assert(read.kind === 'message')
  assert.deepEqual(traitNames(traitsOf(read.message)), CHROMIUM)
})

function traitsOf(message: Uint8Array): HelloTraits {
  const read = parseClientHello(message)
  assert(read.kind === 'client-hello')
  return helloTraits(read.hello)
}

const CHROMIUM: readonly TraitName[] = [
  ...(['greaseCiphers', 'greaseExtensions', 'greaseGroups', 'alps', 'encryptedClientHello'] as const),
  ...(['compressCertificate', 'postQuantum', 'sessionTicket', 'extendedMasterSecret'] as const),
  ...(['renegotiationInfo', 'signedCertificateTimestamps', 'statusRequest', 'trustAnchors'] as const),
  ...(['newAlps', 'mlKem', 'pskModes', 'tls13Ciphers'] as const),
]

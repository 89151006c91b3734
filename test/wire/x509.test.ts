import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { parseCertificate } from '../../src/wire/x509.ts'
import { BUDGET } from '../vectors/arbitraries.ts'
import { certificate } from '../vectors/certificate-builder.ts'
import { readVectors } from '../vectors/vector.ts'
import { changedBytes } from './changed-bytes.ts'

const vectors = readVectors().ja4x.map(({ name, der_hex }) => ({ name, bytes: Buffer.from(der_hex, 'hex') }))

test('the OIDs of any certificate come out as they stand in it', async () => {
  const oid = fc
    .uint8Array({ minLength: 1, maxLength: 140, size: '+1' })
    .map((octets) => Buffer.from(octets).toString('hex'))
  const names = fc.array(fc.array(oid, { minLength: 1, maxLength: 3 }), { maxLength: 6 })
  const plans = fc.record({
    version: fc.constantFrom<1 | 3>(1, 3),
    issuer: names,
    subject: names,
    extensions: fc.option(fc.array(oid)) as fc.Arbitrary<string[] | null>,
    uniqueIds: fc.boolean(),
  })
  const cases = fc.property(plans, (plan) => {
    const read = parseCertificate(certificate(plan))
    assert(read.kind === 'certificate', JSON.stringify(read))
    const { issuer, subject, extensions } = read.oids
    assert.deepEqual(issuer.map(hex), plan.issuer.flat())
    assert.deepEqual(subject.map(hex), plan.subject.flat())
    assert.deepEqual(extensions.map(hex), plan.extensions ?? [])
  })
  fc.assert(cases, BUDGET)
})

test('a certificate cut at any byte is truncated, and one with a byte after it has one too many', async () => {
  for (const { name, bytes } of vectors) {
    for (let end = 0; end < bytes.length; end++) {
      const read = parseCertificate(bytes.subarray(0, end))
      assert.deepEqual(read, { kind: 'malformed', fault: 'truncated' }, `${name}, cut at ${end}`)
    }
    const longer = Buffer.concat([bytes, Buffer.of(0)])
    assert.deepEqual(parseCertificate(longer), { kind: 'malformed', fault: 'trailing-data' }, name)
  }
})

test('another element in any place of the outline is the wrong one', async () => {
  const plain = certificate({ issuer: [['550403']], subject: [['550406']], extensions: ['551d11'] })
  const places = outline(plain, 0, plain.length, [])
  assert.equal(places.length, 20)
  for (const { at, path } of places) {
    const other = Buffer.from(plain)
    other[at] = UTF8_STRING
    assert.deepEqual(parseCertificate(other), { kind: 'malformed', fault: 'wrong-tag' }, `${path} at ${at}`)
  }
})

/** The elements that have to be what they are; `path` is the place of each among its siblings, from the outside in. */
function outline(
  bytes: Buffer,
  from: number,
  to: number,
  above: readonly number[],
): { at: number; path: string }[] {
  const found: { at: number; path: string }[] = []
  for (let at = from, place = 0; at < to; place++) {
    const header = bytes[at + 1]! < 0x80 ? 2 : bytes[at + 1] === 0x81 ? 3 : 4
    const length = header === 2 ? bytes[at + 1]! : bytes.readUIntBE(at + 2, header - 2)
    const path = [...above, place]
    if (OUTLINE.test(path.join('.')) && bytes[at] !== EXTENSIONS) found.push({ at, path: path.join('.') })
    const isConstructed = (bytes[at]! & 0x20) !== 0
    if (isConstructed) found.push(...outline(bytes, at + header, at + header + length, path))
    at += header + length
  }
  return found
}

/** The certificate, its parts and theirs; and of issuer, subject and extensions everything down to the OIDs. */
const OUTLINE = /^0(\.\d)?$|^0\.0\.\d$|^0\.0\.[357](\.0){1,3}$/
const UTF8_STRING = 0x0c
/** Optional, so another element there is ignored. */
const EXTENSIONS = 0xa3

test('refuses a length that DER does not allow, also of an element that is not read', async () => {
  const plain = certificate({ uniqueIds: true })
  const id = plain.indexOf(Buffer.from('810700', 'hex'))
  for (const [what, length] of [
    ['indefinite', [0x80]],
    ['in five octets', [0x85, 0, 0, 0, 0, 2]],
    ['of four gigabytes', [0x84, 0xff, 0xff, 0xff, 0xff]],
  ] as const) {
    const other = Buffer.from(plain)
    other.set(length, id + 1)
    assert.deepEqual(parseCertificate(other), { kind: 'malformed', fault: 'truncated' }, what)
  }
})

test('an element that reaches out of the one around it is refused', async () => {
  const plain = certificate({ issuer: [['550403']], extensions: ['551d11'] })
  const rdn = plain.indexOf(Buffer.from('310a3008', 'hex'))
  const extensions = plain.indexOf(Buffer.from('a30d300b3009', 'hex'))
  assert.ok(rdn > 0 && extensions > 0)
  for (const at of [
    rdn + 1,
    rdn + 3,
    rdn + 5,
    extensions + 1,
    extensions + 3,
    extensions + 5,
    extensions + 7,
  ]) {
    const other = Buffer.from(plain)
    other[at]! += 8
    assert.equal(parseCertificate(other).kind, 'malformed', `the length at ${at}`)
  }
})

test('no bytes make it throw, however close to a certificate', async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    changedBytes(vectors.map((vector) => vector.bytes)),
  )
  const cases = fc.property(bytes, (changed) => {
    const read = parseCertificate(changed)
    assert.ok(read.kind === 'certificate' || read.fault.length > 0)
  })
  fc.assert(cases, BUDGET)
})

function hex(octets: Uint8Array): string {
  return Buffer.from(octets).toString('hex')
}

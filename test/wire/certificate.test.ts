import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { parseCertificates, parseCertificates13 } from '../../src/wire/certificate.ts'
import { BUDGET } from '../vectors/arbitraries.ts'
import { certificateBody, u24, vector8, vector16, vector24 } from '../vectors/hello-builder.ts'
import { changedBytes } from './changed-bytes.ts'

const CHAIN = [Buffer.from('leaf'), Buffer.from('intermediate'), Buffer.alloc(300, 1)]

for (const [version, parse] of [
  ['12', parseCertificates],
  ['13', parseCertificates13],
] as const) {
  test(`TLS ${version}: a chain comes out in its order`, async () => {
    assert.deepEqual(parse(certificateBody(CHAIN, version)), { kind: 'certificates', certificates: CHAIN })
    assert.deepEqual(parse(certificateBody([], version)), { kind: 'certificates', certificates: [] })
  })

  test(`TLS ${version}: an empty entry is not a certificate`, async () => {
    const body = certificateBody([Buffer.alloc(0), CHAIN[0]!, Buffer.alloc(0)], version)
    assert.deepEqual(parse(body), { kind: 'certificates', certificates: [CHAIN[0]] })
  })

  test(`TLS ${version}: cut at any byte, or with one more, it is malformed`, async () => {
    const body = certificateBody(CHAIN, version)
    for (let end = 0; end < body.length; end++) {
      assert.deepEqual(
        parse(body.subarray(0, end)),
        { kind: 'malformed', fault: 'truncated' },
        `cut at ${end}`,
      )
    }
    const longer = Buffer.concat([body, Buffer.of(0)])
    assert.deepEqual(parse(longer), { kind: 'malformed', fault: 'trailing-data' })
  })

  test(`TLS ${version}: an entry that reaches past the list is malformed`, async () => {
    const entry = Buffer.concat([u24(9), Buffer.from('leaf')])
    const body = version === '12' ? vector24(entry) : Buffer.concat([vector8(), vector24(entry), vector16()])
    assert.deepEqual(parse(body), { kind: 'malformed', fault: 'truncated' })
  })

  test(`TLS ${version}: no bytes make it throw`, async () => {
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 60 }), changedBytes([certificateBody(CHAIN, version)]))
    fc.assert(
      fc.property(bytes, (body) => {
        parse(body)
      }),
      BUDGET,
    )
  })
}

test('TLS 1.3: the context and the extensions of an entry are stepped over', async () => {
  const list = vector24(vector24(CHAIN[0]!), vector16(Buffer.alloc(9, 5)), vector24(CHAIN[1]!), vector16())
  const body = Buffer.concat([vector8(Buffer.alloc(7, 9)), list])
  assert.deepEqual(parseCertificates13(body), { kind: 'certificates', certificates: CHAIN.slice(0, 2) })
})

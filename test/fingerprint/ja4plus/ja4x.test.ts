import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'tap'
import { ja4x, ja4xRaw } from '../../../src/fingerprint/ja4plus/ja4x.ts'
import { BUDGET } from '../../vectors/arbitraries.ts'

test('each part is its OIDs in hex, in order, and zeros without any', async () => {
  // Views into something larger, as they come out of a certificate.
  const view = fc.uint8Array({ minLength: 3, maxLength: 30 }).map((bytes) => bytes.subarray(1, -1))
  const list = fc.array(view, { maxLength: 6 })
  const cases = fc.property(list, list, list, (issuer, subject, extensions) => {
    const parts = [issuer, subject, extensions].map((oids) =>
      oids.map((oid) => [...oid].map((byte) => byte.toString(16).padStart(2, '0')).join('')).join(','),
    )
    const hashes = parts.map((part) => (part === '' ? '0'.repeat(12) : sha12(part)))
    assert.equal(ja4xRaw({ issuer, subject, extensions }), parts.join('_'))
    assert.equal(ja4x({ issuer, subject, extensions }), hashes.join('_'))
  })
  fc.assert(cases, BUDGET)
})

function sha12(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}

import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseConfig } from '../../src/config/config.ts'

const BAD: readonly (readonly [license: object, message: RegExp])[] = [
  [
    { introspection: 'http://licenses.example/' },
    /license\.introspection: is a plain http:\/\/ URL of another/,
  ],
  [{ introspection: 'https://a.example/', client_id: 'us' }, /client_id: and client_secret belong together/],
  [{ client_id: 'us', client_secret: 'x' }, /license\.introspection: is missing/],
]
for (const [license, message] of BAD)
  test(`refuses payments.license ${JSON.stringify(license)}`, async () => {
    assert.throws(() => configOf({ license }), { message })
  })

test('license tokens are off without a license server, and proxies do not get its password', async () => {
  assert.equal(configOf({}).terms.license, null)
  const license = { introspection: 'https://a.example/in', client_id: 'us', client_secret: 'pass-word' }
  const { terms, licenseServer } = configOf({ license })
  assert.deepEqual(terms.license, { isForwarded: false })
  assert.ok(!JSON.stringify(terms).includes('pass-word'))
  assert.deepEqual([licenseServer!.url, licenseServer!.cacheMs], ['https://a.example/in', 60_000])
})

function configOf(payments: object) {
  const text = JSON.stringify({ proxy: { upstream: 'http://127.0.0.1:1' }, payments })
  return parseConfig({ flags: {}, env: {}, file: { name: 'gatehouse.yaml', text } }).config.payments
}

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import {
  AddressHasher,
  formOf,
  shownAddress,
  storedAddressKey,
  visitorIn,
  wantedAddresses,
} from '../../../src/plane/privacy/address-form.ts'
import {
  ClientPrivacy,
  FULL_PRIVACY,
  type PrivacySettings,
} from '../../../src/plane/privacy/client-privacy.ts'
import { isWholePath, pathPattern, pathWithoutSecrets } from '../../../src/plane/privacy/path-form.ts'
import { productsIn } from '../../../src/plane/privacy/user-agent-form.ts'
import { SECRETS_FOLLOW } from '../../../src/plane/privacy/shown-path.ts'
import { packSightings } from '../../../src/plane/sighting-batch.ts'
import { addressKey } from '../../../src/wire/address-ranges.ts'
import { seen } from '../../contract/seen.ts'

const KEY = 'a key that no other test has'
const FORMS: Readonly<Record<'network' | 'keyed_hash', PrivacySettings>> = {
  network: { ...FULL_PRIVACY, addresses: 'network', key: KEY },
  keyed_hash: { ...FULL_PRIVACY, addresses: 'keyed_hash', key: KEY },
}

const number = fc.integer({ min: 17, max: 255 })
const group = fc.integer({ min: 0x1000, max: 0xffff }).map((each) => each.toString(16))
const address = fc.oneof(
  fc.tuple(number, number, number).map((numbers) => `203.${numbers.join('.')}`),
  fc.array(group, { minLength: 5, maxLength: 5 }).map((groups) => `2001:db8:1:${groups.join(':')}`),
)
const wanted = (text: string, keys = [KEY]) =>
  wantedAddresses(
    text,
    keys.map((key) => new AddressHasher(key)),
  )!

const PATHS: readonly (readonly [path: string, stored: string, pattern: string])[] = [
  ['/', '/', '/'],
  ['/shop/shoes', '/shop/shoes', '/shop/shoes'],
  ['/orders/1234/items/7', '/orders/1234/items/7', '/orders/[id]/items/[id]'],
  ['/v1/order-98765.json', '/v1/order-98765.json', '/v1/order-[id].json'],
  ['/users/anna-smith', '/users/anna-smith', '/users/[id]'],
  ['/a/0f8fad5b-d9cb-469f-a165-70867728950e', '/a/0f8fad5b-d9cb-469f-a165-70867728950e', '/a/[id]'],
  ['/mail/anna@example.com', '/mail/anna@example.com', '/mail/[redacted]'],
  ['/reset/k3y9', '/reset/[redacted]', '/reset/[redacted]'],
  ['/reset/abcdef', '/reset/[redacted]', '/reset/[redacted]'],
  ['/auth/reset-password/Zx', '/auth/reset-password/[redacted]', '/auth/reset-password/[redacted]'],
  ['/a;jsessionid=1A2B3C', '/a;jsessionid=[redacted]', '/a;jsessionid=[redacted]'],
  ['/a;color=red', '/a;color=red', '/a;color=[redacted]'],
  ['/cb/access_token=abc', '/cb/access_token=[redacted]', '/cb/access_token=[redacted]'],
  ['/k/sk-live-51H8abcdefgh', '/k/[redacted]', '/k/[redacted]'],
  ['/j/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.c2ln', '/j/[redacted]', '/j/[redacted]'],
  ['/http://ann:hunter2@a.example/', '/http:/[redacted]/a.example/', '/http:/[redacted]/a.example/'],
]

test('paths are stored without secrets, and as patterns without ids', async () => {
  for (const [path, stored, pattern] of PATHS.slice(0, -1)) {
    assert.equal(pathWithoutSecrets(path), stored)
    assert.equal(pathPattern(path), pattern, path)
    assert.equal(isWholePath(pathWithoutSecrets(path)), path === stored)
  }
  assert.doesNotMatch(pathWithoutSecrets('/http://ann:hunter2@a.example/'), /hunter2/)
  assert.equal(isWholePath(''), false)
})

test('what follows the name of a secret is not stored, however the name is written', async () => {
  for (const name of SECRETS_FOLLOW)
    for (const written of [name, name.toUpperCase(), `${name[0]}_${name.slice(1)}`, `.${name}`]) {
      const path = `/x/${written}/k3y9`
      assert.equal(pathWithoutSecrets(path), `/x/${written}/[redacted]`)
      assert.equal(pathPattern(path).includes('k3y9'), false, path)
    }
})

test('any path keeps its form when it is stored again', async () => {
  const segment = fc.oneof(fc.string(), fc.constantFrom(...SECRETS_FOLLOW, 'users', '42', 'a;b=c', '%2e%2e'))
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 5 }), (segments) => {
      const path = `/${segments.join('/')}`
      for (const form of [pathWithoutSecrets, pathPattern]) {
        const once = form(path)
        assert.equal(form(once), once)
        assert.doesNotMatch(once, /[?#]/)
      }
    }),
    { interruptAfterTimeLimit: 2_000 },
  )
})

test('the products of a User-Agent name its programs and nothing else', async () => {
  const chrome =
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.6478.127 Safari/537.36'
  assert.equal(productsIn(chrome), 'Mozilla/5 AppleWebKit/537 Chrome/126 Safari/537')
  assert.equal(
    productsIn('Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.example/gptbot)'),
    'Mozilla/5 GPTBot/1',
  )
  assert.equal(productsIn('my-reader (ann@example.com)'), 'my-reader')
  assert.equal(productsIn('sk-live-51H8abcdefgh/1'), '')
  assert.equal(productsIn(''), '')
})

test('a stored address is a form of the address, and is found by it', async () => {
  fc.assert(
    fc.property(address, (client) => {
      for (const [form, settings] of Object.entries(FORMS)) {
        const privacy = new ClientPrivacy(settings)
        const stored = privacy.address(client)
        assert.equal(formOf(stored), form)
        assert.equal(new ClientPrivacy(settings).address(client), stored)
        const { keys, has } = wanted(client)
        const key = storedAddressKey(stored)!
        assert.ok(has(stored) && keys.some(([first, last]) => key >= first && key <= last))
        assert.ok(wanted(stored).has(stored))
        assert.equal(wanted(client, ['another key']).has(stored), form === 'network')
        assert.equal(wanted(client, ['a new key', KEY]).has(stored), true)
      }
      assert.ok(wanted(client).has(client))
    }),
    { interruptAfterTimeLimit: 2_000 },
  )
})

test('nothing that is sent has an address that is not stored in full', async () => {
  await fc.assert(
    fc.asyncProperty(address, async (client) => {
      for (const settings of Object.values(FORMS)) {
        const sighting = seen(1, { address: client, requestKind: 1, target: 7 })
        new ClientPrivacy(settings).apply(sighting)
        const text = JSON.stringify(sighting)
        // A network may be written like its first address.
        if (!sighting.address.startsWith(`${client}/`)) assert.equal(text.includes(`"${client}"`), false)
        const hex = addressKey(client)!.slice(1)
        assert.equal(text.includes(hex), false)
        assert.equal(Object.values(sighting).includes(Number.parseInt(hex, 16)), false)
        const [packed] = await packSightings([sighting], 1e6)
        assert.equal(packed!.bytes.includes(Buffer.from(hex, 'hex')), false)
      }
    }),
    { numRuns: 50, interruptAfterTimeLimit: 2_000 },
  )
})

test('campaigns know a client by the same number in both forms', async () => {
  const numbers = ['203.0.113.7', '203.0.113.8', '2001:db8::1', '2001:db8::2', '2001:db8:0:1::1'].map(
    (client) => {
      const network = seen(1, { address: client })
      new ClientPrivacy(FORMS.network).apply(network)
      const hashed = seen(1, { address: client })
      new ClientPrivacy(FORMS.keyed_hash).apply(hashed)
      assert.equal(network.visitor, visitorIn(hashed.address))
      assert.equal(hashed.visitor, null)
      return network.visitor
    },
  )
  // Two addresses of a /64 are one client.
  assert.equal(new Set(numbers).size, 4)
  assert.equal(numbers[2], numbers[3])
})

test('a network finds what it contains, and hashes only of one client', async () => {
  const { keyed_hash: settings, network } = FORMS
  const hash = (client: string) => new ClientPrivacy(settings).address(client)
  assert.equal(wanted('2001:db8::/64').has(hash('2001:db8::77')), true)
  assert.equal(wanted('2001:db8::1').has(hash('2001:db8::77')), false)
  assert.equal(wanted('203.0.113.0/24').has(hash('203.0.113.7')), false)
  assert.equal(wanted('203.0.0.0/16').has(new ClientPrivacy(network).address('203.0.113.7')), true)
  assert.equal(wanted('203.0.113.128/25').has('203.0.113.0/24'), true)
  assert.equal(wanted('203.0.114.0/24').has('203.0.113.0/24'), false)
  assert.equal(wantedAddresses('neither', []), null)
})

test('callers that see networks see the form, and no hash', async () => {
  assert.equal(shownAddress('203.0.113.7'), '203.0.113.0/24')
  assert.equal(shownAddress('203.0.113.0/24'), '203.0.113.0/24')
  assert.equal(shownAddress(new AddressHasher(KEY).hashOf('203.0.113.7')), 'hash:[redacted]')
  assert.equal(shownAddress(''), '')
})

test('paths and User-Agents can be left out, and page numbers are keyed with the paths', async () => {
  const sighting = seen(1, { path: '/a', userAgent: 'curl/8.1', target: 12, address: '203.0.113.7' })
  new ClientPrivacy({ addresses: 'full', userAgents: 'none', paths: 'none', key: KEY }).apply(sighting)
  assert.deepEqual([sighting.path, sighting.userAgent, sighting.address], ['', null, '203.0.113.7'])
  assert.ok(sighting.target !== 12 && sighting.target > 0)
})

import assert from 'node:assert/strict'
import type { LookupFunction } from 'node:net'
import { type Test, test } from 'tap'
import { rangesIn } from '../../src/identity/address/ranges-document.ts'
import { KeyDirectories } from '../../src/identity/verify/key-directories.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { type Answer, DocumentServer, TEST_CA } from './document-server.ts'
import { newSigner } from './signer.ts'

const { jwk } = newSigner('ed25519')
const PRIVATE: readonly (readonly [title: string, host: string])[] = [
  ['a loopback address', '127.0.0.1'],
  ['a loopback address as a number', '2130706433'],
  ['a loopback address of IPv6', '[::1]'],
  ['an IPv4-mapped address', '[::ffff:127.0.0.1]'],
  ['an address of NAT64', '[64:ff9b::7f00:1]'],
  ['a private address', '10.0.0.1'],
  ['a unique local address', '[fd00:ec2::254]'],
  ['a link-local address', '169.254.169.254'],
  ['a link-local address of IPv6', '[fe80::1]'],
  ['localhost', 'localhost'],
  ['a name with a private address', 'private.example.test'],
  ['a name with an IPv4-mapped address', 'mapped.example.test'],
  ['a name with a public and a private address', 'mixed.example.test'],
]

for (const [title, host] of PRIVATE) {
  test(`a card whose keys are at ${title} has no keys`, async (t) => {
    const { server, find, said } = await card(t, (place) => ({ jwks_uri: place(host) }))
    assert.deepEqual((await find())?.keys, [])
    assert.match(said(), /is not on the public internet/)
    assert.deepEqual(server.asked.map(urlOf), ['/bot'])
  })

  test(`a card whose address ranges are at ${title} has none`, async (t) => {
    const { server, find, said } = await card(t, (place) => ({
      ...{ jwks: { keys: [jwk] }, web_bot_auth: { ips_uri: place(host) } },
    }))
    const found = await find()
    assert.deepEqual([found?.keys.length, found?.ranges, found?.card?.rangesUrl !== null], [1, null, true])
    assert.match(said(), /is not on the public internet/)
    assert.deepEqual(server.asked.map(urlOf), ['/bot'])
  })
}

test('no redirect of a card or of what it names is followed', async (t) => {
  const redirect: Answer = (_, response) => response.writeHead(302, { location: '/secret' }).end()
  const members = (place: (host: string) => string) => ({ jwks_uri: place('agent.example.test') })
  const { server, find, said } = await card(t, members, true)
  server.serve('/secret', redirect)
  assert.deepEqual((await find())?.keys, [])
  assert.match(said(), /no redirect is followed/)
  assert.deepEqual(server.asked.map(urlOf), ['/bot', '/secret'])
  server.serve('/bot', redirect)
  const again = await card(t, members, true)
  again.server.serve('/bot', redirect)
  assert.deepEqual((await again.find())?.keys, [])
  assert.deepEqual(again.server.asked.map(urlOf), ['/bot'])
})

test('what a card names must be https and has no user in it', async (t) => {
  for (const place of [
    'http://agent.example.test/',
    'file:///etc/passwd',
    'https://a:b@agent.example.test/',
  ]) {
    const { server, find } = await card(t, () => ({ jwks_uri: place }))
    assert.deepEqual((await find())?.keys, [], place)
    assert.deepEqual(server.asked.map(urlOf), ['/bot'], place)
  }
})

/** A card on this machine, which may be fetched, unlike what it names. */
async function card(t: Test, members: (place: (host: string) => string) => object, isAlwaysAllowed = false) {
  const server = await DocumentServer.start(t)
  const agentId = server.url('/bot')
  let isServed = false
  server.serve('/bot', (_, response) => {
    isServed = true
    const document = {
      client_id: agentId,
      client_name: 'Bot',
      ...members((host) => server.url('/secret', host)),
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  })
  server.serveJson('/secret', { keys: [jwk], prefixes: [{ ipv4Prefix: '192.0.2.0/24' }] })
  const lines: string[] = []
  const directories = new KeyDirectories({
    ...{ mode: 'discover', agents: new Set(), rangesIn, ca: TEST_CA, lookup, nowMs: () => 1_795_000_000_000 },
    registries: { of: () => ({ registries: [], card: null }), close: () => undefined },
    log: createLogTo('debug', { write: (line) => void lines.push(line) }),
    get allowPrivate() {
      return isAlwaysAllowed || !isServed
    },
  })
  t.teardown(() => directories.close())
  const find = () => directories.find({ kind: 'keys', agentId, thumbprint: null, isListed: true })
  return { server, find, said: () => lines.join('') }
}

const lookup: LookupFunction = (name, options, callback) => {
  const addresses = (ADDRESSES[name] ?? ['127.0.0.1']).map((address) => ({
    ...{ address, family: address.includes(':') ? 6 : 4 },
  }))
  return options.all ? callback(null, addresses) : callback(null, addresses[0]!.address, addresses[0]!.family)
}
const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  'mapped.example.test': ['::ffff:127.0.0.1'],
  'mixed.example.test': ['1.1.1.1', '127.0.0.1'],
}

function urlOf({ url }: { readonly url?: string | undefined }): string | undefined {
  return url
}

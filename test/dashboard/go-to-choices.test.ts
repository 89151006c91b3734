import assert from 'node:assert/strict'
import { test } from 'tap'
import type { App } from '../../src/dashboard/api/operations.ts'
import { type GoToSources, placesFor } from '../../src/dashboard/go-to/choices.ts'

const KNOWN: GoToSources = {
  pages: [
    { title: 'Overview', href: '/dashboard' },
    { title: 'Traffic', href: '/dashboard/traffic?app=shop' },
    { title: 'Policy', href: '/dashboard/policy?app=shop' },
    { title: 'Settings', href: '/dashboard/settings' },
  ],
  topics: [
    { topic: 'policy', title: 'Policy', about: '', headings: [{ text: 'Rules on trial', anchor: 'rules' }] },
    { topic: 'proxy', title: 'The proxy', about: '', headings: [{ text: 'Policy and TLS', anchor: 'tls' }] },
  ],
  apps: [{ id: 'shop', name: 'Policy shop' } as App, { id: 'blog', name: 'blog' } as App],
  agents: [{ title: 'Policybot', href: '/dashboard/agents/policybot' }],
}

test('without a text, the pages are offered', async () => {
  assert.deepEqual(placesFor('  ', KNOWN), [{ name: 'Pages', places: KNOWN.pages }])
})

test('every kind of place is found, the best title first and the agents last', async () => {
  const found = placesFor('Policy', KNOWN)
  assert.deepEqual(
    found.map(({ name, places }) => [name, places.map(({ title }) => title)]),
    [
      ['Pages', ['Policy']],
      ['Apps', ['Policy shop']],
      ['Manual', ['Policy', 'Policy and TLS', 'Rules on trial']],
      ['Agents', ['Policybot']],
    ],
  )
  assert.equal(found[1]!.places[0]!.href, '/dashboard?app=shop')
  assert.equal(found[2]!.places[1]!.href, '/dashboard/help/proxy#tls')
})

test('all words have to be there, in the title or beside it', async () => {
  const titles = (text: string) =>
    placesFor(text, KNOWN).flatMap(({ places }) => places.map(({ href }) => href))
  assert.deepEqual(titles('trial policy'), ['/dashboard/help/policy#rules', '/dashboard/agents/policybot'])
  assert.deepEqual(titles('audit settings').slice(0, 1), ['/dashboard/settings/audit'])
  assert.deepEqual(placesFor('no such words', { ...KNOWN, agents: [] }), [])
})

test('a pasted id leads to its request and an address to its requests', async () => {
  const first = (text: string) => placesFor(text, KNOWN)[0]?.places[0]?.href
  const id = '01a209b9-5d03-7000-8002-190b89a95204'
  assert.equal(first(` X-Agent-Decision-Id: ${id.toUpperCase()}\n`), `/dashboard/traffic/${id}`)
  assert.equal(first('192.0.2.1'), '/dashboard/traffic?address=192.0.2.1')
  assert.equal(first('2001:db8::/32'), '/dashboard/traffic?address=2001%3Adb8%3A%3A%2F32')
  for (const text of ['192.0.2', '192.0.2.1/99', '1', ':', '192.0.2.1 or so'])
    assert.doesNotMatch(first(text) ?? '', /address=/, text)
})

test('a user is led to no page that they may not open', async () => {
  const pages = [{ title: 'Help', href: '/dashboard/help' }]
  const names = (text: string) =>
    placesFor(text, { ...KNOWN, pages, apps: [], agents: [] }).map(({ name }) => name)
  assert.deepEqual(names('192.0.2.1'), [])
  assert.deepEqual(names('audit'), [])
  assert.deepEqual(names('signatures'), [])
})

test('however much fits, each group is short', async () => {
  const apps = Array.from({ length: 500 }, (_, n) => ({ id: `a${n}`, name: `App ${n}` }) as App)
  const [group] = placesFor('app', { ...KNOWN, apps })
  assert.equal(group!.places.length, 6)
})

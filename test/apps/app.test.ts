import assert from 'node:assert/strict'
import { test } from 'tap'
import { AppIndex } from '../../src/apps/app-index.ts'
import {
  APP_HOSTS_MAX,
  APP_LABEL_LENGTH_MAX,
  APP_LABELS_MAX,
  APP_NAME_LENGTH_MAX,
  APPS_MAX,
  isSlug,
  parseAcceptedApps,
  parseApps,
} from '../../src/apps/app.ts'
import { DocumentFault } from '../../src/shared/problem.ts'

test('an app has defaults for everything but its id', async () => {
  assert.deepEqual(parseApps([{ id: 'shop' }]), [
    { id: 'shop', name: 'shop', team: null, hosts: [], upstream: null, labels: [], quota: null },
  ])
  const whole = {
    id: 'shop-eu',
    name: 'Shop (Europe)',
    team: 'checkout',
    hosts: ['shop.example', '*.Shop.example', '[2001:db8::1]'],
    upstream: 'eu_1.a',
    labels: ['tier 1', 'läden'],
    quota: { minute: 1, hour: 20, day: 1_000_000_000 },
  }
  assert.deepEqual(parseApps([whole]), [whole])
  assert.deepEqual(parseApps([]), [])
  const empty = { id: 'a', name: null, team: null, hosts: null, upstream: null, labels: [], quota: {} }
  assert.deepEqual(parseApps([empty]), parseApps([{ id: 'a' }]))
  assert.deepEqual(parseApps([{ id: 'a', hosts: 'a.example' }])[0]?.hosts, ['a.example'])
})

const BAD: readonly (readonly [value: unknown, ...problems: readonly string[]])[] = [
  [null, 'is empty; expected a list of apps'],
  [{ id: 'a' }, 'is a mapping; expected a list of apps'],
  [['a'], '0: is "a"; expected a mapping'],
  [[[]], '0: is a list; expected a mapping'],
  [[{}], '0: has no id'],
  [
    [{ id: 'Shop' }],
    'app "Shop": 0.id: is "Shop"; expected up to 63 letters a-z, digits and hyphens, without a hyphen at either end',
  ],
  [[{ id: 'default' }], 'app "default": 0.id: "default" is reserved; choose another id'],
  [[{ id: 'other' }], 'app "other": 0.id: "other" is reserved; choose another id'],
  [[{ id: 'a', host: 'a.example' }], 'app "a": 0.host: unknown field (did you mean "hosts"?)'],
  [
    [{ id: 'a', name: 'a\nb', team: 'A', upstream: 'a b', labels: ['', 'x\0'] }],
    'app "a": 0.name: contains a control character',
    'app "a": 0.team: is "A"; expected up to 63 letters a-z, digits and hyphens, without a hyphen at either end',
    'app "a": 0.upstream: is "a b"; expected the name of an upstream',
    'app "a": 0.labels.0: is ""; expected text',
    'app "a": 0.labels.1: contains a control character',
  ],
  [
    [{ id: 'a', hosts: ['bücher.example', 'a.example:80', 7] }],
    'app "a": 0.hosts.0: is "bücher.example"; expected a host name, *. and a host name, or an address like 192.0.2.1 or [2001:db8::1], without a port (write xn--bcher-kva.example)',
    'app "a": 0.hosts.1: is "a.example:80"; expected a host name, *. and a host name, or an address like 192.0.2.1 or [2001:db8::1], without a port',
    'app "a": 0.hosts.2: is 7; expected a host name, *. and a host name, or an address like 192.0.2.1 or [2001:db8::1], without a port',
  ],
  [[{ id: 'a' }, { id: 'b' }, { id: 'a' }], 'app "a": 2: is defined twice; each app needs a unique id'],
  [
    [
      { id: 'a', hosts: ['shop.example', '*.shop.example'] },
      { id: 'b', hosts: ['SHOP.example.', '*.Shop.Example'] },
    ],
    'app "b": 1: the host "SHOP.example." also belongs to app "a"; remove one of them',
    'app "b": 1: the host "*.Shop.Example" also belongs to app "a"; remove one of them',
  ],
  [
    [{ id: 'a', hosts: ['a.example', 'A.example'] }],
    'app "a": 0: the host "A.example" also belongs to it; remove one of them',
  ],
]

test('a bad list of apps is refused with every problem and its place', async () => {
  for (const [value, ...problems] of BAD) assert.deepEqual(problemsOf(value), problems, JSON.stringify(value))
})

test('apps have limits', async () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => `a${index}`)
  const apps = many(APPS_MAX + 1).map((id) => ({ id }))
  assert.equal(parseApps(apps.slice(1)).length, APPS_MAX)
  assert.deepEqual(problemsOf(apps), ['has 10001 apps; at most 10000'])
  const full = many(200).map((id) => ({ id, hosts: many(250).map((host) => `${host}.${id}.example`) }))
  assert.equal(parseApps(full).length, 200)
  const one = { id: 'one', hosts: ['one.example'] }
  assert.deepEqual(problemsOf([...full, one]), ['has 50001 hosts in all; at most 50000'])
  const big = {
    id: 'a'.repeat(63),
    name: 'x'.repeat(APP_NAME_LENGTH_MAX),
    hosts: many(APP_HOSTS_MAX),
    labels: ['x'.repeat(APP_LABEL_LENGTH_MAX), ...many(APP_LABELS_MAX - 1)],
  }
  assert.deepEqual(parseApps([big]), [{ ...big, team: null, upstream: null, quota: null }])
  const over = [
    { id: 'a'.repeat(64) },
    { id: 'a', name: 'x'.repeat(APP_NAME_LENGTH_MAX + 1) },
    { id: 'a', hosts: many(APP_HOSTS_MAX + 1) },
    { id: 'a', labels: many(APP_LABELS_MAX + 1) },
    { id: 'a', labels: ['x'.repeat(APP_LABEL_LENGTH_MAX + 1)] },
  ]
  for (const app of over) assert.equal(problemsOf([app]).length, 1, JSON.stringify(app).slice(0, 80))
})

test('a slug is a DNS label in lower case', async () => {
  for (const text of ['a', '0', 'a-b', 'a--b', 'x'.repeat(63)]) assert.ok(isSlug(text), text)
  for (const value of ['', '-', 'a-', '-a', 'A', 'a.b', 'a_b', 'ä', 'a\n', 'x'.repeat(64), 7, null, ['a']])
    assert.ok(!isSlug(value), JSON.stringify(value))
})

test('the app of a host: an exact host before a wildcard, one label for the wildcard', async () => {
  const index = new AppIndex(
    parseApps([
      { id: 'shops', hosts: ['*.shop.example'] },
      { id: 'eu', hosts: ['eu.shop.example', '*.eu.shop.example'] },
      { id: 'main', hosts: ['Shop.example', '192.0.2.1', '[2001:DB8::1]'] },
      { id: 'idle' },
    ]),
  )
  const apps: Readonly<Record<string, string>> = {
    'shop.example': 'main',
    'SHOP.example.:8443': 'main',
    '192.0.2.1:80': 'main',
    '[2001:db8:0::1]:443': 'main',
    'a.shop.example': 'shops',
    'eu.shop.example': 'eu',
    'a.eu.shop.example': 'eu',
    'a.b.shop.example': 'default',
    'a.b.eu.shop.example': 'default',
    example: 'default',
    '': 'default',
    'evilshop.example': 'default',
    'shop.example.evil.test': 'default',
    '*.shop.example.evil.test': 'default',
  }
  for (const [authority, id] of Object.entries(apps)) assert.equal(index.appOf(authority).id, id, authority)
  assert.equal(new AppIndex([]).appOf('shop.example').id, 'default')
})

test('a proxy in front of one app finds no other', async () => {
  const apps = parseApps([
    { id: 'shop', hosts: ['shop.example'], upstream: 'two' },
    { id: 'blog', hosts: ['blog.example'] },
  ])
  assert.equal(new AppIndex(apps, 'shop').appOf('blog.example'), apps[0])
  assert.deepEqual([...new AppIndex(apps, 'shop').ids], ['shop'])
  assert.deepEqual([...new AppIndex(apps).ids], ['default', 'shop', 'blog'])
  const unknown = new AppIndex(apps, 'wiki').appOf('blog.example')
  assert.deepEqual([unknown.id, unknown.upstream], ['wiki', null])
})

test('remembered authorities make room for others, and are found again', async () => {
  const index = new AppIndex(parseApps([{ id: 'wild', hosts: ['*.test'] }]))
  for (let round = 0; round < 2; round++)
    for (let at = 0; at < 3_000; at++) assert.equal(index.appOf(`h${at}.test:443`).id, 'wild')
  const long = `${'a.'.repeat(200)}test`
  assert.equal(index.appOf(long).id, 'default')
})

test('an app from a later version keeps what this one knows', async () => {
  const later = [{ id: 'shop', colour: 5 }]
  assert.deepEqual(parseAcceptedApps(later), parseApps([{ id: 'shop' }]))
  assert.throws(() => parseAcceptedApps([{ id: 'Shop' }]), { code: 'APPS_INVALID' })
})

test('every host of 10,000 apps is found', async () => {
  const apps = parseApps(
    Array.from({ length: APPS_MAX }, (_, at) => ({ id: `a${at}`, hosts: [`${at}.test`, `*.${at}.test`] })),
  )
  const index = new AppIndex(apps)
  for (const [at, app] of apps.entries()) {
    assert.equal(index.appOf(`${at}.test`), app)
    assert.equal(index.appOf(`www.${at}.test`), app)
  }
})

test('an index is made anew only if the apps differ', async () => {
  const list = [{ id: 'shop', hosts: ['shop.example'] }]
  const index = new AppIndex(parseApps(list), 'blog')
  assert.equal(index.having(parseApps(list)), index)
  const changed = index.having(parseApps([...list, { id: 'blog', team: 'docs' }]))
  assert.deepEqual([changed.appOf('shop.example').id, changed.appOf('shop.example').team], ['blog', 'docs'])
})

function problemsOf(value: unknown): readonly string[] {
  try {
    parseApps(value)
  } catch (error) {
    assert.ok(error instanceof DocumentFault)
    assert.equal(error.code, 'APPS_INVALID')
    return error.message.split('\n')
  }
  return []
}

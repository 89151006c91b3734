import assert from 'node:assert/strict'
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import {
  type ConfigInput,
  defaultWorkers,
  loadConfig,
  parseConfig,
  type StartupConfig,
} from '../src/config/config.ts'
import { variablesOf } from '../src/config/layers.ts'
import type { Item } from '../src/config/items.ts'
import { readValue } from '../src/config/kinds.ts'
import { SETTINGS } from '../src/config/schema.ts'
import { ConfigFault, type Problem, readSource } from '../src/config/source.ts'
import { parsePolicyText } from '../src/runtime/policy-source.ts'
import { Fault } from '../src/shared/fault.ts'
import { parseUpstreamUrl } from '../src/proxy/upstream/upstream-dial.ts'
import { Secret } from '../src/shared/secret.ts'
import { readme } from './config/docs.ts'
import { ANY_CHARACTER } from './any-character.ts'
import { timeBox } from './time-box.ts'

const BUS_FILES = {
  GATEHOUSE_BUS_CERTIFICATE_FILE: 'bus.pem',
  GATEHOUSE_BUS_KEY_FILE: 'bus.key',
  GATEHOUSE_SINKS_NATS_CERTIFICATE_FILE: 'sink.pem',
  GATEHOUSE_SINKS_NATS_KEY_FILE: 'sink.key',
}
const UPSTREAM = 'http://127.0.0.1:3000'
const ONLY_UPSTREAM = `proxy: {upstream: "${UPSTREAM}"}`

test('bad files: every problem, and where it is', async (t) => {
  for (const file of globSync('test/config/bad/*.yaml').sort()) {
    t.test(basename(file, '.yaml'), async () => {
      const text = readFileSync(file, 'utf8')
      const said = expected(text, '#! ')
      assert.ok(said.length > 0)
      assert.deepEqual(faultOf({ file: { name: 'gatehouse.yaml', text } }), said)
    })
  }
})

test('good files: what they set, and what is said of it', async (t) => {
  const defaults = configOf(ONLY_UPSTREAM).config
  for (const file of globSync('test/config/good/*.yaml').sort()) {
    t.test(basename(file, '.yaml'), async () => {
      const text = readFileSync(file, 'utf8')
      const { config, warnings } = configOf(text)
      assert.deepEqual(differences(config, defaults), JSON.parse(expected(text, '#= ').join('') || '{}'))
      assert.deepEqual(warnings.map(line), expected(text, '#! '))
    })
  }
})

test('the defaults', async () => {
  const { config, warnings } = parse({ flags: { upstream: [UPSTREAM] } })
  assert.deepEqual(warnings, [])
  assert.deepEqual(config.proxy.listen, { host: '0.0.0.0', port: 8443 })
  assert.deepEqual(config.manage, {
    listen: { host: '127.0.0.1', port: 9080 },
    publicUrl: null,
    adminKey: null,
    certificate: null,
    corsOrigins: [],
    trustedProxies: [],
    proxyProtocol: 'off',
    requestTimeoutMs: 30_000,
    connectionsMax: 1_000,
    isAccessLogged: false,
    isReadyWithoutStore: false,
    hasDashboard: true,
  })
  assert.deepEqual(config.limits, { freePerDay: 1_000, standardPerHour: 10_000 })
  assert.deepEqual([config.data.dir, config.policy.file, config.log.level], ['./data', null, 'info'])
  assert.equal(config.proxy.workers, defaultWorkers())
  assert.ok(defaultWorkers() >= 1 && defaultWorkers() <= 4)
  assert.equal(parse({ flags: { upstream: [UPSTREAM] }, workersDefault: 1 }).config.proxy.workers, 1)
})

test('a flag is stronger than a variable, a variable than the file, the file than the default', async () => {
  const file = { name: 'g.yaml', text: `${ONLY_UPSTREAM}\ndata: {dir: /file}\nlog: {level: debug}\n` }
  const env = { GATEHOUSE_DATA_DIR: '/variable', GATEHOUSE_LOG_LEVEL: 'warn' }
  const from = (input: Partial<ConfigInput>) =>
    parse({ flags: { upstream: [UPSTREAM] }, ...input }).config.data.dir
  assert.equal(from({}), './data')
  assert.equal(from({ file }), '/file')
  assert.equal(from({ file, env }), '/variable')
  assert.equal(from({ file, env: { GATEHOUSE_DATA_DIR: '' } }), '/file', 'an empty variable is ignored')
  const all = parse({ flags: { data: ['/first', '/flag'] }, file, env })
  assert.equal(all.config.data.dir, '/flag', 'the last one counts')
  assert.equal(all.config.log.level, 'warn')
  const origins = new Map(all.effective.map(({ pointer, from }) => [pointer, from]))
  assert.equal(origins.get('/data/dir'), '--data')
  assert.equal(origins.get('/log/level'), 'GATEHOUSE_LOG_LEVEL')
  assert.equal(origins.get('/proxy/upstreams/0/urls'), 'g.yaml:1:9')
  assert.equal(origins.get('/proxy/fail'), 'default')
})

test('every setting outside of lists has a variable, which sets what the file would', async () => {
  const usual = new Map(
    parse({ flags: { upstream: [UPSTREAM] } }).effective.map((each) => [each.pointer, each]),
  )
  let tried = 0
  for (const [variable, { pointer, item }] of variablesOf(SETTINGS.members)) {
    const sample = sampleOf(item, pointer)
    if (sample === null) continue
    // An issuer needs a client_id, and assertions an issuer; a key its certificate, a user of NATS the Secret with the password; a sidecar
    // requests no more than its maximum.
    const env = {
      GATEHOUSE_AUTH_OPENID_CLIENT_ID: 'another',
      GATEHOUSE_AUTH_OPENID_ISSUER: 'https://id.example/',
      GATEHOUSE_INJECT_SIDECAR_BUS_SECRET: 'nats',
      GATEHOUSE_INJECT_SIDECAR_CPU_MAX: '64',
      GATEHOUSE_INJECT_SIDECAR_MEMORY_MAX: '64Gi',
      // Payments need both, as do licenses.
      GATEHOUSE_PAYMENTS_LICENSE_INTROSPECTION: 'https://licenses.example/',
      GATEHOUSE_PAYMENTS_LICENSE_CLIENT_ID: 'us',
      GATEHOUSE_PAYMENTS_LICENSE_CLIENT_SECRET: 'word',
      GATEHOUSE_PAYMENTS_X402_FACILITATOR: 'https://pay.example/',
      GATEHOUSE_PAYMENTS_X402_PAY_TO: `0x${'cd'.repeat(20)}`,
      ...BUS_FILES,
      [variable]: sample,
    }
    const input = { flags: { upstream: [UPSTREAM] }, env }
    const effective = parse(input).effective.find((each) => each.pointer === pointer)
    assert.equal(effective?.from, variable)
    assert.notDeepEqual(effective?.value, usual.get(pointer)?.value, variable)
    tried++
  }
  assert.ok(tried > 35, `${tried}`)
})

test('encryption keys are one, a list, or a file with one a line; each says which file it came from', async (t) => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'keys')
  writeFileSync(file, `\n${SECRET} 1\r\n${SECRET} 2\n\n`)
  const short = join(folder, 'short')
  writeFileSync(short, `${SECRET}\nshort\n`)
  writeFileSync(join(folder, 'empty'), '\n')
  const keysOf = (text: string, env = {}) =>
    parse({ file: { name: join(folder, 'g.yaml'), text: `${ONLY_UPSTREAM}\nstore: {${text}}` }, env }).config
      .store.encryptionKeys
  const told = (text: string, env = {}) => keysOf(text, env).map((key) => [key.reveal(), key.file])
  assert.deepEqual(told(''), [])
  assert.deepEqual(told(`encryption_key: ${SECRET}`), [[SECRET, null]])
  assert.deepEqual(told(`encryption_keys: ${SECRET}`), [[SECRET, null]])
  assert.deepEqual(told(`encryption_keys: [${SECRET}, ${SECRET}2]`), [
    [SECRET, null],
    [`${SECRET}2`, null],
  ])
  assert.deepEqual(told('encryption_keys_file: keys'), [
    [`${SECRET} 1`, file],
    [`${SECRET} 2`, file],
  ])
  // One key: the whole content of its file.
  assert.deepEqual(told('encryption_key_file: keys'), [[`\n${SECRET} 1\r\n${SECRET} 2\n`, null]])
  assert.deepEqual(told('', { GATEHOUSE_STORE_ENCRYPTION_KEYS: `${SECRET}1,${SECRET}2` }), [
    [`${SECRET}1`, null],
    [`${SECRET}2`, null],
  ])
  const faults = (text: string) =>
    faultOf({ file: { name: join(folder, 'g.yaml'), text: `${ONLY_UPSTREAM}\nstore: {${text}}` } }).join()
  assert.match(faults('encryption_keys_file: short'), /encryption_keys_file: is shorter than 16 characters/)
  assert.match(faults('encryption_keys_file: empty'), /encryption_keys_file: contains no secret/)
  assert.match(faults(`encryption_keys: [${SECRET}, 7]`), /encryption_keys\[1\]: is not text/)
  assert.match(
    faults(`encryption_keys: ${SECRET}, encryption_key: ${SECRET}`),
    /encryption_key: is the short form of/,
  )
})

test('a manager needs the bus and a database that others can have; what has both planes has no bus', async () => {
  const bus = 'bus: {url: nats://nats.example:4222}'
  const store = 'store: {url: postgres://gatehouse@db.example/gatehouse, encryption_key: 0123456789abcdef}'
  const faults = (role: ConfigInput['role'], text: string) =>
    faultOf({ ...(role === undefined ? {} : { role }), file: { name: 'g.yaml', text } })
  assert.deepEqual(faults('manage', 'log: {level: warn}'), [
    'g.yaml:1:1: bus.url: is missing; set the NATS server that connects the proxies, nats://HOST:PORT',
    'g.yaml:1:1: store.url: must be a postgres:// URL, because managers share their database',
  ])
  assert.deepEqual(faults('manage', `${bus}\nstore: {url: postgres://gatehouse@db.example/gatehouse}`), [
    'g.yaml:2:1: store.encryption_keys: is missing; managers that share a database need the same keys',
  ])
  assert.deepEqual(faults('up', `${bus}\n${ONLY_UPSTREAM}`), [
    'g.yaml:1:7: bus.url: is only for `gatehouse manage` and `gatehouse proxy`; `up` runs both planes in one process',
  ])
  for (const [role, text] of [
    ['manage', `${bus}\n${store}`],
    ['proxy', `${bus}\n${ONLY_UPSTREAM}`],
    [undefined, bus],
  ] as const)
    parse({ ...(role === undefined ? {} : { role }), file: { name: 'g.yaml', text } })
  assert.deepEqual(faults('proxy', bus).length, 1)
  const apps = 'apps: [{id: shop, hosts: shop.example, upstream: elsewhere}]'
  assert.deepEqual(faults('proxy', `${bus}\n${ONLY_UPSTREAM}\n${apps}`), [
    'g.yaml:3:1: apps: belongs in the settings of `gatehouse manage`, which sends the apps to its proxies; here, set proxy.app or remove it',
  ])
  parse({ role: 'manage', file: { name: 'g.yaml', text: `${bus}\n${store}\n${apps}` } })
})

test('the webhook of Kubernetes needs an image for sidecars, and no upstream; its --listen is its own', async () => {
  const image = { file: { name: 'g.yaml', text: 'inject: {sidecar: {image: gatehouse:1}}' } }
  assert.deepEqual(faultOf({ role: 'inject', file: { name: 'g.yaml', text: 'inject: {service: gate}' } }), [
    'g.yaml:1:1: inject.sidecar.image: is missing; set the image of the sidecar',
  ])
  const flags = { listen: ['127.0.0.1:1'], manage: ['127.0.0.1:2'] }
  const { config } = parse({ ...image, role: 'inject', flags, flagSettings: { listen: '/inject/listen' } })
  assert.deepEqual(config.inject.listen, { host: '127.0.0.1', port: 1 })
  assert.deepEqual(config.proxy.listen, { host: '0.0.0.0', port: 8443 })
  assert.deepEqual(config.manage.listen, { host: '127.0.0.1', port: 2 })
  parse(image) // a check does not know the role
  assert.equal(faultOf({ ...image, role: 'proxy' }).length, 1)
})

test('variables: lists, sections, and what they say when they are wrong', async () => {
  const { proxy } = parse({
    env: {
      GATEHOUSE_PROXY_UPSTREAM: `${UPSTREAM}, unix:/run/app.sock,`,
      GATEHOUSE_PROXY_TRUSTED_PROXIES: ' 10.0.0.0/8 ,2001:db8::/32',
      GATEHOUSE_PROXY_TLS_CERTIFICATES: '[{cert_file: a.pem, key_file: a.key}, {cert_file: b.p12}]',
      GATEHOUSE_FINGERPRINTS_JA4PLUS: 'false',
      GATEHOUSE_PROXY_LIMITS_HEADER_COUNT: '100',
    },
  }).config
  assert.deepEqual(proxy.upstreams[0]!.urls, [UPSTREAM, 'unix:/run/app.sock'])
  assert.deepEqual(proxy.trustedProxies, ['10.0.0.0/8', '2001:db8::/32'])
  assert.deepEqual(
    proxy.tls.certificates.map(({ certificateFile }) => certificateFile),
    ['a.pem', 'b.p12'],
  )
  assert.equal(proxy.limits.headerCountMax, 100)
  const env = {
    GATEHOUSE_PROXY_UPSTREAMS: '[{urls: app, nam: a}]',
    GATEHOUSE_PROXY_TLS_CERTIFICATES: '[{',
    GATEHOUSE_PROXY_WORKERS: 'many',
    GATEHOUSE_FINGERPRINTS_JA4PLUS: 'yes',
  }
  assert.deepEqual(faultOf({ env }).sort(), [
    'GATEHOUSE_FINGERPRINTS_JA4PLUS: is "yes"; expected true or false',
    'GATEHOUSE_PROXY_TLS_CERTIFICATES:1:3: Flow map in block collection must be sufficiently indented and end with a }',
    'GATEHOUSE_PROXY_TLS_CERTIFICATES:1:3: Flow sequence must end with a ]',
    'GATEHOUSE_PROXY_UPSTREAMS: [0].nam: unknown setting (did you mean "name"?)',
    'GATEHOUSE_PROXY_UPSTREAMS: [0].urls: is "app"; expected http://, https://, h2c:// or h2:// with HOST:PORT, or unix:/PATH (did you mean http://app?)',
    'GATEHOUSE_PROXY_WORKERS: is "many"; expected a whole number from 1 to 256',
  ])
})

test('an unknown variable is an error, except those of Kubernetes and of clients', async () => {
  const service = {
    GATEHOUSE_SERVICE_HOST: '10.0.0.1',
    // Of `gatehouse mcp`, in the shell that starts this.
    ...{ GATEHOUSE_URL: 'https://gate.example.com', GATEHOUSE_KEY: 'gh_x' },
    GATEHOUSE_SERVICE_PORT: '8443',
    GATEHOUSE_SERVICE_PORT_HTTPS: '8443',
    GATEHOUSE_PORT: 'tcp://10.0.0.1:8443',
    GATEHOUSE_PORT_8443_TCP: 'tcp://10.0.0.1:8443',
    GATEHOUSE_PORT_8443_TCP_PROTO: 'tcp',
    GATEHOUSE_PORT_8443_TCP_PORT: '8443',
    GATEHOUSE_PORT_8443_TCP_ADDR: '10.0.0.1',
    GATEHOUSE_MANAGE_SERVICE_HOST: '10.0.0.2',
    GATEHOUSE_MANAGE_PORT: 'tcp://10.0.0.2:9080',
  }
  const flags = { upstream: [UPSTREAM] }
  assert.deepEqual(parse({ flags, env: { ...service, GATEHOUSE_CONFIG: 'x', OTHER: 'y' } }).warnings, [])
  const env = {
    GATEHOUSE_PORT: '8443',
    GATEHOUSE_PROXY_TRUSTED_PROXY: '10.0.0.0/8',
    GATEHOUSE_MANAGE_ADMIN_KEY: 'x',
  }
  assert.deepEqual(faultOf({ flags, env }), [
    'GATEHOUSE_PORT: unknown setting (did you mean "GATEHOUSE_APPS"?)',
    'GATEHOUSE_PROXY_TRUSTED_PROXY: unknown setting (did you mean "GATEHOUSE_PROXY_TRUSTED_PROXIES"?)',
    'GATEHOUSE_MANAGE_ADMIN_KEY: unknown setting (did you mean "GATEHOUSE_ADMIN_KEY"?)',
  ])
})

test('flags: one may be repeated, and each says its own name when it is wrong', async () => {
  const flags = { upstream: [UPSTREAM, 'https://app'], cert: ['a.pem'], key: ['a.key'], workers: ['3'] }
  const { proxy } = parse({ flags }).config
  assert.deepEqual(proxy.upstreams[0]!.urls, flags.upstream)
  assert.deepEqual([proxy.workers, proxy.tls.certificates.length], [3, 1])
  assert.deepEqual(faultOf({ flags: { upstream: [UPSTREAM, 'app'], listen: ['8443'], workers: ['x'] } }), [
    '--listen: is "8443"; expected HOST:PORT, like 127.0.0.1:8443, or 0.0.0.0:8443 and [::]:8443 for all addresses',
    '--workers: is "x"; expected a whole number from 1 to 256',
    '--upstream: is "app"; expected http://, https://, h2c:// or h2:// with HOST:PORT, or unix:/PATH (did you mean http://app?)',
  ])
  assert.deepEqual(faultOf({}), [
    'settings: proxy.upstream: is missing; set the URL of your app, like --upstream http://127.0.0.1:3000',
  ])
})

test('short and long forms: the stronger one wins, as if they were one setting', async () => {
  const long = {
    name: 'g.yaml',
    text: `proxy: {upstreams: [{name: a, urls: ${UPSTREAM}}], tls: {certificates: [{cert_file: f.pem}]}}`,
  }
  const { proxy } = parse({
    file: long,
    flags: { upstream: ['http://b'], cert: ['b.pem'], key: ['b.key'] },
  }).config
  assert.deepEqual(
    proxy.upstreams.map(({ name, urls }) => [name, urls]),
    [['default', ['http://b']]],
  )
  assert.deepEqual(proxy.tls.certificates, [{ certificateFile: 'b.pem', keyFile: 'b.key', passphrase: null }])
  const short = {
    name: 'g.yaml',
    text: `proxy: {upstream: ${UPSTREAM}, tls: {cert_file: f.pem, key_passphrase: x}}`,
  }
  const other = parse({
    file: short,
    env: {
      GATEHOUSE_PROXY_UPSTREAMS: '[{name: c, urls: "http://c"}]',
      GATEHOUSE_PROXY_TLS_CERTIFICATES: '[{cert_file: c}]',
    },
  }).config.proxy
  assert.deepEqual(
    other.upstreams.map(({ name }) => name),
    ['c'],
  )
  assert.deepEqual(other.tls.certificates, [{ certificateFile: 'c', keyFile: null, passphrase: null }])
  const mixed = parse({ file: short, flags: { key: ['k.key'] } }).config.proxy.tls.certificates[0]!
  assert.deepEqual(
    [mixed.certificateFile, mixed.keyFile, mixed.passphrase?.reveal()],
    ['f.pem', 'k.key', 'x'],
  )
})

test('paths in a file are relative to it, others to where the program runs', async () => {
  const text = `${ONLY_UPSTREAM}\ndata: {dir: data}\npolicy: {file: /etc/policy.yaml}\n`
  const { config } = parse({ file: { name: 'etc/gatehouse/g.yaml', text }, flags: { cert: ['a.pem'] } })
  assert.equal(config.data.dir, 'etc/gatehouse/data')
  assert.equal(config.policy.file, '/etc/policy.yaml')
  assert.equal(config.proxy.tls.certificates[0]!.certificateFile, 'a.pem')
  assert.equal(parse({ file: { name: 'etc/g.yaml', text: ONLY_UPSTREAM } }).config.data.dir, './data')
})

const BUDGET = timeBox(700, 1_000)
const SECRET = 'never-to-be-shown-to-any-reader-at-all'

test('a secret is shown only on request', async () => {
  const secret = new Secret(SECRET)
  for (const shown of [
    inspect(secret),
    inspect({ secret }, { depth: 9, showHidden: true }),
    inspect(secret, { customInspect: false, showHidden: true }),
    JSON.stringify({ secret }),
    `${secret}`,
    `${String(secret)} ${[secret].join()}`,
    JSON.stringify(Object.entries(secret)),
    JSON.stringify(structuredClone({ ...secret })),
  ])
    assert.ok(!shown.includes(SECRET), shown)
  assert.equal(secret.reveal(), SECRET)
})

test('secrets: from wherever they are, and in nothing that is said', async () => {
  const readSecret = (file: string) => {
    if (file !== 'etc/key' && file !== 'key') throw new Fault('X', `${file}: no such file`)
    return `${SECRET}\n`
  }
  const withKey = (member: string) => ({
    name: 'etc/g.yaml',
    text: `${ONLY_UPSTREAM}\nmanage: {${member}}\n`,
  })
  const inputs: readonly Partial<ConfigInput>[] = [
    { file: withKey(`admin_key: ${SECRET}`) },
    { file: withKey('admin_key_file: key') },
    { env: { GATEHOUSE_ADMIN_KEY: SECRET } },
    { env: { GATEHOUSE_ADMIN_KEY_FILE: 'key' } },
    { file: withKey('admin_key: something-else-altogether'), env: { GATEHOUSE_ADMIN_KEY_FILE: 'key' } },
    { file: withKey('admin_key_file: elsewhere'), env: { GATEHOUSE_ADMIN_KEY: SECRET } },
  ]
  for (const input of inputs) {
    const parsed = parse({ flags: { upstream: [UPSTREAM] }, readSecret, ...input })
    assert.equal(parsed.config.manage.adminKey?.reveal(), SECRET)
    assert.ok(!inspect(parsed, { depth: 9 }).includes(SECRET) && !JSON.stringify(parsed).includes(SECRET))
  }
  const broken = [
    ...[
      `admin_key: [${SECRET}]`,
      `admin_key: {a: ${SECRET}}`,
      `admin_kye: ${SECRET}`,
      `public_url: http://a:${SECRET}@b`,
    ],
    ...[
      `admin_key: !${SECRET.slice(0, 3)} ${SECRET}`,
      `admin_key: ${SECRET}, admin_key: ${SECRET}`,
      `admin_key: "${SECRET}`,
    ],
  ]
  for (const member of broken) {
    const said = faultOf({ file: withKey(member) }).join('\n')
    assert.ok(!said.includes(SECRET), said)
  }
  assert.deepEqual(
    faultOf({ env: { GATEHOUSE_ADMIN_KEY_FILE: 'nowhere' }, flags: { upstream: [UPSTREAM] }, readSecret }),
    ['GATEHOUSE_ADMIN_KEY_FILE: nowhere: no such file'],
  )
})

test('whatever it is given, it is a configuration or a ConfigFault', async () => {
  const names = [...variablesOf(SETTINGS.members).values()].flatMap(({ pointer }) =>
    pointer.split('/').slice(1),
  )
  const scalar = fc.oneof(
    fc.constantFrom(
      '10s',
      '64KiB',
      UPSTREAM,
      '0.0.0.0:1',
      '1.2',
      'a',
      '',
      '__proto__',
      0,
      1,
      -1,
      1.5,
      true,
      null,
    ),
    fc.string({ unit: ANY_CHARACTER, maxLength: 8 }),
    fc.double(),
  )
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalar,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names, 'upstreams', 'urls', 'name', '__proto__'), tie('value'), {
        maxKeys: 5,
      }),
    ),
  }))
  const attempt = (input: Partial<ConfigInput>) => {
    try {
      parse(input)
    } catch (error) {
      assert.ok(error instanceof ConfigFault, inspect(error))
    }
  }
  fc.assert(
    fc.property(value, (file) => attempt({ file: { name: 'g.yaml', text: JSON.stringify(file) ?? '' } })),
    BUDGET,
  )
  const scraps = fc.constantFrom(
    'proxy',
    ': ',
    '\n',
    '  ',
    '- ',
    '[',
    ']',
    '{',
    '}',
    '&a',
    '*a',
    '"',
    "'",
    '#',
    '|',
    '>',
    '!!',
    '%',
    '---',
    '\t',
    '?',
    ',',
    '\ufeff',
    'limits',
  )
  fc.assert(
    fc.property(fc.array(scraps, { maxLength: 30 }), (all) =>
      attempt({ file: { name: 'g.yaml', text: all.join('') } }),
    ),
    BUDGET,
  )
  const variables = [...variablesOf(SETTINGS.members).keys()]
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...variables), fc.oneof(fc.string(), fc.json())), (env) =>
      attempt({ env }),
    ),
    BUDGET,
  )
})

test('an upstream that is taken here is taken by who connects to it', async () => {
  const tls = { verify: true, ca: null, serverName: null }
  const url = fc
    .tuple(
      fc.constantFrom('http://', 'HTTPS://', 'h2c://', 'h2://', 'unix:', 'unix:/', 'ftp://', ''),
      fc.constantFrom(
        'app',
        'a.b-c_d',
        '[::1]',
        '127.0.0.1',
        '1.2.3',
        '[',
        '-a',
        'a..b',
        'a@b',
        '',
        '/run/a b',
      ),
      fc.constantFrom('', ':1', ':65535', ':0', ':65536', ':', ':x', '/', ':80/', '/a', '?', '#'),
    )
    .map((parts) => parts.join(''))
  let taken = 0
  fc.assert(
    fc.property(url, (upstream) => {
      try {
        parse({ flags: { upstream: [upstream] } })
      } catch {
        return
      }
      taken++
      parseUpstreamUrl(upstream, tls)
    }),
    { numRuns: 300 }, // No limit of time: a busy machine has to try enough of them.
  )
  assert.ok(taken > 5, `${taken}`)
})

test('places: of values, of what is missing, through aliases', async () => {
  const { place } = readSource('a:\n  - b: 1\n    c: &x {d: 2}\ne: *x\n', 'f')
  assert.equal(place('/a/0/b'), 'f:2:5')
  assert.equal(place('/a/0/c/d'), 'f:3:12')
  assert.equal(place('/a/0/nothing/here'), 'f:2:5')
  assert.equal(place('/e/d'), 'f:3:12')
  assert.equal(place('/z'), 'f:1:1')
  // Behind what it could not read the YAML parser counts lines no more.
  assert.throws(
    () => readSource(' : \n_x\nd:', 'f'),
    ({ problems }: ConfigFault) => problems.map(({ where }) => where).join() === 'f:2:1,f:3:2',
  )
})

test('limits: of length, depth, aliases and values', async () => {
  const cases: readonly (readonly [text: string, what: RegExp])[] = [
    [`a: ${'x'.repeat(5_000_000)}`, /longer than 4194304 characters/],
    ['['.repeat(40) + ']'.repeat(40), /nested deeper than 32/],
    [`a: &a 1\nb: [${'*a,'.repeat(201)}]`, /more than 200 aliases/],
    [`a: &a [${'1,'.repeat(2000)}]\nb: [${'*a,'.repeat(150)}]`, /more than 200000 values/],
  ]
  for (const [text, what] of cases) assert.throws(() => readSource(text, 'f'), what)
  assert.throws(() => readSource('['.repeat(20_000), 'f'), ConfigFault)
  // Each is looked for, and not compared with each: that took the parser ten seconds for as many as this.
  const keys = Array.from({ length: 30_000 }, (_, number) => `k${number}: 1\n`).join('')
  assert.equal(Object.keys(readSource(keys, 'f').value as object).length, 30_000)
  assert.throws(
    () => readSource(`${keys}k7: 2\n`, 'f'),
    ({ problems }: ConfigFault) => problems[0]?.where === 'f:30001:1' && problems.length === 1,
  )
})

test('a policy: what is wrong in which rule, and on which line', async () => {
  const text =
    'rules:\n  - name: no bots\n    when:\n      verdit: agent\n    action: block\n  - when: {}\n    action: go\nmore: 1\n'
  assert.throws(() => parsePolicyText(text, 'policy.yaml'), {
    code: 'POLICY_INVALID',
    message: [
      'policy.yaml:8:1: more: unknown field',
      'policy.yaml:4:7: rule "no bots": when.verdit: unknown field (did you mean "verdict"?)',
      'policy.yaml:6:5: rules[1]: needs a name',
      'policy.yaml:7:5: rules[1].action: is "go"; expected pass, tag, block, rate_limit, tarpit, redirect, route, charge',
    ].join('\n'),
  })
  const { document, policy } = parsePolicyText('{"otherwise": "pass"}', 'policy.json')
  assert.deepEqual([JSON.stringify(document), policy.otherwise.action.kind], ['{"otherwise":"pass"}', 'pass'])
  const route = 'otherwise: {route: {upstream: agnets}}'
  assert.throws(() => parsePolicyText(route, 'p', { upstreams: ['agents'] }), {
    message: /^p:1:21: otherwise\.route\.upstream: .*"agents"/,
  })
})

test('loading: the file that is named, and what is wrong with it', async (t) => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'g.yaml')
  writeFileSync(file, ONLY_UPSTREAM)
  assert.equal(loadConfig({}, file, {}).config.proxy.upstreams.length, 1)
  assert.equal(loadConfig({}, null, { GATEHOUSE_CONFIG: file }).config.proxy.upstreams.length, 1)
  assert.throws(() => loadConfig({}, join(folder, 'none'), {}), {
    code: 'CONFIG_UNREADABLE',
    message: /none: no such file$/,
  })
  assert.throws(() => loadConfig({}, folder, {}), { message: /is a folder$/ })
  writeFileSync(file, Buffer.from([0x61, 0x3a, 0x20, 0xff]))
  assert.throws(() => loadConfig({}, file, {}), { message: /is not UTF-8 text$/ })
})

test('files of secrets that everybody can read are spoken of', async (t) => {
  const folder = temporaryFolder(t)
  const [file, key, pair, tickets] = ['g.yaml', 'a.key', 'b.p12', 't.key'].map((name) => join(folder, name))
  const tls =
    'certificates: [{cert_file: a.pem, key_file: a.key}, {cert_file: b.p12}], ticket_key_file: t.key'
  writeFileSync(file!, `proxy: {upstream: "${UPSTREAM}", tls: {${tls}}}\nmanage: {admin_key: ${SECRET}}\n`)
  for (const each of [key!, pair!, tickets!]) writeFileSync(each, '')
  const said = () => loadConfig({}, file!, {}).warnings.map(line)
  for (const each of [file!, key!, pair!, tickets!]) chmodSync(each, 0o640)
  assert.deepEqual(said(), [])
  for (const each of [file!, key!, pair!, tickets!]) chmodSync(each, 0o644)
  assert.deepEqual(said(), [
    `${key}: every user on this machine can read the private key; restrict its permissions, like chmod 600`,
    `${pair}: every user on this machine can read the private key; restrict its permissions, like chmod 600`,
    `${tickets}: every user on this machine can read the session ticket key, which decrypts recorded sessions; restrict its permissions, like chmod 600`,
    `${file}: every user on this machine can read the secrets; restrict its permissions, like chmod 600`,
  ])
})

test('config/README.md says what the program does: else "npm run config:docs"', async () => {
  assert.equal(readFileSync('config/README.md', 'utf8'), readme())
})

test('what a share of the requests does not show is said', async () => {
  const text = `proxy: {upstream: http://127.0.0.1:3000}
sightings:
  sample: {human: 0.01, agent: 0.5, blocked: 1}
  limit_a_second: 100
`
  const { config, warnings } = parse({ file: { name: 'gatehouse.yaml', text }, role: 'up' })
  assert.deepEqual(config.sightings.sampling, {
    shares: { default: 1, agent: 0.5, automation: null, human: 0.01, unknown: null, blocked: 1, apps: [] },
    perSecond: 100,
  })
  assert.deepEqual(
    warnings.map(({ where, what }) => `${where} ${what}`).filter((each) => each.includes('found in')),
    [
      'gatehouse.yaml:3:25 sightings.sample.agent: is 0.5: violations of robots.txt are found in this share only',
      'gatehouse.yaml:3:12 sightings.sample.human: is 0.01: campaigns and new fingerprints are found in this share of the requests only',
      'gatehouse.yaml:4:3 sightings.limit_a_second: is 100: beyond the limit, threats and campaigns are found in a part of the requests only',
    ],
  )
})

test('the files in config/ are good ones', async () => {
  const names = globSync('config/*.yaml')
    .map((file) => basename(file))
    .sort()
  const policies = [
    'allow-verified-only.yaml',
    'block-impostors.yaml',
    'block-spoofed-browsers.yaml',
    'allow-search-not-training.yaml',
    'user-triggered-welcome.yaml',
    'block-unverified-crawlers.yaml',
  ]
  policies.push('observe.yaml', 'policy.yaml') // tested in test/policy/ready-made.test.ts
  const roles = {
    'all-in-one.yaml': 'up',
    'example.yaml': 'up',
    'fleet.yaml': 'manage',
    'sidecar.yaml': 'proxy',
  } as const
  const others = ['compose.yaml', 'grafana.yaml', 'grafana-dashboards.yaml'] // see test/config/compose.test.ts
  assert.deepEqual(names, [...policies, ...others, ...Object.keys(roles)].sort())
  const upstreams = ['app', 'agents', 'grpc']
  assert.ok(
    parsePolicyText(readFileSync('config/policy.yaml', 'utf8'), 'policy.yaml', { upstreams }).policy.last
      .rules.length > 3,
  )
  for (const [name, role] of Object.entries(roles)) {
    const file = { name: `config/${name}`, text: readFileSync(`config/${name}`, 'utf8') }
    const { config, warnings } = parse({ file, role, readSecret: () => SECRET })
    assert.equal(config.proxy.upstreams.length > 0, role !== 'manage')
    // They listen everywhere.
    const risky = { 'sidecar.yaml': ['config/sidecar.yaml:24:3'], 'fleet.yaml': ['config/fleet.yaml:5:3'] }[
      name
    ]
    assert.deepEqual(
      warnings.map(({ where }) => where),
      risky ?? [],
      name,
    )
  }
})

function parse(input: Partial<ConfigInput>) {
  return parseConfig({ flags: {}, env: {}, file: null, ...input })
}

function configOf(text: string) {
  return parse({ file: { name: 'gatehouse.yaml', text }, workersDefault: 2 })
}

/** The lines of the Fault. */
function faultOf(input: Partial<ConfigInput>): string[] {
  try {
    parse(input)
  } catch (error) {
    assert.ok(error instanceof ConfigFault, inspect(error))
    assert.equal(error.code, 'CONFIG_INVALID')
    assert.equal(error.message, error.problems.map(line).join('\n'))
    return error.problems.map(line)
  }
  throw new Error('it was taken for a good one')
}

function line({ where, what }: Problem): string {
  return `${where}: ${what}`
}

/** What a file says of itself, in comments at its end. */
function expected(text: string, mark: string): string[] {
  const lines = text.split('\n').filter((each) => each.startsWith(mark))
  return lines.map((each) => each.slice(mark.length))
}

/** Settings that differ from their defaults, by dotted name. */
function differences(config: StartupConfig, defaults: StartupConfig): object {
  const [flat, usual] = [config, defaults].map(
    (each) => new Map(flattened(JSON.parse(JSON.stringify(each)), '')),
  )
  return Object.fromEntries([...flat!].filter(([name, value]) => usual!.get(name) !== value))
}

function flattened(value: unknown, name: string): [string, unknown][] {
  if (typeof value !== 'object' || value === null) return [[name, value]]
  return Object.entries(value).flatMap(([member, inner]) =>
    flattened(inner, name === '' ? member : `${name}.${member}`),
  )
}

/** Some text for a variable that is not the default; `null` for what other tests set. */
function sampleOf(item: Item, pointer: string): string | null {
  if (item.item === 'list') return LISTED.get(pointer) ?? '192.0.2.0/24'
  if (item.item === 'secret' || item.item === 'secrets') return SECRET
  if (
    item.item !== 'setting' ||
    /(?:_passphrase|[/_]keys?|_token|_secret|\/password|\/token)_file$/.test(pointer)
  )
    return null
  if (item.fallback === false) return 'true'
  const candidates = [
    '7s',
    '20KiB',
    '17',
    '2MiB',
    'false',
    'true',
    '1.3',
    'optional',
    'request',
    'reject',
    'closed',
    'open',
    'debug',
  ]
  const more = ['127.0.0.1:1', 'https://a.example.test/', 'x-other', 'other', 'sqlite:other.db']
  return [...candidates, ...more].find((text) => isTaken(item, text)) ?? null
}

function isTaken(item: Extract<Item, { item: 'setting' }>, text: string): boolean {
  try {
    return readValue(item.kind, item.kind.fromText(text)) !== item.fallback
  } catch {
    return false
  }
}

function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

/** What lists take that are not of addresses. */
const LISTED: ReadonlyMap<string, string> = new Map([
  ['/inject/sidecar/pull_secrets', 'registry'],
  ['/manage/cors_origins', 'https://console.example'],
  ['/auth/openid/assertions/algorithms', 'ES256'],
  ['/proxy/untrusted_headers', 'x-my-user'],
  ['/proxy/trusted_headers', 'x-forwarded-host'],
  ['/identity/agents', 'https://agent.example'],
  ['/identity/registries', 'https://registry.example/agents.txt'],
  ['/bus/url', 'nats://nats.example:4222'],
  ['/inject/sidecar/bus_url', 'tls://nats.example:4222'],
  ['/identity/hosts', '*.example.com'],
  ['/proxy/hosts', '*.example.com'],
  ['/identity/resolvers', '192.0.2.53:53'],
  ['/sinks/apps', 'shop'],
  ['/sinks/nats/url', 'nats://nats.example:4222'],
])

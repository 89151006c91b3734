import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { parseConfig } from '../../src/config/config.ts'
import { GATEHOUSE } from '../e2e/programs.ts'
import { testCa, testLeaf, testRsa } from '../proxy/test-certificates.ts'
import { memoryIo } from './memory-io.ts'

const DAY_MS = 86_400_000
const SECRET = 'never-to-be-shown-to-any-reader-at-all'

const ca = await testCa()
const leaf = await testLeaf(ca, ['shop.example.test'])
const expired = await testLeaf(ca, ['shop.example.test'], Date.now() - 100 * DAY_MS)
const early = await testLeaf(ca, ['shop.example.test'], Date.now() + 10 * DAY_MS)

test('a good configuration: prints each value with its source, exit code 0', async (t) => {
  const { at, check } = workbench(t)
  at('tls.pem', leaf.certificate)
  at('tls.key', leaf.key, 0o600)
  at('policy.yaml', 'rules: [{name: a, when: {}, action: {route: {upstream: agents}}}]')
  const file = at(
    'gatehouse.yaml',
    `proxy:
  upstreams:
    - urls: http://127.0.0.1:3000
    - {name: agents, urls: [https://agents.example.test, unix:/run/a.sock], idle_timeout: 5m}
  tls: {cert_file: tls.pem, key_file: tls.key, min_version: 1.3}
  trusted_proxies: [10.0.0.0/8]
policy: {file: policy.yaml}
manage: {admin_key: ${SECRET}}
`,
    0o600,
  )
  const env = { GATEHOUSE_LOG_LEVEL: 'warn', GATEHOUSE_PROXY_SIGNATURE_KEY: SECRET }
  const { exitCode, out, err } = await check(['--config', file, '--listen', '127.0.0.1:8443'], env)
  assert.deepEqual([exitCode, err], [0, ''])
  for (const line of [
    '  listen: 127.0.0.1:8443 # --listen',
    '  plain_listen: null # default',
    `      urls: [ http://127.0.0.1:3000 ] # ${file}:3:7`,
    `      idle_timeout: 5m # ${file}:4:77`,
    `  trusted_proxies: [ 10.0.0.0/8 ] # ${file}:6:3`,
    `      - cert_file: ${join(file, '..', 'tls.pem')} # ${file}:5:9`,
    '  signature_key: <redacted> # GATEHOUSE_PROXY_SIGNATURE_KEY',
    `  admin_key: <redacted> # ${file}:8:10`,
    '  level: warn # GATEHOUSE_LOG_LEVEL',
  ])
    assert.ok(out.split('\n').includes(line), `${line}\n${out}`)
  assert.ok(!out.includes(SECRET))
})

test('what is printed is a configuration that says the same', async (t) => {
  const { at, check } = workbench(t)
  const text = `proxy: {upstreams: [{urls: [http://a, "h2c://b:1"], head_timeout: 0, health: {path: /h}}, {name: b, urls: unix:/b}],
  plain_listen: "[::1]:80", workers: 3, trusted_proxies: ["::/1", 1.2.3.4], ja4_hops: {addresses: 5.6.7.8, header: A}}
data: {dir: "a: b # c"}
`
  const flags = { listen: ['127.0.0.1:1'] }
  const file = at('g.yaml', text)
  const { out } = await check(['--config', file, '--listen', '127.0.0.1:1'])
  const given = parseConfig({ flags, env: {}, file: { name: file, text: text } })
  const again = parseConfig({ flags: {}, env: {}, file: { name: 'printed', text: out } })
  assert.deepEqual(again.config, given.config)
})

test('with nothing but an upstream: every default, and that the certificate is for development', async (t) => {
  const { exitCode, out, err } = await workbench(t).check(['--upstream', 'http://127.0.0.1:3000'])
  assert.equal(exitCode, 0)
  assert.match(out, /^ {6}urls: \[ http:\/\/127\.0\.0\.1:3000 \] # --upstream$/m)
  assert.match(err, /^warning: proxy\.tls\.certificates: none is given; one is made for development/)
})

test('what is wrong with settings: all of it, and exit code 1', async (t) => {
  const { at, check } = workbench(t)
  const file = at('g.yaml', 'proxy:\n  lsten: a\n  limits: {hello_timeout: 5}\n')
  const { exitCode, out, err } = await check(['--config', file, '--workers', '0'], { GATEHOUSE_X: '1' })
  assert.deepEqual([exitCode, out], [1, ''])
  assert.deepEqual(err.trimEnd().split('\n'), [
    'GATEHOUSE_X: unknown setting',
    '--workers: is 0; expected a whole number from 1 to 256',
    `${file}:1:1: proxy.upstream: is missing; set the URL of your app, like --upstream http://127.0.0.1:3000`,
    `${file}:2:3: proxy.lsten: unknown setting (did you mean "listen"?)`,
    `${file}:3:12: proxy.limits.hello_timeout: is 5; expected a number with its unit: ms, s, m, h or d (did you mean 5s?)`,
  ])
})

test('what is wrong in the files that are named: all of it', async (t) => {
  const { at, check } = workbench(t)
  const locked = createPrivateKey(leaf.key).export({
    ...{ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: SECRET },
  })
  at('a.pem', leaf.certificate)
  at('other.key', testRsa(['x.example.test']).key, 0o600)
  at('locked.key', locked.toString(), 0o600)
  at('tickets', 'too short', 0o600)
  at('empty.pem', 'nothing')
  at('signing.jwk', `{"kty": "OKP", "crv": "Ed25519", "d": "${SECRET}"}`, 0o600)
  at('own.yaml', '- id: x\n  name: x\n')
  at('broken.pem', ca.certificate.replace(/^M/m, 'X'))
  const policy = at(
    'policy.yaml',
    'rules:\n  - name: a\n    when: {agnet: x}\n    action: {route: {upstream: b}}\n',
  )
  at('weights.json', '{"weights": {},\n  "temperature": "hot"}')
  const file = at(
    'g.yaml',
    `proxy:
  upstreams: [{urls: https://a, tls: {ca_file: empty.pem}}]
  tls:
    certificates:
      - {cert_file: a.pem, key_file: other.key}
      - {cert_file: a.pem, key_file: locked.key, key_passphrase: wrong-${SECRET}}
      - {cert_file: none.pem}
    client_certificates: request
    client_ca_file: broken.pem
    ticket_key_file: tickets
policy: {file: policy.yaml}
signatures: own.yaml
weights: {file: weights.json}
feeds: [{name: f, url: https://a, public_keys: "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", ca_file: empty.pem}]
identity: {asn_file: empty.pem}
signing: {upstream: true, key_file: signing.jwk}
`,
    0o600,
  )
  const { exitCode, out, err } = await check(['--config', file])
  assert.deepEqual([exitCode, out], [1, ''])
  const expected = [
    /^proxy\.tls\.certificates\[0\]: .*a\.pem does not belong to the key in .*other\.key: .* ec key, the key is rsa$/,
    /^proxy\.tls\.certificates\[1\]: .*locked\.key: the passphrase does not open it$/,
    /^proxy\.tls\.certificates\[2\]: .*none\.pem does not exist$/,
    /^proxy\.tls\.client_ca_file: certificate 1 in .*broken\.pem is damaged$/,
    /^proxy\.upstreams\[0\]\.tls\.ca_file: .*empty\.pem holds no certificate in PEM$/,
    /^feeds\[0\]\.ca_file: .*empty\.pem holds no certificate in PEM$/,
    /^proxy\.tls\.ticket_key_file: .*tickets holds no ticket key/,
    /policy\.yaml:3:12: rule "a": when\.agnet: unknown field \(did you mean "agent"\?\)$/,
    /policy\.yaml:4:22: rule "a": action\.route\.upstream: unknown upstream "b"; known upstreams: default$/,
    /own\.yaml:1:3: software "x": needs `kind`$/,
    /weights\.json:2:3: temperature: must be a number$/,
    /^identity\.asn_file: .*empty\.pem cannot be used: it is not a MaxMind DB/,
    /^signing\.key_file: .*signing\.jwk holds no private key that can be read$/,
  ]
  const lines = err.trimEnd().split('\n')
  assert.equal(lines.length, expected.length, err)
  for (const [index, pattern] of expected.entries()) assert.match(lines[index]!, pattern)
  assert.ok(err.includes(policy) && !err.includes(SECRET))
})

test('checks the files of the management plane and of NATS too', async (t) => {
  const { at, check } = workbench(t)
  at('a.pem', leaf.certificate)
  at('other.key', testRsa(['x.example.test']).key, 0o600)
  at('empty.pem', 'nothing')
  const file = at(
    'g.yaml',
    `proxy: {upstream: "http://a"}
manage: {tls: {cert_file: a.pem, key_file: other.key}}
webhooks: {ca_file: empty.pem}
sinks: {syslog: "tls://a:6514", syslog_ca_file: empty.pem}
auth: {openid: {issuer: "https://id.test/", client_id: x, ca_file: empty.pem}}
bus: {url: "tls://a:4222", user_file: none, ca_file: empty.pem, certificate_file: a.pem, key_file: other.key, bootstrap_file: empty.pem}
threats: {robots_file: none.txt}
`,
    0o600,
  )
  const { exitCode, out, err } = await check(['--config', file])
  assert.deepEqual([exitCode, out], [1, ''])
  const problems = err
    .trimEnd()
    .split('\n')
    .filter((line) => !line.startsWith('warning: '))
  const expected = [
    /^manage\.tls: .*a\.pem does not belong to the key in .*other\.key/,
    /^webhooks\.ca_file: .*empty\.pem holds no certificate in PEM$/,
    /^sinks\.syslog_ca_file: .*empty\.pem holds no certificate in PEM$/,
    /^auth\.openid\.ca_file: .*empty\.pem holds no certificate in PEM$/,
    /^bus\.ca_file: .*empty\.pem holds no certificate in PEM$/,
    /^bus\.user_file: .*none cannot be read \(ENOENT\)$/,
    /^threats\.robots_file: .*none\.txt cannot be read \(ENOENT\)$/,
    /^bus\.certificate_file: .*a\.pem does not belong to the key in .*other\.key/,
  ]
  assert.equal(problems.length, expected.length, err)
  for (const [index, pattern] of expected.entries()) assert.match(problems[index]!, pattern)
  const bootstrap =
    /^warning: bus\.bootstrap_file: .*empty\.pem is not a Snapshot file; .*; without it, a proxy needs NATS/m
  assert.match(err, bootstrap)
})

test('reports invalid settings and invalid files in one run', async (t) => {
  const { at, check } = workbench(t)
  at('policy.yaml', 'rules: [{name: a, when: {agnet: x}, action: {route: {upstream: api}}}]')
  at('empty.pem', 'nothing')
  const file = at(
    'g.yaml',
    `proxy:
  lsten: a
  upstreams: [{name: app, urls: "ftp://a"}, {name: api, urls: "http://b", idle_timeout: 5}]
  trusted_proxies: [10.0.0.0/8, x]
  tls: {certificates: [{key_file: a.key}, {cert_file: empty.pem}]}
policy: {file: policy.yaml}
identity: {agents: ["https://a.test", 7]}
feeds: [{url: "https://a", public_keys: x}]
`,
  )
  const { exitCode, out, err } = await check(['--config', file])
  assert.deepEqual([exitCode, out], [1, ''])
  const problems = err
    .trimEnd()
    .split('\n')
    .filter((line) => !line.startsWith('warning: '))
  for (const pattern of [
    /g\.yaml:2:3: proxy\.lsten: unknown setting/,
    /g\.yaml:3:.*: proxy\.upstreams\[0\]\.urls: /,
    /g\.yaml:3:.*: proxy\.upstreams\[1\]\.idle_timeout: is 5;/,
    /g\.yaml:4:.*: proxy\.trusted_proxies\[1\]: /,
    /g\.yaml:5:.*: proxy\.tls\.certificates\[0\]\.cert_file: is missing/,
    /g\.yaml:7:.*: identity\.agents\[1\]: /,
    /g\.yaml:8:.*: feeds\[0\]\.name: is missing/,
    /g\.yaml:8:.*: feeds\[0\]\.public_keys: /,
    /^proxy\.tls\.certificates\[0\]: .*empty\.pem/,
    /policy\.yaml:1:\d+: rule "a": when\.agnet: unknown field/,
  ])
    assert.equal(problems.filter((line) => pattern.test(line)).length, 1, `${pattern}\n${err}`)
  assert.equal(problems.length, 10, err)
})

test('warns about rules that cannot match with the other settings', async (t) => {
  const { at, check } = workbench(t)
  const policy = at(
    'policy.yaml',
    `rules:
  - {name: hosts, when: {host: [shop.example, "*.example", SHOP.example, a.cdn.example, other.example]}, action: block}
  - {name: signer, when: {signer: "https://a.test"}, action: block}
  - {name: proof, when: {verified: [ip-range, web-bot-auth, reverse-dns]}, action: block}
  - {name: evidence, when: {evidence: [signature-failed, host-foreign, "network-*", spoofed-browser]}, action: block}
  - {name: never, when: {not: {host: other.example, verified: reverse-dns}}, action: block}
`,
  )
  const rest = `policy: {file: ${policy}}\nproxy: {upstream: "http://a", hosts: [shop.example, "*.cdn.example"]}\n`
  const config = at('g.yaml', `${rest}identity: {signatures: "off", reverse_dns: false}\n`)
  const { exitCode, err } = await check(['--config', config])
  assert.equal(exitCode, 0, err)
  const warnings = err
    .trimEnd()
    .split('\n')
    .filter((line) => line.includes('policy.yaml:'))
  const expected = [
    /policy\.yaml:2:\d+: rule "hosts": when\.host: "other\.example" is not in proxy\.hosts/,
    /policy\.yaml:3:\d+: rule "signer": when\.signer: never matches: identity\.signatures is off$/,
    /policy\.yaml:4:\d+: rule "proof": when\.verified: "web-bot-auth" never matches: identity\.signatures is off$/,
    /policy\.yaml:4:\d+: rule "proof": when\.verified: "reverse-dns" never matches: identity\.reverse_dns is/,
    /policy\.yaml:5:\d+: rule "evidence": when\.evidence: "signature-failed" never matches/,
    /policy\.yaml:5:\d+: rule "evidence": when\.evidence: "host-foreign" never matches: identity\.reverse_dns/,
    /policy\.yaml:5:\d+: rule "evidence": when\.evidence: "network-\*" never matches: identity\.asn_file is not set$/,
  ]
  assert.equal(warnings.length, expected.length, err)
  for (const [index, pattern] of expected.entries()) assert.match(warnings[index]!, pattern)
  const open = at('open.yaml', rest.replace('hosts:', 'unknown_host: pass, hosts:'))
  const passing = (await check(['--config', open])).err
  assert.doesNotMatch(passing, /other\.example|signatures is off/)
})

test('warns about served hosts that no certificate names', async (t) => {
  const { at, check } = workbench(t)
  const both = await testLeaf(ca, ['shop.example', '*.cdn.example'])
  at('tls.pem', both.certificate + both.key, 0o600)
  const hosts = '[SHOP.example, "*.cdn.example", a.cdn.example, 192.0.2.1, b.a.cdn.example, "*.example"]'
  const config = at(
    'g.yaml',
    `proxy: {upstream: "http://a", hosts: ${hosts}, tls: {cert_file: tls.pem}}\n`,
    0o600,
  )
  const { exitCode, err } = await check(['--config', config])
  assert.equal(exitCode, 0, err)
  assert.deepEqual(err.trimEnd().split('\n'), [
    'warning: proxy.hosts[4]: no certificate in proxy.tls.certificates names "b.a.cdn.example"; clients will refuse the connection',
    'warning: proxy.hosts[5]: no certificate in proxy.tls.certificates names "*.example"; clients will refuse the connection',
  ])
})

test('warns about certificates that are not valid now, and keys that all users can read', async (t) => {
  const { at, check } = workbench(t)
  at('old.pem', expired.certificate + expired.key, 0o600)
  at('new.pem', early.certificate)
  const key = at('new.key', early.key, 0o644)
  at('ca.pem', ca.certificate + (await testCa(Date.now() - 500 * DAY_MS)).certificate)
  const tls = 'certificates: [{cert_file: old.pem}, {cert_file: new.pem, key_file: new.key}]'
  const more = 'client_certificates: request, client_ca_file: ca.pem'
  const vectors = JSON.parse(readFileSync('test/vectors/http-signatures.json', 'utf8'))
  const published = at('signing.jwk', JSON.stringify(vectors.private['test-key-ed25519']), 0o644)
  const signing = 'signing: {webhooks: true, key_file: signing.jwk}'
  const file = at('g.yaml', `proxy: {upstream: "http://a", tls: {${tls}, ${more}}}\n${signing}\n`)
  const { exitCode, out, err } = await check(['--config', file])
  assert.equal(exitCode, 0, err)
  assert.match(err, /^warning: proxy\.tls\.certificates\[0\]: .*old\.pem: expired on /m)
  assert.match(err, /^warning: proxy\.tls\.certificates\[1\]: .*new\.pem: is not valid before /m)
  assert.match(err, /^warning: proxy\.tls\.client_ca_file: certificate 2 in .*ca\.pem expired on /m)
  for (const each of [key, published])
    assert.ok(
      err.includes(
        `warning: ${each}: every user on this machine can read the private key; restrict its permissions, like chmod 600\n`,
      ),
      err,
    )
  assert.match(err, /^warning: signing\.key_file: \S{43} in .*signing\.jwk is a published key for tests/m)
  assert.ok(!`${out}${err}`.includes(vectors.private['test-key-ed25519'].d))
})

test('rules about hosts where any host is served', async (t) => {
  const { at, check } = workbench(t)
  const upstream = ['--upstream', 'http://127.0.0.1:3000']
  const rule = (when: string) => at('p.yaml', `rules: [{name: a, when: ${when}, action: block}]`)
  const warning = /^warning: policy\.file: a rule asks for the host.* proxy\.hosts$/m
  for (const when of ['{host: shop.example}', '{not: {host: shop.example}}', '\'request.host == "a"\''])
    assert.match((await check([...upstream, '--policy', rule(when)])).err, warning, when)
  assert.doesNotMatch((await check([...upstream, '--policy', rule('{path: /a}')])).err, warning)
  const hosts = at('g.yaml', 'proxy: {hosts: [shop.example]}')
  const named = await check([...upstream, '--policy', rule('{host: shop.example}'), '--config', hosts])
  assert.doesNotMatch(named.err, warning)
})

test('what a policy may cost', async (t) => {
  const { at, check } = workbench(t)
  const when = `'[${'"a",'.repeat(159)}"a"].exists(x, request.path == x)'`
  const rules = Array.from(
    { length: 10 },
    (_, each) => `  - {name: r${each}, when: ${when}, action: block}\n`,
  )
  const policy = at('p.yaml', `rules:\n${rules.join('')}`)
  const { exitCode, err } = await check(['--upstream', 'http://127.0.0.1:3000', '--policy', policy])
  assert.equal(exitCode, 0, err)
  assert.match(err, /^warning: \S+p\.yaml:1:1: its expressions can take \d+ steps/m)
})

test('names in a policy: unknown words are errors, unknown agents are warnings, aliases are neither', async (t) => {
  const { at, check } = workbench(t)
  const upstream = ['--upstream', 'http://127.0.0.1:3000']
  const rule = (when: string) => `rules:\n  - name: a\n    when: {${when}}\n    action: block\n`
  const bad = await check([...upstream, '--policy', at('bad.yaml', rule('category: crawlr'))])
  assert.equal(bad.exitCode, 1)
  const error = 'rule "a": when.category: unknown category "crawlr" (did you mean "crawler"?)'
  assert.ok(bad.err.includes(`bad.yaml:3:12: ${error}\n`), bad.err)
  const agents = 'agent: [openai-python, GPTBot, gptbto]'
  const odd = await check([...upstream, '--policy', at('odd.yaml', rule(agents))])
  assert.equal(odd.exitCode, 0, odd.err)
  const warning = 'rule "a": when.agent[2]: unknown agent "gptbto" (did you mean "gptbot"?)'
  const warned = odd.err.split('\n').filter((line) => line.includes('odd.yaml'))
  assert.equal(warned.length, 1, odd.err)
  assert.ok(warned[0]!.startsWith('warning: ') && warned[0]!.endsWith(`odd.yaml:3:43: ${warning}`), odd.err)
  // Signatures of one's own are known.
  const own = at('own.yaml', '[{id: acme, name: Acme, kind: agent, category: crawler, aliases: [acme-bot]}]')
  const config = at('g.yaml', `signatures: [${own}]`)
  const acme = at('acme.yaml', rule('agent: acme-bot'))
  const known = await check([...upstream, '--policy', acme, '--config', config])
  assert.deepEqual([known.exitCode, known.err.includes('acme')], [0, false], known.err)
  assert.match((await check([...upstream, '--policy', acme])).err, /unknown agent "acme-bot"/)
})

test('as JSON', async (t) => {
  const { check } = workbench(t)
  const good = JSON.parse(
    (await check(['--upstream', 'http://a', '--json'], { GATEHOUSE_ADMIN_KEY: SECRET })).out,
  )
  assert.deepEqual([good.valid, good.problems, good.warnings.length], [true, [], 1])
  const settings = new Map(good.settings.map((each: { name: string }) => [each.name, each]))
  assert.deepEqual(settings.get('proxy.upstreams[0].urls'), {
    ...{ name: 'proxy.upstreams[0].urls', value: ['http://a'], from: '--upstream' },
  })
  assert.deepEqual(settings.get('manage.admin_key'), {
    ...{ name: 'manage.admin_key', value: '<redacted>', from: 'GATEHOUSE_ADMIN_KEY' },
  })
  const bad = await check(['--upstream', 'app', '--json'])
  const { valid, problems } = JSON.parse(bad.out)
  assert.deepEqual(
    [bad.exitCode, bad.err, valid, problems.length, problems[0].where],
    [1, '', false, 1, '--upstream'],
  )
})

test('a file that cannot be read', async (t) => {
  const { check } = workbench(t)
  const { exitCode, err } = await check(['--config', '/there/is/none.yaml'])
  assert.deepEqual([exitCode, err], [1, 'settings: /there/is/none.yaml: no such file\n'])
})

test('started as a program', async (t) => {
  const { at } = workbench(t)
  const file = at('g.yaml', 'proxy: {upstream: "http://127.0.0.1:3000"}\n')
  const argv = [
    '-i',
    `PATH=${process.env['PATH']}`,
    `GATEHOUSE_CONFIG=${file}`,
    process.execPath,
    GATEHOUSE,
    'check',
  ]
  const good = spawnSync('env', argv, { encoding: 'utf8' })
  assert.equal(good.status, 0, good.stderr)
  assert.ok(good.stdout.startsWith('proxy:\n  listen: 0.0.0.0:8443 # default\n'))
  assert.equal(spawnSync('env', [...argv, '--listen', 'x'], { encoding: 'utf8' }).status, 1)
  assert.equal(spawnSync('env', [...argv, '--lisen', 'x'], { encoding: 'utf8' }).status, 2)
})

function workbench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-check-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return {
    at(name: string, text: string, mode = 0o644): string {
      const file = join(folder, name)
      writeFileSync(file, text, { mode })
      return file
    },
    async check(argv: readonly string[], env: Record<string, string> = {}) {
      const io = memoryIo('', { env })
      const exitCode = await runCli(COMMANDS, ['check', ...argv], io)
      return { exitCode, out: io.out, err: io.err }
    },
  }
}

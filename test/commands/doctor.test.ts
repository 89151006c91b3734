import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import type { CheckResult } from '../../src/commands/doctor/finding.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import { packSnapshotFile } from '../../src/plane/snapshot-file.ts'
import { packSnapshot } from '../../src/plane/snapshot-package.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { Store } from '../../src/store/store.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { memoryIo } from './memory-io.ts'

test('where all is well nothing is bad, and nothing is changed', async (t) => {
  const { folder, doctor } = bench(t)
  const upstream = await app(t)
  const findings = await doctor(['--upstream', upstream], 0)
  assert.deepEqual(
    findings.filter(({ state }) => state !== 'good').map(({ about }) => about),
    ['proxy.tls.certificates'],
  )
  for (const about of ['versions', 'clock', 'configuration', `upstream ${upstream}`])
    assert.ok(
      findings.some((each) => each.about === about),
      about,
    )
  assert.match(said(findings, 'database'), /is made at the first start/)
  await (await Store.open(`sqlite:${join(folder, 'gatehouse.db')}`)).close()
  const before = readFileSync(join(folder, 'gatehouse.db'))
  const again = await doctor(['--upstream', upstream], 0)
  assert.match(said(again, 'database'), /up to date.*\n.*is intact/)
  assert.deepEqual(readFileSync(join(folder, 'gatehouse.db')), before)
})

test('whatever is bad is named, with what to do', async (t) => {
  const { folder, doctor } = bench(t)
  const taken = await listening(t, createServer())
  const ca = await testCa()
  const leaf = await testLeaf(ca, ['shop.example.test'], Date.now() + 5 * 86_400_000 - 90 * 86_400_000)
  writeFileSync(join(folder, 'tls.pem'), leaf.certificate + leaf.key)
  writeFileSync(
    join(folder, 'gatehouse.db'),
    'no database at all, and long enough to be looked at '.repeat(100),
  )
  const findings = await doctor(
    [
      ...['--upstream', 'http://127.0.0.1:1', '--upstream', 'http://nowhere.invalid'],
      ...['--upstream', 'unix:/nowhere/app.sock', '--cert', join(folder, 'tls.pem')],
      ...['--listen', `127.0.0.1:${taken}`, '--manage', '203.0.113.7:9080'],
    ],
    1,
  )
  for (const [about, what] of [
    [`proxy.listen 127.0.0.1:${taken}`, /in use by another program/],
    ['manage.listen', /not an address of this machine/],
    ['upstream http://127.0.0.1:1', /no server listens there/],
    ['upstream http://nowhere.invalid', /the DNS knows no such name/],
    ['upstream unix:/nowhere', /this socket does not exist/],
    ['database', /./],
  ] as const) {
    const found = findings.find((each) => each.about.startsWith(about) && each.state === 'bad')
    assert.match(found?.what ?? `nothing of ${about}`, what)
    assert.ok((found?.fix ?? '').length > 10, about)
  }
})

test('warns about what works now and will cause trouble', async (t) => {
  const { folder, doctor } = bench(t)
  const late = await app(t, (_, response) => {
    response.setHeader('Date', new Date(Date.now() - 90_000).toUTCString()).end()
  })
  const mute = `http://127.0.0.1:${await listening(
    t,
    createServer((socket) => socket.end('hello\r\n\r\n')),
  )}`
  const ca = await testCa()
  const leaf = await testLeaf(ca, ['shop.example.test'], Date.now() - 83 * 86_400_000)
  writeFileSync(join(folder, 'tls.pem'), leaf.certificate + leaf.key)
  const findings = await doctor(
    ['--upstream', late, '--upstream', mute, '--cert', join(folder, 'tls.pem')],
    0,
  )
  assert.match(said(findings, `upstream ${late}`), /clock and this one are (89|90|91) s apart/)
  assert.match(said(findings, `upstream ${mute}`), /does not speak HTTP\/1\.1/)
  assert.match(said(findings, 'certificate'), /shop\.example\.test, good until/)
})

test('a database of a later version is left alone', async (t) => {
  const { folder, doctor } = bench(t)
  const url = `sqlite:${join(folder, 'gatehouse.db')}`
  await (await Store.open(url)).close()
  const database = await openDatabase(url, null, async (db) => {
    await sql`insert into migrations (name, at_ms) values ('9999-later', 1)`.execute(db)
  })
  await database.close()
  const findings = await doctor(['--upstream', await app(t)], 1)
  assert.match(said(findings, 'database'), /later version \(9999-later\)/)
})

test('doctor: a database from before the first release is reported with what to do', async (t) => {
  const { folder, doctor } = bench(t)
  const database = await openDatabase(`sqlite:${join(folder, 'gatehouse.db')}`, null, async (db) => {
    await sql`create table migrations (name text primary key, at_ms integer not null)`.execute(db)
    await sql`insert into migrations (name, at_ms) values ('0001-keys', 1)`.execute(db)
  })
  await database.close()
  const findings = await doctor(['--upstream', await app(t)], 1)
  assert.match(said(findings, 'database'), /before the first release \(0001-keys\)/)
})

test('engines that do not answer, and a data folder that is a file', async (t) => {
  const { folder, doctor } = bench(t)
  writeFileSync(join(folder, 'file'), '')
  const env = {
    GATEHOUSE_STORE_URL: 'postgres://gatehouse@127.0.0.1:1/gatehouse',
    GATEHOUSE_STORE_PASSWORD: PASSWORD,
    GATEHOUSE_STORE_ENCRYPTION_KEY: 'k'.repeat(43),
    GATEHOUSE_BUS_URL: 'nats://127.0.0.1:1',
    GATEHOUSE_BUS_PASSWORD: PASSWORD,
    GATEHOUSE_BUS_USER: 'gatehouse',
  }
  const findings = await doctor(['--role', 'manage', '--data', join(folder, 'file', 'data')], 1, env)
  assert.match(said(findings, 'database'), /cannot be reached \(ECONNREFUSED/)
  assert.match(said(findings, 'bus'), /cannot be reached/)
  assert.match(said(findings, 'data.dir'), /is not a folder/)
  assert.ok(!JSON.stringify(findings).includes(PASSWORD))
  assert.ok(!findings.some(({ about }) => about.startsWith('proxy.')))
})

test('a gateway that runs says itself how it is', async (t) => {
  const { doctor } = bench(t)
  const upstream = await app(t)
  const answers = { status: 'not-ready', reasons: ['no signatures yet'] }
  const health = await app(t, (_, response) => void response.writeHead(503).end(JSON.stringify(answers)))
  const findings = await doctor(['--upstream', upstream, '--manage', health.slice('http://'.length)], 1)
  assert.match(said(findings, 'manage.listen'), /in use, probably by the gateway/)
  assert.match(said(findings, 'the gateway that runs'), /not ready: no signatures yet/)
})

test('a configuration that cannot be read is said as check says it, and people get a list', async (t) => {
  const { folder, run } = bench(t)
  writeFileSync(join(folder, 'gatehouse.yaml'), 'proxy: {lisen: 1}\nmanage: {tls: 7}\n')
  const { exitCode, out } = await run(['--config', join(folder, 'gatehouse.yaml')])
  assert.equal(exitCode, 1)
  assert.match(out, /^✗ .*gatehouse\.yaml:1:\d+: .*lisen\b[\s\S]*?\(did you mean "listen"\?\)/m)
  assert.match(out, /^– the rest: is checked once/m)
  assert.match(out, /\n\d+ good, \d+ to look at, \d+ bad\n$/)
  for (const line of out.split('\n')) assert.ok(line.length <= 80 || !line.trim().includes(' '), line)
})

test('a proxy of a fleet is told what it starts with while NATS is unreachable', async (t) => {
  const { folder, doctor } = bench(t)
  const argv = ['--role', 'proxy', '--upstream', await app(t)]
  const at = (name: string) => join(folder, name)
  const findings = (env: Record<string, string> = {}) =>
    doctor(argv, 1, { GATEHOUSE_BUS_URL: 'nats://127.0.0.1:1', ...env })
  const about = 'first Snapshot'
  const document = makeSnapshot(7, { rules: [] }, 1_790_000_000_000)
  writeFileSync(at('bad.snapshot'), 'damaged')
  writeFileSync(at('good.snapshot'), await packSnapshotFile(document))
  // Each takes five seconds to give NATS up.
  const [waiting, serving, bad, good] = await Promise.all([
    findings(),
    findings({ GATEHOUSE_BUS_FIRST_SNAPSHOT: 'serve' }),
    findings({ GATEHOUSE_BUS_BOOTSTRAP_FILE: at('bad.snapshot') }),
    findings({ GATEHOUSE_BUS_BOOTSTRAP_FILE: at('good.snapshot') }),
  ])
  assert.match(said(waiting, about), /the proxy opens its ports for clients when NATS brings one/)
  assert.match(said(serving, about), /the policy of the fleet is not enforced/)
  assert.match(said(bad, 'bus.bootstrap_file'), /bad\.snapshot is not a Snapshot file/)
  assert.match(said(good, 'bus.bootstrap_file'), /good\.snapshot has Snapshot 7 of 2026-09-21/)
  assert.match(said(good, about), /comes from bus\.bootstrap_file/)
  mkdirSync(at('fleet'))
  writeFileSync(at('fleet/newest.snapshot'), await packSnapshot(document))
  assert.match(said(await findings(), about), /is on disk since/)
})

test('the reasons of a gateway that is not ready are named, of an earlier version too', async (t) => {
  const { doctor } = bench(t)
  const reasons = [{ code: 'upstream', detail: 'upstream app: no target is healthy' }, 'draining']
  const url = await app(t, (_, response) => {
    response.writeHead(503).end(JSON.stringify({ status: 'not-ready', reasons }))
  })
  const findings = await doctor(['--upstream', url, '--manage', new URL(url).host], 1)
  assert.equal(
    said(findings, 'the gateway that runs'),
    'is not ready: upstream app: no target is healthy (upstream); draining',
  )
})

function bench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-doctor-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const run = async (argv: readonly string[], env: Record<string, string> = {}) => {
    const io = memoryIo('', { env })
    const exitCode = await runCli(COMMANDS, ['doctor', ...argv], io)
    return { exitCode, out: io.out, err: io.err }
  }
  const doctor = async (argv: readonly string[], expected: number, env?: Record<string, string>) => {
    const usual = [
      ...(argv.includes('--data') ? [] : ['--data', folder]),
      ...(argv.includes('--listen') || argv.includes('--role') ? [] : ['--listen', '127.0.0.1:0']),
      ...(argv.includes('--manage') ? [] : ['--manage', '127.0.0.1:0']),
    ]
    const { exitCode, out, err } = await run([...argv, ...usual, '--json'], env)
    assert.equal(exitCode, expected, out + err)
    const { findings } = JSON.parse(out) as { findings: readonly CheckResult[] }
    for (const { state, fix, about } of findings)
      assert.equal(fix === null, state === 'good' || state === 'skipped', about)
    return findings
  }
  return { folder, run, doctor }
}

/** Everything that is reported about it. */
function said(findings: readonly CheckResult[], about: string): string {
  const found = findings.filter((each) => each.about.startsWith(about))
  return found.map(({ what }) => what).join('\n')
}

async function app(t: Test, answer: RequestListener = (_, response) => void response.end()): Promise<string> {
  return `http://127.0.0.1:${await listening(t, createHttpServer(answer))}`
}

async function listening(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

const PASSWORD = 'never-to-be-shown-to-any-reader'

import assert from 'node:assert/strict'
import { readdirSync, renameSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { softwareDocument } from '../../src/classify/known/software-document.ts'
import { loadSoftware } from '../../src/runtime/signatures/signature-files.ts'
import { type DnsQuestion, type DnsReply, DnsServer } from '../identity/dns-server.ts'
import { DocumentServer } from '../identity/document-server.ts'
import { mmdbOf } from '../identity/mmdb-writer.ts'
import { type Route, startApp } from './app.ts'
import { type GatehouseOptions, type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'

const ADMIN_KEY = 'an administrator of tests and of nothing else'
const [BOT, NET, LISTED] = ['HostBot/1.0', 'NetBot/1.0', 'ListBot/1.0']
const [CRAWLER, IMPOSTOR, SILENT] = ['66.249.64.7', '66.249.65.9', '66.249.66.1']
const CRAWLER_V6 = '2a00:1450:4001::7'

test('a crawler is verified by its host name from its second request on, and an impostor told', async (t) => {
  const dns = await DnsServer.start(t, zone)
  for (const command of ['up', 'proxy'] as const) {
    const asked = dns.questions.length
    const gate = await gateFor(t, {
      ...{ command, argv: command === 'up' ? ['--workers', '2'] : [] },
      variables: { GATEHOUSE_IDENTITY_RESOLVERS: dns.place },
    })
    assert.deepEqual(await visit(gate, BOT, CRAWLER), { verified: null, conflict: null }, 'it is not held up')
    await known(gate, 'confirmed', 1)
    const all = await Promise.all(Array.from({ length: 20 }, () => visit(gate, BOT, CRAWLER)))
    for (const each of all) assert.deepEqual(each, { verified: 'reverse-dns', conflict: null })
    assert.equal(dns.questions.length, asked + 2, 'for both workers once')

    await visit(gate, BOT, CRAWLER_V6)
    await known(gate, 'confirmed', 2)
    assert.equal((await visit(gate, BOT, CRAWLER_V6)).verified, 'reverse-dns')

    assert.deepEqual(await visit(gate, BOT, IMPOSTOR), { verified: null, conflict: null })
    await known(gate, 'unconfirmed', 1)
    assert.deepEqual(await visit(gate, BOT, IMPOSTOR), { verified: null, conflict: 'host-foreign' })

    await visit(gate, BOT, SILENT)
    await known(gate, 'failed', 1)
    assert.deepEqual(
      await visit(gate, BOT, SILENT),
      { verified: null, conflict: null },
      'without a negative answer',
    )

    const before = dns.questions.length
    for (const address of ['10.0.0.7', '192.168.1.1']) await visit(gate, BOT, address)
    for (const userAgent of ['curl/8.5.0', LISTED]) await visit(gate, userAgent, '66.249.67.1')
    assert.equal(dns.questions.length, before, 'other addresses are not looked up')
    await gate.stop()
  }
})

test('does not use DNS if it is turned off', async (t) => {
  const dns = await DnsServer.start(t, zone)
  const gate = await gateFor(t, {
    variables: { GATEHOUSE_IDENTITY_RESOLVERS: dns.place, GATEHOUSE_IDENTITY_REVERSE_DNS: 'false' },
  })
  for (let i = 0; i < 3; i++) assert.equal((await visit(gate, BOT, CRAWLER)).verified, null)
  assert.deepEqual(dns.questions, [])
})

test('networks are told by a file, anew when it changes, and by the last good one when it is broken', async (t) => {
  const file = join(temporaryFolder(t), 'asn.mmdb')
  const write = (bytes: Buffer) => {
    writeFileSync(`${file}.new`, bytes)
    renameSync(`${file}.new`, file)
  }
  write(networks(64500))
  const gate = await gateFor(t, {
    variables: { GATEHOUSE_IDENTITY_ASN_FILE: file, GATEHOUSE_IDENTITY_REVERSE_DNS: 'false' },
    expects: /not reloaded/,
  })
  assert.equal(await metric(gate, 'asn_file_built_timestamp_seconds'), 1_795_000_000)
  const conflict = async (address: string) => {
    await visit(gate, NET, address)
    await wait(200)
    return (await visit(gate, NET, address)).conflict
  }
  assert.equal(await conflict('66.249.64.1'), null)
  assert.equal(await conflict('67.0.0.1'), 'network-foreign')
  const reloaded = async (outcome: string, count: number) => {
    while ((await metric(gate, `reload_total{what="asn-file",outcome="${outcome}"}`)) < count) await wait(50)
  }
  write(networks(64501, 1_795_000_500))
  await reloaded('loaded', 1)
  assert.equal(await metric(gate, 'asn_file_built_timestamp_seconds'), 1_795_000_500)
  assert.equal(await conflict('66.249.64.2'), 'network-foreign')
  write(Buffer.from('no such file'))
  await reloaded('failed', 1)
  assert.equal(await metric(gate, 'reload_current{what="asn-file"}'), 0)
  assert.equal(await conflict('66.249.64.3'), 'network-foreign', 'by the one before')
})

test('a list is fetched, judged by, answered by, and there again after a restart without its server', async (t) => {
  const server = await DocumentServer.start(t, 'http')
  const url = server.url('/ips.json', 'localhost')
  server.serveJson('/ips.json', prefixes(['66.249.64.0/24', '66.249.65.0/24']))
  const data = temporaryFolder(t)
  const variables = {
    GATEHOUSE_IDENTITY_RANGES_REFRESH: '10m',
    GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true',
  }
  const options = { command: 'up', argv: ['--workers', '1', '--data', data], variables } as const
  const first = await gateFor(t, options, listed(url, ['66.249.64.0/24']))
  while ((await visit(first, LISTED, '66.249.65.1')).verified === null) await wait(50)
  assert.equal((await visit(first, LISTED, '66.249.64.1')).verified, 'ip-range')
  assert.equal((await visit(first, LISTED, '66.249.66.1')).conflict, 'address-foreign')
  while ((await detected(first, '66.249.65.1')) !== 'ip-range') await wait(50)
  assert.equal(await metric(first, 'published_ranges_fetches_total{outcome="new"}'), 1)
  assert.ok((await metric(first, 'published_ranges_age_seconds{agent="list-bot"}')) < 60)
  assert.equal(readdirSync(join(data, 'published-ranges')).length, 1)
  await first.stop()

  server.serve('/ips.json', (_request, response) => response.writeHead(500).end())
  const again = await gateFor(t, options, listed(url, ['66.249.64.0/24']))
  assert.equal((await visit(again, LISTED, '66.249.65.1')).verified, 'ip-range')
  await again.stop()

  const newer = await gateFor(t, options, listed(url, ['66.249.64.0/24'], tomorrow()))
  assert.equal((await visit(newer, LISTED, '66.249.65.1')).verified, null, 'a newer one came with signatures')
  await newer.stop()

  const never = await gateFor(t, { ...options, variables: {} }, listed(url, ['66.249.64.0/24']))
  assert.equal((await visit(never, LISTED, '66.249.65.1')).verified, null)
})

test('a list with other content is held back, and the log says what to do', async (t) => {
  const server = await DocumentServer.start(t, 'http')
  server.serveJson('/ips.json', prefixes(['67.0.0.0/24']))
  const gate = await gateFor(
    t,
    {
      variables: {
        GATEHOUSE_IDENTITY_RANGES_REFRESH: '10m',
        GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true',
      },
    },
    listed(server.url('/ips.json', 'localhost'), ['66.249.64.0/24']),
  )
  while ((await metric(gate, 'published_ranges_fetches_total{outcome="held-back"}')) === 0) await wait(50)
  assert.match(gate.said(), /put it into a file of signatures of your own.*was rejected/)
  assert.equal((await visit(gate, LISTED, '67.0.0.1')).conflict, 'address-foreign')
  assert.equal((await visit(gate, LISTED, '66.249.64.1')).verified, 'ip-range')
})

function zone({ name, type }: DnsQuestion): DnsReply {
  const held: Readonly<Record<string, string>> = {
    '7.64.249.66.in-addr.arpa PTR': 'crawl-7.bot.test',
    'crawl-7.bot.test A': CRAWLER,
    [`${'7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.4.0.5.4.1.0.0.a.2.ip6.arpa'} PTR`]: 'six.bot.test',
    'six.bot.test AAAA': CRAWLER_V6,
    // The owner of an address can give it any name.
    '9.65.249.66.in-addr.arpa PTR': 'crawl-7.bot.test',
  }
  if (name === '1.66.249.66.in-addr.arpa') return { code: 2 }
  const data = held[`${name} ${type}`]
  return data === undefined ? { code: 3 } : { records: [{ type, data }] }
}

function networks(asn: number, builtAtS = 1_795_000_000): Buffer {
  return mmdbOf(
    [
      ['66.249.64.0/24', { autonomous_system_number: asn, autonomous_system_organization: 'Net Inc.' }],
      ['67.0.0.0/8', { autonomous_system_number: 64999 }],
    ],
    { builtAtS },
  )
}

function listed(
  ranges_url: string,
  prefixes: readonly string[],
  date = new Date().toISOString().slice(0, 10),
) {
  // Of the same day, the one that was fetched is taken.
  return { ranges_url, ranges: { source: 'the test', date, prefixes } }
}

function tomorrow(): string {
  return new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)
}

function prefixes(ranges: readonly string[]): unknown {
  return {
    creationTime: '2026-11-22T10:00:00.000000',
    prefixes: ranges.map((each) => ({ ipv4Prefix: each })),
  }
}

/** Behind a proxy that says where its clients are. */
async function gateFor(t: Test, given: GatehouseOptions, list: object = {}): Promise<RunningGatehouse> {
  const who: Route = ({ headers }, response) => void response.end(JSON.stringify(headers))
  const app = await startApp(t, { '/who': who })
  const file = join(temporaryFolder(t), 'own.json')
  const agents = [
    ['host-bot', 'HostBot', { reverse_dns: ['.bot.test'] }],
    ['net-bot', 'NetBot', { asns: [64500] }],
    ['list-bot', 'ListBot', list],
  ] as const
  const signature = { source: 'the test', date: '2026-11-22' }
  const own = agents.map(([id, name, verification]) => {
    const signatures = [{ user_agent: `${name}/`, ...signature }]
    return { ...{ id, name, kind: 'agent', category: 'crawler' }, verification, signatures }
  })
  writeFileSync(file, JSON.stringify([...own, ...(await unpublished())]))
  const { variables, ...options } = given
  return startGatehouse(t, {
    ...{ upstream: app.url, ...options },
    settings: ['trusted_proxies: [127.0.0.1]'],
    variables: { GATEHOUSE_SIGNATURES: file, GATEHOUSE_ADMIN_KEY: ADMIN_KEY, ...variables },
  })
}

/** The built-in agents without the URLs of their lists, so that a test fetches nothing from outside. */
async function unpublished(): Promise<readonly object[]> {
  const published = (await loadSoftware(null)).filter(({ verification }) => verification.rangesUrl !== null)
  return published.map((software) => {
    return softwareDocument({ ...software, verification: { ...software.verification, rangesUrl: null } })
  })
}

async function visit(gate: RunningGatehouse, userAgent: string, from: string) {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, string>>()
  const agent = new Agent({ keepAlive: false, ca: gate.ca })
  const headers = { 'user-agent': userAgent, 'x-forwarded-for': from }
  request(`${gate.url}/who`, { headers, agent }, (response) => json(response).then(resolve as never, reject))
    .on('error', reject)
    .end()
  const told = await promise
  return { verified: told['x-agent-verified'] ?? null, conflict: told['x-agent-conflict'] ?? null }
}

/** What the management plane says of the same. */
async function detected({ manage }: RunningGatehouse, from: string): Promise<unknown> {
  const answer = await fetch(`${manage}/v1/detect`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ user_agent: LISTED, ip: from }),
  })
  return ((await answer.json()) as { verified?: unknown }).verified
}

/** Workers are told a moment after it is counted. */
async function known(gate: RunningGatehouse, outcome: string, count: number): Promise<void> {
  while ((await metric(gate, `address_lookups_total{outcome="${outcome}"}`)) < count) await wait(20)
  await wait(200)
}

/** 0 where it is not there. */
async function metric(gate: RunningGatehouse, name: string): Promise<number> {
  const lines = (await (await fetch(`${gate.manage}/metrics`)).text()).split('\n')
  const line = lines.find((each) => each.startsWith(`gatehouse_${name} `))
  return Number(line?.split(' ').at(-1) ?? 0)
}

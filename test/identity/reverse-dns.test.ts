import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { test } from 'tap'
import { type HostFinding, plainAddress, ReverseDns } from '../../src/identity/address/reverse-dns.ts'
import { type DnsQuestion, type DnsReply, type DnsRecord, DnsServer, encodeAnswer } from './dns-server.ts'

const CRAWLER = '203.0.113.7'
const CRAWLER_V6 = '2001:db8::7'
const NO_HOSTS: Pick<HostFinding, 'hosts'> = { hosts: [] }

test('a name is confirmed that has the address, in one form, and no other', async (t) => {
  const zone: Zone = {
    '7.113.0.203.in-addr.arpa PTR': ['Crawl-7.Bot.Test'],
    'crawl-7.bot.test A': ['198.51.100.1', CRAWLER],
    '8.113.0.203.in-addr.arpa PTR': ['crawl-7.bot.test'],
    '9.113.0.203.in-addr.arpa PTR': ['nowhere.bot.test'],
    '7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa PTR': ['six.bot.test'],
    'six.bot.test AAAA': ['2001:db8:0:0::7'],
    'six.bot.test A': [CRAWLER],
  }
  const { dns, server } = await served(t, (question) => inZone(zone, question))
  assert.deepEqual(await dns.find(CRAWLER), { hosts: ['crawl-7.bot.test'], outcome: 'confirmed', ttlS: 300 })
  assert.deepEqual(await dns.find(CRAWLER_V6), { hosts: ['six.bot.test'], outcome: 'confirmed', ttlS: 300 })
  assert.equal(server.questions.at(-1)!.type, 'AAAA')
  assert.deepEqual(await dns.find('203.0.113.8'), { ...NO_HOSTS, outcome: 'unconfirmed', ttlS: 0 })
  assert.deepEqual(await dns.find('203.0.113.9'), { ...NO_HOSTS, outcome: 'unconfirmed', ttlS: 0 })
  assert.deepEqual(await dns.find('203.0.113.10'), { ...NO_HOSTS, outcome: 'no-name', ttlS: 0 })
})

test('all of its names are told that are confirmed, and no known answer hides one that is lost', async (t) => {
  const forward: Record<string, DnsReply> = {
    'a.test.example': { records: [{ type: 'A', data: CRAWLER, ttl: 900 }] },
    'b.test.example': { records: [{ type: 'A', data: CRAWLER, ttl: 60 }] },
    'c.test.example': { code: 2 },
  }
  let names = ['a.test.example', 'b.test.example', 'a.test.example', 'A.test.example']
  const { dns } = await served(t, ({ name, type }) =>
    type === 'PTR' ? ptr(...names) : (forward[name] ?? { code: 3 }),
  )
  const both = { hosts: ['a.test.example', 'b.test.example'], ttlS: 60 }
  assert.deepEqual(await dns.find(CRAWLER), { ...both, outcome: 'confirmed' })
  names = ['a.test.example', 'c.test.example', 'd.test.example', 'b.test.example']
  assert.deepEqual(await dns.find(CRAWLER), { ...both, outcome: 'failed' })
})

test('does not look up invalid host names', async (t) => {
  const names = [
    'a b.test',
    'localhost',
    '',
    '*.bot.test',
    'bot.test/x',
    'ü.test',
    'a..test',
    '-a.test',
    'x'.repeat(60),
  ]
  const { dns, server } = await served(t, ({ type }) =>
    type === 'PTR' ? ptr(...names.filter((name) => !name.includes('..'))) : a(CRAWLER),
  )
  assert.deepEqual(await dns.find(CRAWLER), { ...NO_HOSTS, outcome: 'unconfirmed', ttlS: 0 })
  assert.deepEqual(
    server.questions.map(({ type }) => type),
    ['PTR'],
  )
})

test('of thousands of names a few are looked at, and it is not known what the others are', async (t) => {
  const { dns, server } = await served(t, ({ type, isUdp, name }) => {
    if (type !== 'PTR') return name === 'n1.bot.test' ? a(CRAWLER) : { code: 3 }
    // More than fits into a datagram.
    return isUdp ? { isCut: true } : ptr(...Array.from({ length: 1_500 }, (_, at) => `n${at}.bot.test`))
  })
  assert.deepEqual(await dns.find(CRAWLER), { hosts: ['n1.bot.test'], outcome: 'too-many', ttlS: 300 })
  assert.deepEqual(await dns.find('203.0.113.8'), { hosts: [], outcome: 'too-many', ttlS: 0 })
  assert.equal(server.questions.filter(({ type }) => type === 'A').length, 8)
})

test('of thousands of addresses some are looked at', async (t) => {
  const many = Array.from({ length: 3_000 }, (_, at) => `198.18.${at >> 8}.${at & 255}`)
  const { dns } = await served(t, ({ type, isUdp }) => {
    if (type === 'PTR') return ptr('a.bot.test')
    return isUdp ? { isCut: true } : a(...many, CRAWLER)
  })
  assert.deepEqual(await dns.find(CRAWLER), { hosts: [], outcome: 'too-many', ttlS: 0 })
})

test('aliases lead to a name, and round in circles to none', async (t) => {
  const chain = Array.from({ length: 30 }, (_, at) => ({
    ...(at > 0 && { name: `c${at}.bot.test` }),
    type: 'CNAME' as const,
    data: `c${at + 1}.bot.test`,
  }))
  const { dns } = await served(t, ({ name, type }) => {
    if (type === 'PTR') {
      // RFC 2317: a provider hands a few addresses on.
      const own = name.startsWith('7.') ? 'chain.bot.test' : 'ring.bot.test'
      return {
        records: [
          { type: 'CNAME', data: `x.${name}` },
          { name: `x.${name}`, type, data: own },
        ],
      }
    }
    if (name === 'chain.bot.test')
      return { records: [...chain, { name: 'c30.bot.test', type: 'A', data: CRAWLER }] }
    return { records: [{ type: 'CNAME', data: 'ring.bot.test' }] }
  })
  assert.deepEqual((await dns.find(CRAWLER)).hosts, ['chain.bot.test'])
  assert.deepEqual(await dns.find('203.0.113.8'), { ...NO_HOSTS, outcome: 'unconfirmed', ttlS: 0 })
})

test('a server that is silent, broken or refuses is not taken for one that says no', async (t) => {
  const replies: readonly (readonly [reply: (question: DnsQuestion) => DnsReply, outcome: string])[] = [
    [() => null, 'late'],
    [() => ({ code: 2 }), 'failed'],
    [() => ({ code: 5 }), 'failed'],
    [() => ({ code: 3 }), 'no-name'],
    [() => ({}), 'no-name'],
    [() => Buffer.from('no message'), 'failed'],
    [({ message }) => encodeAnswer(message, ptr('a.bot.test')).subarray(0, 40), 'failed'],
  ]
  let reply = replies[0]![0]
  const { dns } = await served(t, (question) => (question.type === 'PTR' ? reply(question) : a(CRAWLER)))
  for (const [each, outcome] of replies) {
    reply = each
    assert.deepEqual(await dns.find(CRAWLER), { ...NO_HOSTS, outcome, ttlS: 0 })
  }
})

test('ignores an answer to another question', async (t) => {
  const { dns } = await served(t, ({ message, type }) => {
    const wrongId = (message.readUInt16BE(0) + 1) & 0xffff
    const wrong = encodeAnswer(message, type === 'PTR' ? ptr('evil.test.example') : a('192.0.2.1'), wrongId)
    return [wrong, wrong, encodeAnswer(message, type === 'PTR' ? ptr('good.bot.test') : a(CRAWLER))]
  })
  assert.deepEqual((await dns.find(CRAWLER)).hosts, ['good.bot.test'])
})

test('whatever takes longer than it may is late, and what is closed comes to nothing', async (t) => {
  const server = await DnsServer.start(t, () => null)
  const slow = new ReverseDns({ resolvers: [server.place], queryMs: 60_000, timeoutMs: 50 })
  assert.equal((await slow.find(CRAWLER)).outcome, 'late')
  const patient = new ReverseDns({ resolvers: [server.place], queryMs: 60_000, timeoutMs: 60_000 })
  const found = patient.find(CRAWLER)
  patient.close()
  assert.equal((await found).outcome, 'failed')
  slow.close()
})

test('nothing is ever confirmed that the forward answer does not have', async (t) => {
  let names: readonly string[] = []
  let forward: ReadonlyMap<string, readonly string[]> = new Map()
  const { dns } = await served(t, ({ name, type }) =>
    type === 'PTR' ? ptr(...names) : a(...(forward.get(name) ?? [])),
  )
  const hosts = fc.constantFrom('a.test.example', 'b.test.example', 'c.bot.test', 'localhost', 'd.bot.test')
  const addresses = fc.array(fc.constantFrom(CRAWLER, '203.0.113.70', '203.0.113.1', '10.0.0.1'), {
    maxLength: 3,
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(hosts, { maxLength: 4 }),
      fc.array(fc.tuple(hosts, addresses)),
      async (said, held) => {
        names = said
        forward = new Map(held)
        const finding = await dns.find(CRAWLER)
        const right = new Set(
          said.filter((name) => name !== 'localhost' && forward.get(name)?.includes(CRAWLER)),
        )
        assert.deepEqual(new Set(finding.hosts), right)
        assert.equal(finding.outcome === 'confirmed', right.size > 0)
      },
    ),
    { numRuns: 200 },
  )
})

test('an address has one form', async () => {
  const forms: readonly (readonly [string, string | null])[] = [
    ['203.0.113.7', CRAWLER],
    ['::ffff:203.0.113.7', CRAWLER],
    ['::FFFF:cb00:7107', CRAWLER],
    ['2001:0DB8:0:0:0:0:0:7', CRAWLER_V6],
    ['203.0.113', null],
    ['0xcb.0.113.7', null],
    ['fe80::1%eth0', null],
    ['', null],
    ['bot.test', null],
  ]
  for (const [text, plain] of forms) assert.equal(plainAddress(text), plain, text)
})

type Zone = Readonly<Record<string, readonly string[]>>

async function served(t: Parameters<typeof DnsServer.start>[0], answer: (question: DnsQuestion) => DnsReply) {
  const server = await DnsServer.start(t, answer)
  const dns = new ReverseDns({ resolvers: [server.place], queryMs: 250, timeoutMs: 10_000 })
  t.teardown(() => dns.close())
  return { server, dns }
}

function inZone(zone: Zone, { name, type }: DnsQuestion): DnsReply {
  const held = zone[`${name} ${type}`]
  return held === undefined ? { code: 3 } : { records: held.map((data) => ({ type, data })) }
}

function ptr(...names: readonly string[]): { readonly records: readonly DnsRecord[] } {
  return { records: names.map((data) => ({ type: 'PTR', data })) }
}

function a(...addresses: readonly string[]): { readonly records: readonly DnsRecord[] } {
  return { records: addresses.map((data) => ({ type: 'A', data })) }
}

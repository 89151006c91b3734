import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { test } from 'tap'
import { Traffic } from '../../src/classify/verdict/traffic.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import { ApiKeys, newKey, newSecret } from '../../src/manage/auth/api-keys.ts'
import { ACCESS_PREFIX, GnapTokens } from '../../src/manage/auth/gnap/gnap-tokens.ts'
import { MinuteThrottle } from '../../src/manage/auth/minute-throttle.ts'
import { Trust } from '../../src/manage/auth/trust.ts'
import { InFlight } from '../../src/manage/mcp/in-flight.ts'
import { RecentDetections } from '../../src/manage/judging/detections.ts'
import { FailureBudget } from '../../src/identity/verify/failure-budget.ts'
import { FetchPlaces } from '../../src/identity/fetch/fetch-places.ts'
import { KeyBook } from '../../src/identity/keys/key-book.ts'
import { PlaceBook } from '../../src/identity/address/place-book.ts'
import { ReplayMemory } from '../../src/identity/verify/replay-memory.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { type Connection, NOTHING_KNOWN } from '../../src/proxy/connection/connection.ts'
import { judge } from '../../src/proxy/request/judge.ts'
import { RateLimiter } from '../../src/proxy/request/rate-limiter.ts'
import { memoryInUse } from '../capture/memory.ts'
import { startGate } from '../proxy/test-gate.ts'
import { settingsFor } from '../proxy/upstream-fixture.ts'
import { startHolder } from './holder.ts'
import { address4, address6, hex, ja4Of } from './made-up.ts'
import { startVictim } from './victim.ts'
import { IS_WHOLE, shareOf } from './whole.ts'

/** More than the largest memory of names that is not made smaller here. */
const WARMING = 10_000
const REQUESTS = IS_WHOLE ? 100_000 : 6_000
const ON_THE_WIRE = IS_WHOLE ? 30_000 : 1_000

test('requests of which no two have anything in common leave no more behind than half of them', {
  timeout: 300_000,
}, async (t) => {
  const knowledge = await loadKnowledge(null, null)
  let last: Sighting | null = null
  const policy = {
    rules: ['address', 'fingerprint', 'agent'].map((per) => ({
      ...{ name: per, when: { expression: `request.query.endsWith("${per}")` } },
      action: { rate_limit: { requests: 5, window: '1h', per } },
    })),
  }
  const { context } = await startGate(t, {
    ...{ upstreams: [settingsFor(['http://127.0.0.1:9'])], knowledge, policy },
    context: {
      // Smaller than they are, to be full soon.
      ...{ traffic: new Traffic(2_000, 500), limiter: new RateLimiter(2_000) },
      recorder: {
        record: (sighting) => {
          last = sighting
        },
      },
    },
  })
  const flood = (from: number, to: number) => {
    for (let number = from; number < to; number++)
      judge(context, {
        connection: connectionOf(number),
        head: headOf(number),
        authority: `h${number}.example`,
      })
    return memoryInUse()
  }
  flood(0, WARMING)
  const before = flood(WARMING, WARMING + REQUESTS)
  const after = flood(WARMING + REQUESTS, WARMING + 2 * REQUESTS)
  assert.ok(last !== null)
  t.comment(`${REQUESTS} requests more: ${((after - before) / 1e6).toFixed(1)} MB more`)
  assert.ok(after - before < 3_000_000, `${after - before} bytes more`)
})

/** What each of them is flooded with, `number` by `number`, and how often until it is full for sure. */
const MEMORIES: readonly {
  readonly name: string
  readonly full: number
  make(): (number: number) => unknown
}[] = [
  {
    name: 'clients and hellos',
    full: 70_000,
    make() {
      const traffic = new Traffic()
      return (number) => [traffic.of(address6(number), ja4Of(number), 'x'), traffic.ofHello(ja4Of(number))]
    },
  },
  {
    name: 'keys of rate limits',
    full: 100_000,
    make() {
      const limiter = new RateLimiter()
      const limit = { requests: 1, windowMs: 3_600_000, burst: 1 }
      return (number) => limiter.take(`address ${address6(number)} rule`, limit, 1)
    },
  },
  {
    name: 'addresses that fail to prove who they are',
    full: 70_000,
    make() {
      const budget = new FailureBudget()
      return (number) => budget.failed(address6(number), null, 1_000)
    },
  },
  {
    name: 'places of addresses',
    full: 70_000,
    make() {
      const book = new PlaceBook()
      return (number) =>
        book.take({
          ...{ kind: 'place', address: address6(number), names: [`h${number}.example`], isConfirmed: false },
          ...{ network: null, why: null, untilMs: 2_000_000, askAgainMs: 2_000_000 },
        } as never)
    },
  },
  {
    name: 'keys of strangers',
    full: 20_000,
    make() {
      const book = new KeyBook()
      return (number) =>
        book.take({
          ...{ kind: 'keys', agentId: `https://a${number}.example`, keys: [], why: 'no document' },
          ...{ askAgainMs: 2_000, freshUntilMs: 2_000, untilMs: 2_000_000 },
        } as never)
    },
  },
  {
    name: 'uses of signatures',
    full: 140_000,
    make() {
      const memory = new ReplayMemory()
      return (number) =>
        memory.claim(
          {
            ...{
              id: hex(number, 40),
              thumbprint: hex(number, 43),
              holder: null,
              createdS: 1 + (number >> 4),
            },
            ...{ goodUntilMs: 1e12, isListed: false },
          } as never,
          1_000,
        )
    },
  },
  {
    name: 'API keys that there are not',
    full: 11_000,
    make() {
      const keys = new ApiKeys({ byHash: async () => null, used: async () => undefined } as never)
      return () => keys.find(newKey(), 1)
    },
  },
  {
    name: 'networks that fail to sign in',
    full: 21_000,
    make() {
      const throttle = new MinuteThrottle(10)
      return (number) => throttle.count(address6(number), 1_000)
    },
  },
  {
    name: 'tokens of GNAP that there are not',
    full: 11_000,
    make() {
      const tokens = new GnapTokens({ byHash: async () => null } as never, {} as never, null)
      return () => tokens.find(newSecret(ACCESS_PREFIX))
    },
  },
  {
    name: 'untrusted keys and agents',
    full: 11_000,
    make() {
      const trust = new Trust({ of: async () => null } as never, () => 1_000)
      return (number) => trust.scopesOfAgent(`https://a${number}.example/${hex(number, 64)}`)
    },
  },
  {
    name: 'hosts that documents are fetched from',
    full: 11_000,
    make() {
      const places = new FetchPlaces()
      const signal = new AbortController().signal
      return async (number) => (await places.take(`${hex(number, 40)}${number}.example`, 1_000, signal))?.()
    },
  },
  {
    name: 'requests of MCP, by ids that callers choose',
    full: 11_000,
    make() {
      const inFlight = new InFlight()
      return (number) => {
        const { leave } = inFlight.enter('key_1', hex(number, 64))
        inFlight.cancel('key_1', hex(number + 1, 64))
        leave()
      }
    },
  },
  {
    name: 'answers of /detect, by ids that callers choose',
    full: 21_000,
    make() {
      const detections = new RecentDetections(null)
      const judged = { verdict: 'unknown', agentId: null, ja4: null, ja4s: null, ja4h: null, ja4x: null }
      return (number) => detections.keep(hex(number, 64), judged)
    },
  },
]

test('memories of what others send hold no more of them after another flood', {
  timeout: 600_000,
}, async (t) => {
  for (const { name, full, make } of shareOf(MEMORIES, 3, 0)) {
    const take = make()
    const flood = async (from: number, to: number) => {
      for (let number = from; number < to; number++) {
        const taken = take(number)
        if (taken instanceof Promise) await taken
      }
      return memoryInUse()
    }
    const empty = memoryInUse()
    const before = await flood(0, full)
    const after = await flood(full, full * (IS_WHOLE ? 8 : 2))
    t.comment(
      `${name}: ${((before - empty) / 1e6).toFixed(1)} MB for ${full}, ${((after - before) / 1e6).toFixed(1)} MB more`,
    )
    // Maps double what they have room for.
    assert.ok(after - before < Math.max(2_000_000, before - empty), `${name}: ${after - before} bytes more`)
    take(full)
  }
})

test('what is made up has no labels of its own in metrics, and no memory, whatever it is', {
  timeout: 300_000,
}, async (t) => {
  const app = await startHolder(t)
  const victim = await startVictim(t, { upstream: app.url, settings: { trustedProxies: ['127.0.0.0/8'] } })
  await requests(victim.plainPort, 0, 50)
  const before = await victim.read()
  await requests(victim.plainPort, 50, 50 + ON_THE_WIRE)
  const between = await victim.read()
  await requests(victim.plainPort, 50 + ON_THE_WIRE, 50 + 2 * ON_THE_WIRE)
  const after = await victim.read()
  assert.deepEqual(Object.keys(after.metrics).toSorted(), Object.keys(before.metrics).toSorted())
  const more = after.heldBytes - between.heldBytes
  t.comment(`${Object.keys(after.metrics).length} series; ${(more / 1e6).toFixed(1)} MB more`)
  assert.ok(more < 12_000_000, `${more} bytes`)
})

test('the Node that is asked for does not give strings of digits one hash after the other', async () => {
  // CVE-2025-27209 and CVE-2026-21717: such strings, or all, fell together by choice before 24.14.1.
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8'))
  assert.equal(engines.node, '>=24.14.1')
  const [major, minor, patch] = process.versions.node.split('.').map(Number)
  assert.ok(major! * 1e6 + minor! * 1e3 + patch! >= 24_014_001, process.version)
})

function connectionOf(number: number): Connection {
  const address = number % 2 === 0 ? address4(number) : address6(number)
  const ja4 = ja4Of(number)
  return {
    ...{ id: number, address, port: 1, peerAddress: address, localPort: 443, localAddress: '' },
    ...{
      protocol: 'h2',
      isTls: true,
      serverName: null,
      conduct: null,
      introduction: null,
      admittedAuthority: null,
      isTrusted: false,
      isJa4Hop: false,
    },
    print: {
      ...NOTHING_KNOWN,
      ...{ ja4, stable: `g${ja4}`, ja4s: `t130200_1301_${hex(number, 12)}`, ja4x: `${hex(number, 12)}_0_0` },
      ...{ http2: `1:${number}|${number}|0|m,a,s,p`, noHello: null, ja4Source: 'own' },
    } as Connection['print'],
  }
}

function headOf(number: number) {
  const per = ['address', 'fingerprint', 'agent'][number % 3]
  const rawHeaders = [
    ...['host', `h${number}.example`, 'user-agent', `bot-${number}/1.0 (+https://b${number}.example)`],
    ...[`x-${hex(number, 20)}`, hex(number, 50), 'cookie', `c${number}=${number}`, 'referer', `/r${number}`],
    ...['accept-language', `x${number}`, 'x-agent-name', hex(number, 12), 'traceparent', hex(number, 55)],
  ]
  return {
    method: `M${hex(number, 8)}`,
    target: `/${hex(number, 30)}?${per}`,
    version: '20',
    rawHeaders,
    hasOddNames: false,
  } as const
}

/** Pipelined in HTTP/1.1, on a few connections. */
async function requests(port: number, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += 50) {
    const socket = net.connect(port, '127.0.0.1')
    const texts = Array.from({ length: Math.min(50, to - at) }, (_, index) => {
      const number = at + index
      const isLast = index === Math.min(50, to - at) - 1
      return [
        `GET /${hex(number, 200)}?${number} HTTP/1.1`,
        `Host: h${number}.example`,
        `User-Agent: bot-${number}/1 ${hex(number, 300)}`,
        `X-Forwarded-For: ${address6(number)}`,
        `X-JA4-Fingerprint: ${ja4Of(number)}`,
        `X-${hex(number, 40)}: ${hex(number, 100)}`,
        `Cookie: c${number}=${hex(number, 100)}`,
        `Traceparent: 00-${hex(number, 32)}-${hex(number, 16)}-01`,
        `Signature-Agent: "https://a${number}.example"`,
        `Signature-Input: sig=("@authority");created=1;keyid="${hex(number, 43)}";tag="web-bot-auth"`,
        `Signature: sig=:${'A'.repeat(86)}==:`,
        ...(isLast ? ['Connection: close'] : []),
        '\r\n',
      ].join('\r\n')
    })
    socket.write(texts.join(''))
    let heard = ''
    for await (const chunk of socket.setEncoding('latin1')) heard += chunk
    assert.ok(heard.split('HTTP/1.1 200').length > 1, heard.slice(0, 200))
  }
}

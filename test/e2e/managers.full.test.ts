import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { feedKeyOf, makeFeedPrivateKey, parseFeedPrivateKey, signFeed } from '../../src/plane/feed.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { freshUrl } from '../store/databases.ts'
import { Relay } from '../store/relay.ts'
import { folderFor, freshBusName, startNats, startPostgres } from './engines.ts'
import { ADMIN_KEY, asked, eventually, startManager } from './fleet.ts'
import type { ServingProcess } from './gatehouse.ts'
import { skipped } from './programs.ts'

const skip = skipped('nats-server')

// How managers, and what they have acknowledged, survive a failing database.

test('PostgreSQL is killed again and again while managers are written to: what was acknowledged is there', {
  skip,
}, async (t) => {
  const postgres = await startPostgres(t)
  const managers = await startManagers(t, [postgres.url, postgres.url])
  const writing = startWriting(managers)
  for (let round = 0; round < 3; round++) {
    const before = writing.made.length
    await eventually(async () => writing.made.length > before + 20)
    await postgres.kill()
    await wait(500)
    await postgres.start()
  }
  const before = writing.made.length
  await eventually(async () => writing.made.length > before + 20)
  await writing.stop()
  const there = await namesOf(managers[1]!)
  assert.deepEqual(
    writing.made.filter((name) => !there.has(name)),
    [],
  )
  assert.deepEqual([...writing.statuses].toSorted(), [201, 503])
  await eventually(async () => (await leaders(managers)).length === 1)
})

test('a leader whose network swallows everything leads no more, says so, and is back when that is over', {
  skip,
}, async (t) => {
  const storeUrl = await freshUrl('postgres', t)
  const relay = await Relay.before(storeUrl)
  t.teardown(() => relay.stop())
  const [first] = await startManagers(t, [relay.url])
  await eventually(async () => (await leaders([first!])).length === 1)
  const [second] = await startManagers(t, [storeUrl], first!)
  assert.deepEqual(await leaders([first!, second!]), [first])
  relay.stall(true)
  await eventually(async () => (await leaders([first!, second!]))[0] === second)
  assert.deepEqual(await leaders([first!, second!]), [second], 'never two')
  // It is there, and says why it cannot answer.
  assert.equal((await fetch(`${first!.manage}/health/live`)).status, 200)
  const metrics = await (await fetch(`${first!.manage}/metrics`)).text()
  assert.match(metrics, /^gatehouse_leader 0$/m)
  assert.match(metrics, /^gatehouse_leader_changes_total 2$/m)
  assert.equal(await write(first!, 'into the void'), 503)
  assert.equal(await write(second!, 'elsewhere'), 201)
  relay.stall(false)
  await eventually(async () => (await write(first!, 'again')) === 201)
  assert.ok((await namesOf(first!)).has('elsewhere'))
  assert.deepEqual(await leaders([first!, second!]), [second])
  // The one that leads is lost with its machine.
  await second!.kill()
  await eventually(async () => (await leaders([first!])).length === 1)
})

test('callers and the leader wait for a slow database', { skip }, async (t) => {
  const relay = await Relay.before(await freshUrl('postgres', t))
  t.teardown(() => relay.stop())
  const managers = await startManagers(t, [relay.url, relay.url])
  await eventually(async () => (await leaders(managers)).length === 1)
  const before = await leaders(managers)
  relay.delay(250)
  const statuses = await Promise.all(managers.flatMap((each) => [write(each, 'slow'), write(each, 'slower')]))
  assert.deepEqual(statuses, [201, 201, 201, 201])
  await wait(4_000) // longer than the lease of the leader
  assert.deepEqual(await leaders(managers), before, 'it is slow, and not away')
  const atMs = performance.now()
  assert.equal((await fetch(`${managers[0]!.manage}/health/live`)).status, 200)
  assert.ok(performance.now() - atMs < 2_000, 'a probe waits for no database')
  relay.delay(0)
  assert.equal(await write(managers[1]!, 'fast'), 201)
})

test('every manager has what others published, so the next leader loses nothing', { skip }, async (t) => {
  const key = parseFeedPrivateKey(makeFeedPrivateKey())
  const ca = await testCa()
  const leaf = await testLeaf(ca, ['localhost'])
  const server = createServer({ cert: leaf.certificate, key: leaf.key }, (_, response) => {
    response.end(signFeed(FEED, [key]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const folder = folderFor(t, 'feed')
  const caFile = join(folder, 'ca.pem')
  writeFileSync(caFile, ca.certificate)
  const url = `https://localhost:${(server.address() as AddressInfo).port}/acme.json`
  const trust = { public_keys: feedKeyOf(key).text, ca_file: caFile, allow_private: true }
  const config = join(folder, 'fleet.json')
  writeFileSync(config, JSON.stringify({ feeds: [{ name: 'acme', url, ...trust }] }))
  const storeUrl = await freshUrl('postgres', t)
  const managers = await startManagers(t, [storeUrl, storeUrl], null, { GATEHOUSE_CONFIG: config })
  const judgedBy = async (manager: ServingProcess) =>
    (await asked(manager, 'POST', '/v1/detect', { user_agent: 'acme-feed-bot/1.0' }))['agent_id']
  for (const manager of managers) {
    await eventually(async () =>
      /^gatehouse_feed_version\{feed="acme"\} 1$/m.test(
        await (await fetch(`${manager.manage}/metrics`)).text(),
      ),
    )
    await eventually(async () => (await judgedBy(manager)) === 'acme-feed-bot')
  }
  server.close()
  server.closeAllConnections()
  const [leader] = await leaders(managers)
  const other = managers.find((each) => each !== leader)!
  await leader!.kill()
  await eventually(async () => (await leaders([other])).length === 1)
  for (let time = 0; time < 10; time++) {
    assert.equal(await judgedBy(other), 'acme-feed-bot')
    await wait(100)
  }
})

/** One for each URL of a database; `beside`: on the bus of that manager. */
async function startManagers(
  t: Test,
  urls: readonly string[],
  beside: ServingProcess | null = null,
  variables: NodeJS.ProcessEnv = {},
): Promise<readonly ServingProcess[]> {
  const bus = (beside === null ? null : BUSES.get(beside)) ?? {
    nats: (await startNats(t)).url,
    bus: freshBusName(),
  }
  const managers: ServingProcess[] = []
  for (const postgres of urls) {
    const manager = await startManager(t, { ...bus, postgres, expects: OF_A_LOST_DATABASE }, variables)
    BUSES.set(manager, bus)
    managers.push(manager)
  }
  return managers
}

interface Writing {
  /** The names of keys that were acknowledged. */
  readonly made: readonly string[]
  /** What was answered. */
  readonly statuses: ReadonlySet<number>
  stop(): Promise<void>
}

/** Some at a time; what fails is tried again at the next manager, as the same request. */
function startWriting(managers: readonly ServingProcess[]): Writing {
  const made: string[] = []
  const statuses = new Set<number>()
  let isStopped = false
  let count = 0
  const run = async () => {
    while (!isStopped) {
      const name = `key ${count++}`
      for (let turn = 0; ; turn++) {
        const status = await write(managers[turn % managers.length]!, name, {
          'idempotency-key': name.replace(' ', '-'),
        }).catch(closedMeanwhile)
        // 409: the one before is still at it, or its end is not known yet.
        if (status !== 409 && status !== null) statuses.add(status)
        if (status === 201) break
        if (isStopped) return
        await wait(100)
      }
      made.push(name)
      await wait(5)
    }
  }
  const running = Promise.all([run(), run(), run(), run()])
  return {
    ...{ made, statuses },
    async stop() {
      isStopped = true
      await running
    },
  }
}

/** `null`: the manager closed the connection while the client used it, so whether it has read the request is unknown. */
function closedMeanwhile(error: unknown): null {
  const { cause } = error as { readonly cause?: { readonly code?: string } }
  if (cause?.code !== 'UND_ERR_SOCKET') throw error
  return null
}

async function write(
  { manage }: ServingProcess,
  name: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const response = await fetch(`${manage}/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ name, access: 'read' }),
  })
  await response.arrayBuffer()
  return response.status
}

async function namesOf(manager: ServingProcess): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  for (let cursor = ''; ; ) {
    const { keys, next_cursor } = await asked(manager, 'GET', `/v2/keys?limit=50${cursor}`)
    for (const { name } of keys) names.add(name)
    if (next_cursor === null) return names
    cursor = `&cursor=${encodeURIComponent(next_cursor)}`
  }
}

async function leaders(managers: readonly ServingProcess[]): Promise<readonly ServingProcess[]> {
  const leads = await Promise.all(
    managers.map(async (each) => (await asked(each, 'GET', '/v1/fleet'))['leads']),
  )
  return managers.filter((_, index) => leads[index])
}

const FEED = {
  ...{ name: 'acme', version: 1, created: '2026-11-21T10:00:00Z', expires: null },
  software: [
    {
      ...{ id: 'acme-feed-bot', name: 'Acme Feed Bot', kind: 'agent', category: 'crawler' },
      signatures: [{ user_agent: 'acme-feed-bot', source: 'acme.example', date: '2026-11-21' }],
    },
  ],
}
const BUSES = new WeakMap<ServingProcess, { readonly nats: string; readonly bus: string }>()
/** The database is unreachable, and every user of it reports that. */
const OF_A_LOST_DATABASE = /STORE_|cannot be stored|database|ECONNREFUSED|tidied up/

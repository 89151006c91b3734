import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { type AddressInfo, connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { metricsText } from '../../src/shared/metrics.ts'
import { NO_WORKER } from '../../src/plane/readiness.ts'
import { type PoolTimes, WorkerPool } from '../../src/proxy/worker/worker-pool.ts'
import { CA, goodPair, liveState, surroundings, until } from './test-worker.ts'
import type { ListenAddress } from '../../src/shared/listen-address.ts'

// tap's own would be loaded by every worker.
delete process.env['NODE_OPTIONS']

const pair = await goodPair()

test('two workers share a port, hand up what they saw, and add up what they counted', async (t) => {
  const { ask, pool, sightings } = await pooled(t, 2)
  await Promise.all(Array.from({ length: 40 }, () => ask('/')))
  await until(() => sightings.length === 40)
  assert.equal(await requests(pool), 40)
  assert.deepEqual([pool.counts, pool.unready()], [{ listening: 2, restarts: 0 }, []])
})

test('a worker that dies is replaced, the others go on, and what it counted stays counted', async (t) => {
  const { ask, pool, pids, lines } = await pooled(t, 2)
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  t.teardown(() => agent.destroy())
  let running = true
  const outcomes = { answered: 0, reset: 0 }
  const lanes = Array.from({ length: 8 }, async () => {
    while (running) {
      await ask('/', agent).then(
        () => outcomes.answered++,
        (error) => {
          assert.ok(['ECONNRESET', 'EPIPE'].includes(error.code), error.code)
          outcomes.reset++
        },
      )
    }
  })
  const counted: number[] = []
  for (let i = 1; i <= 2; i++) {
    await until(() => outcomes.answered > i * 100)
    await pool.read()
    counted.push(await requests(pool))
    process.kill(pids()[i % 2]!, 'SIGKILL')
    await until(() => pool.counts.restarts === i && pool.counts.listening === 2)
  }
  running = false
  await Promise.all(lanes)
  counted.push(await requests(pool))
  assert.deepEqual(
    counted,
    counted.toSorted((a, b) => a - b),
    'a counter never goes back',
  )
  // Each kill takes the connections of one worker, which are 8 at most, and no other.
  assert.ok(outcomes.reset <= 16, `${outcomes.reset} were reset`)
  assert.equal(lines().filter(({ message }) => message === 'a worker died').length, 2)
})

test('the last worker that dies is replaced on the same port', async (t) => {
  const { ask, pool, pids } = await pooled(t, 1)
  assert.equal((await ask('/')).status, 200)
  await until(() => pool.workers()[0]!.snapshot !== null)
  const [before] = pool.workers()
  assert.deepEqual([before!.number, before!.pid, before!.state], [0, pids()[0], 'serving'])
  assert.ok(Math.abs(Date.now() - before!.sinceMs!) < 60_000)
  process.kill(pids()[0]!, 'SIGKILL')
  await until(() => pool.counts.restarts === 1)
  assert.deepEqual(pool.unready(), [NO_WORKER])
  const [between] = pool.workers()
  assert.ok(between!.state !== 'serving' && between!.snapshot === null && between!.sinceMs === null)
  await until(() => pool.counts.listening === 1)
  assert.notEqual(pool.workers()[0]!.pid, before!.pid)
  assert.equal((await ask('/')).status, 200)
})

test('one that keeps dying is replaced after a pause that grows', async (t) => {
  const { pool, pids, lines } = await pooled(t, 1, { backOffMs: 30 })
  for (let i = 1; i <= 4; i++) {
    await until(() => pool.counts.listening === 1)
    process.kill(pids()[0]!, 'SIGKILL')
    await until(() => pool.counts.restarts === i)
  }
  const pauses = lines().filter(({ message }) => message === 'a worker died')
  assert.deepEqual(
    pauses.map(({ pauseMs }) => pauseMs),
    [0, 30, 60, 120],
  )
  await pool.drain(1000)
  await wait(300)
  assert.equal(pids().length, 0, 'a drained pool replaces no worker')
})

test('one that hangs is killed and replaced; one that only works is not', async (t) => {
  const { pool, pids, lines } = await pooled(t, 2, { beatMs: 60 })
  const [hung] = pids()
  process.kill(hung!, 'SIGSTOP')
  await until(() => pool.counts.restarts === 1 && pool.counts.listening === 2)
  assert.ok(!pids().includes(hung!))
  assert.deepEqual(
    lines().map(({ message }) => message),
    ['a worker hangs and is killed', 'a worker died'],
  )
})

test('a reading does not wait for a worker that does not answer', async (t) => {
  const { ask, pool, pids } = await pooled(t, 2)
  await ask('/')
  assert.equal(await requests(pool), 1)
  process.kill(pids()[0]!, 'SIGSTOP')
  assert.equal(await requests(pool), 1)
  process.kill(pids()[0]!, 'SIGCONT')
})

test('a Snapshot and certificates reach every worker, also those that come later', async (t) => {
  const { ask, pool, judgeBy, pids } = await pooled(t, 2)
  const other = await goodPair()
  judgeBy({ rules: [{ name: 'all', when: {}, action: { block: { status: 451 } } }] })
  pool.use(liveState([other]))
  const answers = async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => ask('/')))
    return new Set(all.map(({ status, certificate }) => `${status} ${certificate === other.chain}`))
  }
  while ((await answers()).has('200 false')) await wait(5)
  for (const pid of pids()) process.kill(pid, 'SIGKILL')
  await until(() => pool.counts.restarts === 2 && pool.counts.listening === 2)
  assert.deepEqual(await answers(), new Set(['451 true']))
})

test('a drain lets requests under way end, and no worker stays', async (t) => {
  const held: (() => void)[] = []
  const { ask, pool, pids, sightings } = await pooled(
    t,
    2,
    {},
    (response) => void held.push(() => response.end('late')),
  )
  const lost = Array.from({ length: 6 }, () => ask('/'))
  await until(() => held.length === 6)
  const drained = pool.drain(5000)
  for (const answer of held) answer()
  for (const { status, body } of await Promise.all(lost)) assert.deepEqual([status, body], [200, 'late'])
  await drained
  assert.equal(pids().length, 0)
  assert.equal(sightings.length, 6)
  assert.equal(await requests(pool), 6, 'the last reading came before the end')
})

test('a drain ends at its deadline, even if a worker hangs', async (t) => {
  const { ask, pool, pids } = await pooled(t, 2, {}, () => undefined)
  const lost = assert.rejects(ask('/'))
  await wait(50)
  process.kill(pids()[0]!, 'SIGSTOP')
  await pool.drain(100)
  await lost
  assert.equal(pids().length, 0)
})

test('a port that is taken is said once, and no worker stays', async (t) => {
  const other = createServer()
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const { settings, bus, log } = await surroundings(t, () => undefined, {
    listen: { host: '127.0.0.1', port },
  })
  const pool = new WorkerPool(2, settings, { bus, log, desk: null })
  await assert.rejects(pool.start(liveState([pair])), { code: 'LISTEN_PORT_TAKEN' })
  await pool.drain(0)
  assert.equal(pool.pids.length, 0)
})

test('no connection is lost while a worker that is idle goes', async (t) => {
  const { pool, pids, address } = await pooled(t, 2)
  let running = true
  let connected = 0
  const lanes = Array.from({ length: 10 }, async () => {
    while (running) {
      const socket = connect(address.port, address.host)
      await once(socket, 'connect') // a queued connection is established, but no worker has it yet
      connected++
      socket.destroy()
    }
  })
  process.kill(pids()[0]!, 'SIGKILL')
  await until(() => pool.counts.restarts === 1 && pool.counts.listening === 2)
  running = false
  await Promise.all(lanes)
  assert.ok(connected > 100)
})

async function pooled(
  t: Test,
  size: number,
  times: PoolTimes = {},
  app: (response: { end(body: string): void }) => void = (response) => response.end('ok'),
) {
  const around = await surroundings(t, (_, response) => app(response))
  const pool = new WorkerPool(size, around.settings, { bus: around.bus, log: around.log, desk: null }, times)
  t.teardown(() => pool.drain(0))
  const { listen: address } = await pool.start(liveState([pair]))
  const ask = (path: string, agent?: Agent) => asked(address, path, agent)
  return { ...around, pool, address, ask, pids: () => pool.pids }
}

async function asked({ port }: ListenAddress, path: string, agent?: Agent) {
  const url = `https://localhost:${port}${path}`
  const outgoing = request(url, { ca: CA.certificate, agent: agent ?? false }).end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const { socket, statusCode: status } = response
  const certificate = 'getPeerX509Certificate' in socket ? peerOf(socket) : null
  return { status, body: await text(response), certificate }
}

function peerOf(socket: object): string | null {
  const { getPeerX509Certificate } = socket as {
    getPeerX509Certificate(): { toString(): string } | undefined
  }
  return getPeerX509Certificate.call(socket)?.toString() ?? null
}

async function requests(pool: WorkerPool): Promise<number> {
  const page = await metricsText(await pool.read())
  const counts = [...page.matchAll(/^gatehouse_requests_total\{.*\} (\d+)$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

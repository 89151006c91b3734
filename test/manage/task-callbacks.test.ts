import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import type { LookupFunction } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import {
  type CallbackSecret,
  type CallbackSettings,
  TaskCallbacks,
  whatOf,
} from '../../src/manage/jobs/task-callbacks.ts'
import type { Store } from '../../src/store/store.ts'
import { KINDS, openFresh, type Owner } from '../store/databases.ts'
import { Receiver } from './callback-receiver.ts'
import { until } from '../until.ts'

const NOTHING: CallbackSecret = { token: null, scheme: null, credentials: null }

for (const kind of KINDS) {
  test(`${kind}: who asked is told each status, with what proves that it is us`, async (t) => {
    const receiver = await Receiver.start(t)
    const site = await Site.start(t, await openFresh(kind, t))
    const secret = { token: 'a token', scheme: 'Bearer', credentials: 'of theirs' }
    await site.task('tsk_a')
    await site.callback('tsk_a', `${receiver.url}/hook?x=1`, secret)
    await site.store.tasks.claim({ owner: 'worker', nowMs: Date.now(), untilMs: Date.now() + 60_000 })
    assert.equal((await receiver.has(1)).length, 1)
    await site.store.tasks.cancel('tsk_a', Date.now())
    const received = await receiver.has(2)
    assert.deepEqual(
      received.map(({ body }) => body),
      [{ status: 'running' }, { status: 'cancelled' }],
    )
    const { path, headers } = received[0]!
    assert.deepEqual(
      [path, headers.authorization, headers['x-a2a-notification-token'], headers['content-type']],
      ['/hook?x=1', 'Bearer of theirs', 'a token', 'text/plain'],
    )
    await wait(150)
    assert.equal(receiver.received.length, 2) // and nothing after that
    assert.doesNotMatch(site.said.join(), /a token|of theirs/)
    const [kept] = await site.store.taskCallbacks.of('tsk_a')
    assert.doesNotMatch(kept!.sealed!, /token|theirs/)
  })

  test(`${kind}: of several processes one tells; what a lost one has begun another one tells`, async (t) => {
    const receiver = await Receiver.start(t)
    const store = await openFresh(kind, t)
    const sites = await Promise.all([1, 2, 3].map(() => Site.start(t, store)))
    for (let i = 0; i < 6; i++) {
      await sites[0]!.task(`tsk_${i}`, `key_${i}`)
      await sites[0]!.callback(`tsk_${i}`, receiver.url)
    }
    // One has taken it up, and is gone.
    await store.tasks.cancel('tsk_0', Date.now())
    const nowMs = Date.now()
    await store.taskCallbacks.claim({ nowMs, untilMs: nowMs + 300 }, 1, [])
    for (let i = 1; i < 6; i++) await store.tasks.cancel(`tsk_${i}`, Date.now())
    await receiver.has(6)
    await wait(300)
    assert.equal(receiver.received.length, 6)
  })
}

test('what cannot be told is tried again, longer and longer, a few times', async (t) => {
  const receiver = await Receiver.start(t, (response, number) => {
    response.writeHead(number < 3 ? 503 : 204).end()
  })
  const [dead, gone, redirecting] = await Promise.all([
    Receiver.start(t, (response) => response.writeHead(500).end('x'.repeat(100_000))),
    Receiver.start(t, (response) => response.writeHead(410).end()),
    Receiver.start(t, (response) => response.writeHead(307, { location: receiver.url }).end()),
  ])
  const site = await Site.start(t, await openFresh('sqlite', t), { retryBaseMs: 2 })
  for (const [id, { url }] of Object.entries({
    tsk_a: receiver,
    tsk_b: dead,
    tsk_c: gone,
    tsk_d: redirecting,
  })) {
    await site.task(id)
    await site.store.tasks.cancel(id, Date.now())
    await site.callback(id, `${url}/secret-path`)
  }
  await dead.has(5)
  await redirecting.has(5)
  await until(() => site.said.filter((line) => line.includes('given up')).length === 3)
  const counts = [receiver, dead, gone, redirecting].map(({ received }) => received.length)
  assert.deepEqual(counts, [3, 5, 1, 5])
  assert.equal(site.said.filter((line) => line.includes('given up')).length, 3)
  assert.doesNotMatch(site.said.join(), /secret-path/)
})

test('a server that says nothing is left, and one that is slow holds up nobody else', async (t) => {
  const silent = await Receiver.start(t, () => undefined)
  const receiver = await Receiver.start(t)
  const site = await Site.start(t, await openFresh('sqlite', t), { timeoutMs: 400, retryBaseMs: 60_000 })
  for (let i = 0; i < 12; i++) {
    await site.task(`tsk_${i}`, 'slow one')
    await site.store.tasks.cancel(`tsk_${i}`, Date.now())
    await site.callback(`tsk_${i}`, silent.url)
  }
  await site.task('tsk_x', 'another one')
  await site.store.tasks.cancel('tsk_x', Date.now())
  await site.callback('tsk_x', receiver.url)
  const startMs = performance.now()
  await receiver.has(1)
  assert.ok(
    performance.now() - startMs < 390 || silent.received.length < 12,
    'it had to wait for all of them',
  )
  await silent.has(12)
  await site.callbacks.close()
})

test('nothing is told to an address that is not on the public internet', async (t) => {
  const receiver = await Receiver.start(t)
  const { port } = new URL(receiver.url)
  const asked: string[] = []
  // Whoever was looked up as public when it was registered is another one now.
  const lookup: LookupFunction = (name, _options, callback) => {
    asked.push(name)
    callback(null, [{ address: name === 'metadata.example' ? '169.254.169.254' : '127.0.0.1', family: 4 }])
  }
  const site = await Site.start(t, await openFresh('sqlite', t), {
    ...{ retryBaseMs: 1, lookup, allowPrivate: false },
  })
  const urls = [
    `https://127.0.0.1:${port}/`,
    `https://[::ffff:127.0.0.1]:${port}/`,
    `https://rebinding.example:${port}/`,
    'https://metadata.example/latest/meta-data',
    'https://169.254.169.254/latest/meta-data',
    `https://localhost:${port}/`,
    receiver.url, // http
  ]
  for (const [index, url] of urls.entries()) {
    await site.task(`tsk_${index}`)
    await site.store.tasks.cancel(`tsk_${index}`, Date.now())
    await site.callback(`tsk_${index}`, url)
  }
  const untilMs = Date.now() + 10_000
  const givenUp = () => site.said.filter((line) => line.includes('given up'))
  while (givenUp().length < urls.length && Date.now() < untilMs) await wait(20)
  assert.equal(givenUp().length, urls.length)
  assert.ok(
    givenUp().every((line) => /not on the public internet|not https/.test(line)),
    givenUp().join(),
  )
  assert.deepEqual(new Set(asked), new Set(['rebinding.example', 'metadata.example']))
  assert.equal(receiver.received.length, 0)
})

/** What tells, and what it needs of a management plane. */
class Site {
  readonly store: Store
  readonly callbacks: TaskCallbacks
  readonly said: readonly string[]
  readonly #sealer: Sealer

  static async start(
    t: Owner,
    store: Store,
    {
      allowPrivate = true,
      ...settings
    }: Partial<CallbackSettings> & { readonly allowPrivate?: boolean } = {},
  ): Promise<Site> {
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-callbacks-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const said: string[] = []
    const sealer = new Sealer([], join(folder, 'store.key'))
    const management = {
      ...{ store, sealer, nowMs: Date.now, allowPrivateWebhooks: allowPrivate },
      log: createLogTo('info', { write: (line) => said.push(line) }),
      ownSignature: { headersFor: () => ({}) },
    }
    const callbacks = new TaskCallbacks(management, {
      message: async ({ status }) => ({
        headers: { 'content-type': 'text/plain' },
        body: JSON.stringify({ status }),
      }),
      signed: () => null,
      pollMs: 20,
      ...settings,
    })
    callbacks.start()
    t.teardown(() => callbacks.close())
    return new Site(store, callbacks, sealer, said)
  }

  private constructor(store: Store, callbacks: TaskCallbacks, sealer: Sealer, said: readonly string[]) {
    this.store = store
    this.callbacks = callbacks
    this.said = said
    this.#sealer = sealer
  }

  task(id: string, principal = 'key_1'): Promise<boolean> {
    const chunks = [{ number: 0, from: 0, items: [1] }]
    return this.store.tasks.add({ id, apps: '*', principal, type: 'slow', atMs: Date.now(), chunks })
  }

  async callback(taskId: string, url: string, secret: CallbackSecret = NOTHING): Promise<void> {
    const sealed =
      secret === NOTHING ? null : await this.#sealer.seal(JSON.stringify(secret), whatOf(taskId, 'c'))
    const callback = { taskId, id: 'c', url, sealed, createdAtMs: Date.now() }
    assert.equal(await this.store.taskCallbacks.put(callback, 5), true)
  }
}

import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { AcceptedSignatures } from '../../src/manage/publish/accepted-signatures.ts'
import { Publisher } from '../../src/manage/publish/publisher.ts'
import type { SnapshotDocument } from '../../src/plane/snapshot.ts'
import type { Store } from '../../src/store/store.ts'
import { JA4, signatureOf, softwareOf } from '../contract/catalogue.ts'
import { openFresh } from '../store/databases.ts'

test('numbers rise, whatever the clock does, and after a restart', async () => {
  let nowMs = 5000
  const published: SnapshotDocument[] = []
  const start = () => {
    const links = {
      publish: (each: SnapshotDocument) => void published.push(each),
      remake: async () => undefined,
      nowMs: () => nowMs,
      takesCounts: true,
    }
    const publisher = new Publisher(links)
    publisher.usePolicy({ rules: [{}] }) // before the start there is nothing to publish
    publisher.start({ rules: [] })
    return publisher
  }
  const publisher = start()
  publisher.usePolicy({ rules: [] })
  nowMs = 1000
  publisher.usePolicy({ rules: [] })
  nowMs = 5003
  start()
  const numbers = published.map(({ number }) => number)
  assert.deepEqual(numbers, [5000, 5001, 5002, 5003])
})

test('nudges: many are one, one at a time, and none is lost', async (t) => {
  const { publisher, runs, release } = nudged(t)
  publisher.nudge()
  await wait(300)
  assert.equal(runs.length, 0, 'nothing before the start')
  publisher.start({ rules: [] })
  for (let i = 0; i < 50; i++) publisher.nudge()
  while (runs.length === 0) await wait(10)
  publisher.nudge()
  publisher.nudge()
  await wait(300)
  assert.deepEqual(runs, ['begun'], 'one is under way')
  release()
  while (runs.length < 3) await wait(10)
  assert.deepEqual(runs, ['begun', 'ended', 'begun'])
  release()
  await wait(300)
  assert.equal(runs.length, 4, 'nobody has nudged any more')
  publisher.nudge()
  publisher.close()
  await wait(300)
  assert.equal(runs.length, 4)
})

test('accepted signatures: those that judge, as lines, also while the database is away', async (t) => {
  const said: string[] = []
  const accepted = new AcceptedSignatures(
    createLogTo('info', { write: (line: string) => void said.push(line) }),
  )
  assert.equal(await accepted.load(), '')
  const store = await openFresh('sqlite', t)
  assert.equal(await accepted.isBehind(), false, 'there is nothing to be asked')
  assert.equal(await accepted.attach(store), false)
  assert.equal(await accepted.isBehind(), false)
  await put(store)
  assert.equal(await accepted.isBehind(), true)
  const lines = (await accepted.load()).split('\n').map((line) => JSON.parse(line))
  assert.deepEqual(
    lines.map(({ id, software, ja4 }) => id ?? [software, ja4]),
    ['acme', ['acme', JA4]],
  )
  assert.equal(lines[1].date, '2023-11-14')
  assert.match(said.join(''), /left out/)
  assert.equal(await accepted.isBehind(), false)
  const key = { type: 'ja4', value: JA4, softwareId: 'acme' } as const
  const turn = (status: 'trial' | 'active') =>
    store.transaction((queries) => store.catalogue.setStatus(key, status, queries))
  await turn('trial')
  const read = t.intercept(store.catalogue, 'accepted', {
    value: () => Promise.reject(new Error('the connection is gone')),
  })
  await accepted.load()
  assert.equal(await accepted.isBehind(), true, 'they could not be read')
  read.restore()
  assert.equal((await accepted.load()).includes(JA4), false)
  assert.equal(await accepted.isBehind(), false)
  await turn('active')
  await accepted.load()
  await store.close()
  await assert.rejects(accepted.isBehind())
  const before = JSON.stringify(lines)
  const after = (await accepted.load()).split('\n').map((line) => JSON.parse(line))
  assert.equal(JSON.stringify(after), before)
  assert.match(said.join(''), /cannot be read/)
})

test('no error is logged for a read of accepted signatures that a stop cuts off', async (t) => {
  const said: string[] = []
  const accepted = new AcceptedSignatures(
    createLogTo('info', { write: (line: string) => void said.push(line) }),
  )
  const store = await openFresh('sqlite', t)
  await accepted.attach(store)
  t.intercept(store.catalogue, 'acceptedMark', {
    value: () => Promise.reject(new Error('the driver has already been destroyed')),
  })
  const reading = accepted.load()
  accepted.close()
  assert.equal(await reading, '')
  assert.deepEqual(said, [])
})

/** One that judges, and others that do not: of nobody, on trial, taken back, and one that is none. */
async function put(store: Store): Promise<void> {
  const { catalogue } = store
  await store.transaction(async (queries) => {
    await catalogue.addSoftware(softwareOf({ id: 'acme', name: 'Acme' }), 1, queries)
    for (const given of [
      { softwareId: 'acme' },
      { softwareId: '', source: 'observed', status: 'unknown' },
      { softwareId: 'other', status: 'trial' },
      { softwareId: 'third', status: 'retired' },
      { softwareId: 'acme', value: 'what is this' },
    ] as const)
      await catalogue.addSignature(signatureOf(given), queries)
  })
}

function nudged(t: Test) {
  const runs: string[] = []
  let release: () => void = () => undefined
  const publisher = new Publisher({
    publish: () => undefined,
    remake: async () => {
      runs.push('begun')
      await new Promise<void>((resolve) => {
        release = resolve
      })
      runs.push('ended')
    },
    nowMs: Date.now,
    takesCounts: true,
  })
  t.teardown(() => publisher.close())
  return { publisher, runs, release: () => release() }
}

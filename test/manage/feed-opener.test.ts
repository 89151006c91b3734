import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { test } from 'tap'
import { FeedOpener } from '../../src/manage/publish/feed-opener.ts'
import { type FeedFault, feedKeyOf, makeFeedPrivateKey, signFeed } from '../../src/plane/feed.ts'
import { withoutDescriptors } from '../descriptors.ts'
import { until } from '../until.ts'
import { childrenOf } from '../processes.ts'

const KEY = createPrivateKey(makeFeedPrivateKey())
const KEYS = [feedKeyOf(KEY)]
const OTHER_KEYS = [feedKeyOf(createPrivateKey(makeFeedPrivateKey()))]
const SOFTWARE = [{ id: 'a', name: 'A', kind: 'tool' }]
const FEED = envelope(SOFTWARE)

test('a feed is the same, whoever opens it', async () => {
  const [here, there] = [new FeedOpener(), serving()]
  const { software: _, ...facts } = (await here.open(FEED, 'vendor', KEYS)) as { software?: unknown }
  assert.deepEqual(await there.open(FEED, 'vendor', KEYS), facts)
})

test('and so is what is wrong with it', async () => {
  for (const [bytes, name, keys] of [
    [Buffer.from('{'), 'vendor', KEYS],
    [FEED, 'vendor', OTHER_KEYS],
    [FEED, 'other', KEYS],
    [FEED.subarray(0, -20), 'vendor', KEYS],
  ] as const) {
    const [here, there] = await Promise.all(
      [new FeedOpener(), serving()].map((opener) =>
        opener.open(bytes, name, keys).then(String, (error) => error),
      ),
    )
    const said = ({ name: kind, code, reason, message }: FeedFault) => [kind, code, reason, message]
    assert.deepEqual(said(there as FeedFault), said(here as FeedFault))
    assert.equal((there as FeedFault).name, 'FeedFault')
  }
})

test('one after the other, each gets its own', async () => {
  const opener = serving()
  const opened = await Promise.allSettled([
    opener.open(FEED, 'vendor', KEYS),
    opener.open(FEED, 'vendor', OTHER_KEYS),
    opener.open(FEED, 'vendor', KEYS),
  ])
  assert.deepEqual(
    opened.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
})

test('nor is one that cannot be started, then or later', async () => {
  const opener = serving()
  await withoutDescriptors(async () => {
    assert.equal((await opener.open(FEED, 'vendor', KEYS)).version, 7)
  })
  assert.equal((await opener.open(FEED, 'vendor', KEYS)).version, 7)
})

test('a process that does not start is no reason to be without a feed', async (t) => {
  const before = process.env['NODE_OPTIONS']
  t.teardown(() => {
    if (before === undefined) delete process.env['NODE_OPTIONS']
    else process.env['NODE_OPTIONS'] = before
  })
  process.env['NODE_OPTIONS'] = '--no-such-option'
  assert.equal((await serving().open(FEED, 'vendor', KEYS)).version, 7)
  await assert.rejects(serving().open(FEED, 'vendor', OTHER_KEYS), { reason: 'signature' })
})

test('what nobody waits for any more is given up', async () => {
  const opener = serving()
  let settled = 0
  const count = () => settled++
  void opener.open(FEED, 'vendor', KEYS).then(count, count)
  await new Promise(setImmediate)
  opener.close()
  void opener.open(FEED, 'vendor', KEYS).then(count, count)
  await until(() => childrenOf(process.pid).length === 0)
  await new Promise(setImmediate)
  assert.equal(settled, 0)
})

function serving(): FeedOpener {
  const opener = new FeedOpener()
  opener.leave()
  return opener
}

function envelope(software: readonly unknown[]): Buffer {
  const content = { name: 'vendor', version: 7, created: '2026-11-21T12:00:00Z', expires: null, software }
  return Buffer.from(signFeed(content, [KEY]))
}

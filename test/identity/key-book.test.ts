import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import type { InquiryResult } from '../../src/identity/keys/inquiry.ts'
import { KeyBook } from '../../src/identity/keys/key-book.ts'
import { newSigner } from './signer.ts'
import { NOTHING_PUBLISHED } from './published.ts'

const AGENT = 'https://agent.example'
const NOW_MS = 1_795_424_600_000
const signer = newSigner('ed25519')

test('keys are known by their thumbprints, until their time is over', async () => {
  const book = new KeyBook()
  assert.equal(book.of(AGENT, NOW_MS), null)
  const other = newSigner('ecdsa-p256-sha256')
  book.take(found({ keys: [jwkOf(signer), { kty: 'oct', k: 'AAAA' }, jwkOf(other)] }))
  const known = book.of(AGENT, NOW_MS)!
  assert.deepEqual([...known.byThumbprint.keys()], [signer.key.thumbprint, other.key.thumbprint])
  assert.equal(book.of(AGENT, NOW_MS + 3_600_000), null)
  book.take(found({ keys: [], why: 'no-directory' }))
  assert.deepEqual(
    [book.of(AGENT, NOW_MS)!.byThumbprint.size, book.of(AGENT, NOW_MS)!.why],
    [0, 'no-directory'],
  )
})

test('strangers evict only strangers, never listed agents', async () => {
  const book = new KeyBook()
  book.list(new Set([AGENT]))
  book.take(found({}))
  for (let i = 0; i < 2_500; i++) book.take(found({ agentId: `https://${i}.example`, keys: [] }))
  assert.equal(book.of(AGENT, NOW_MS)!.byThumbprint.size, 1)
  assert.equal(book.of('https://0.example', NOW_MS), null)
  assert.notEqual(book.of('https://2499.example', NOW_MS), null)
  assert.deepEqual([book.isListed(AGENT), book.isListed('https://1.example')], [true, false])
  book.list(new Set())
  assert.equal(book.of(AGENT, NOW_MS), null)
})

test('knows no strangers if they are not fetched, also from an earlier set', async () => {
  const book = new KeyBook(false)
  book.list(new Set([AGENT]))
  book.take(found({}))
  book.take(found({ agentId: 'https://other.example' }))
  const other = book.of('https://other.example', NOW_MS)!
  assert.deepEqual([other.byThumbprint.size, other.why], [0, 'not-listed'])
  book.list(new Set())
  assert.equal(book.of(AGENT, NOW_MS), null)
  book.take(found({}))
  assert.equal(book.of(AGENT, NOW_MS)!.byThumbprint.size, 0)
  book.list(new Set([AGENT]))
  assert.equal(book.of(AGENT, NOW_MS), null, 'it is to be asked for anew')
})

test('of strangers not more keys are known than a worker has room for', async () => {
  const book = new KeyBook()
  const keys = Array.from({ length: 32 }, () => jwkOf(newSigner('ed25519')))
  for (let i = 0; i < 200; i++) book.take(found({ agentId: `https://${i}.example`, keys }))
  const known = Array.from({ length: 200 }, (_, i) => book.of(`https://${i}.example`, NOW_MS))
  const count = known.reduce((sum, each) => sum + (each?.byThumbprint.size ?? 0), 0)
  assert.ok(count > 3_000 && count <= 4_096, `${count}`)
})

test('waiting callers are called once a key arrives, one in each turn, unless they left', async () => {
  const book = new KeyBook()
  const called: string[] = []
  book.wait(AGENT, () => called.push('a'))
  const leave = book.wait(AGENT, () => called.push('b'))
  const late = book.wait(AGENT, () => called.push('c'))
  book.wait(AGENT, () => called.push('d'))
  book.wait('https://other.example', () => called.push('other'))
  leave()
  book.take(found({}))
  assert.deepEqual(called, ['a'])
  late()
  await turn()
  assert.deepEqual(called, ['a', 'd'])
  book.take(found({}))
  await turn()
  assert.deepEqual(called, ['a', 'd'])
})

function found(changes: Partial<InquiryResult & { kind: 'keys' }>): InquiryResult & { kind: 'keys' } {
  const times = { askAgainMs: NOW_MS + 10_000, freshUntilMs: NOW_MS + 60_000, untilMs: NOW_MS + 3_600_000 }
  return {
    kind: 'keys',
    agentId: AGENT,
    keys: [jwkOf(signer)],
    why: null,
    ...NOTHING_PUBLISHED,
    ...times,
    ...changes,
  }
}

function jwkOf({ jwk }: typeof signer): Record<string, string> {
  return jwk as Record<string, string>
}

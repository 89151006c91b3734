import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import type { NewKey } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/store.ts'

/** What any Store must do. sqlite.test.ts and postgres.test.ts each call this. */
export function storeContract(name: string, open: (t: Test) => Promise<Store>): void {
  test(`${name}: a key is found by its hash, and as it was made`, async (t) => {
    const store = await open(t)
    const { hash, ...key } = newKey(1)
    await store.keys.add({ hash, ...key })
    const record = { ...key, revokedAtMs: null, lastUsedAtMs: null }
    assert.deepEqual(await store.keys.byHash(hash), record)
    assert.deepEqual(await store.keys.byId(key.id), record)
    assert.equal(await store.keys.byHash('another'), null)
  })
}

export function newKey(number: number): NewKey {
  return {
    id: `key_${number}`,
    hash: `hash ${number}`,
    name: `key ${number}`,
    scopes: ['read', 'detect'],
    plan: 'standard',
    createdAtMs: 1_800_000_000_000 + number,
    expiresAtMs: null,
  }
}

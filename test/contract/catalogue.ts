import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseSoftware, type Software } from '../../src/classify/known/software.ts'
import type { NewSignature } from '../../src/store/catalogue/catalogue.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { Store } from '../../src/store/store.ts'
import { openFresh } from '../store/databases.ts'

/** What is known by name, changed one by one. */
export function catalogueContract(kind: DatabaseKind): void {
  test(`${kind}: software is found by all it is called, and an id is taken once`, async (t) => {
    const store = await openFresh(kind, t)
    assert.ok(await add(store, { id: 'acme-bot', name: 'Acme Bot/2 ✓', aliases: ['ACME crawler'] }))
    assert.ok(!(await add(store, { id: 'acme-bot', name: 'Another' })))
    // Its name is the id of the first, which has it.
    assert.ok(await add(store, { id: 'other', name: 'acme-bot' }))
    for (const name of ['acme-bot', 'Acme Bot/2 ✓', 'ACME crawler', 'Acme  Crawler'])
      assert.equal((await store.catalogue.softwareNamed(name))?.id, 'acme-bot', name)
    for (const name of ['', 'Another', 'acme', '%', 'acme-bot\0', '\0'])
      assert.equal(await store.catalogue.softwareNamed(name), null, name)
  })

  test(`${kind}: a signature is added if it is missing or was withdrawn`, async (t) => {
    const { catalogue, transaction } = bound(await openFresh(kind, t))
    const signature = signatureOf({ softwareId: 'acme-bot', observations: 3 })
    assert.ok(await transaction((queries) => catalogue.addSignature(signature, queries)))
    assert.ok(!(await transaction((queries) => catalogue.addSignature(signature, queries))))
    assert.ok(await transaction((queries) => catalogue.setStatus(signature, 'retired', queries)))
    assert.ok(!(await transaction((queries) => catalogue.setStatus(signature, 'retired', queries))))
    const again = { ...signature, observations: 4 }
    assert.ok(await transaction((queries) => catalogue.addSignature(again, queries)))
    const [row, ...others] = await catalogue.signaturesOf(signature.type, signature.value)
    assert.deepEqual([row!.status, row!.observations, others.length], ['active', 4, 0])
    assert.deepEqual([row!.part_b, row!.part_c], ['8daaf6152771', 'e5627efa2ab1'])
  })

  test(`${kind}: who else has a fingerprint changes how sure it is`, async (t) => {
    const { catalogue, transaction } = bound(await openFresh(kind, t))
    const confidences = async () => {
      const rows = await catalogue.signaturesOf('ja4', JA4)
      return rows.map(({ software_id, confidence }) => [software_id, Number(confidence.toFixed(3))])
    }
    const put = (given: Partial<NewSignature>) =>
      transaction((queries) => catalogue.addSignature(signatureOf(given), queries))
    await put({ softwareId: 'a', observations: 8 })
    assert.deepEqual(await confidences(), [['a', 0.9]])
    await put({ softwareId: 'b', observations: 0 })
    await put({ softwareId: '', observations: 100, status: 'unknown', source: 'observed' })
    await put({ softwareId: 'c', observations: 500, status: 'trial' })
    const of = new Map((await confidences()) as [string, number][])
    assert.deepEqual([of.get('')!, of.get('a')!, of.get('b')!], [0, 0.818, 0.091])
    await transaction((queries) => catalogue.setStatus(signatureOf({ softwareId: 'b' }), 'retired', queries))
    assert.equal(new Map((await confidences()) as [string, number][]).get('a'), 0.9)
  })
}

export const JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'

export function signatureOf(given: Partial<NewSignature>): NewSignature {
  return {
    type: 'ja4',
    value: JA4,
    softwareId: '',
    status: 'active',
    source: 'submitted',
    provenance: 'a test',
    firstSeenMs: 1_700_000_000_000,
    observations: 0,
    ...given,
  }
}

export function softwareOf(document: Readonly<Record<string, unknown>>): Software {
  return parseSoftware(
    document['kind'] === undefined ? { kind: 'agent', category: 'crawler', ...document } : document,
  )
}

function add(store: Store, document: Readonly<Record<string, unknown>>): Promise<boolean> {
  return store.transaction((queries) => store.catalogue.addSoftware(softwareOf(document), 1, queries))
}

function bound(store: Store) {
  return { catalogue: store.catalogue, transaction: store.transaction.bind(store) }
}

import { catalogueRows } from '../../src/runtime/signatures/catalogue-rows.ts'
import { Store } from '../../src/store/store.ts'
import { signatureOf, softwareOf } from '../contract/catalogue.ts'

/** What comes with Gatehouse, and as many more, made up. */
export async function fillCatalogue(storeUrl: string, agents = 0, signatures = 0): Promise<void> {
  const store = await Store.open(storeUrl)
  const rows = await catalogueRows({ feeds: [], paths: [] })
  await store.catalogueMerge.merge(rows, { hash: 'x', nowMs: 1, pause: async () => undefined })
  await store.transaction(async (queries) => {
    for (let number = 0; number < agents; number++) {
      const name = `Zz made up ${String(number).padStart(5, '0')}`
      const software = softwareOf({
        id: `zz-${String(number).padStart(5, '0')}`,
        name,
        description: 'Made up.',
      })
      await store.catalogue.addSoftware(software, 1, queries)
    }
    for (let number = 0; number < signatures; number++) {
      const value = `zz${number.toString(16).padStart(8, '0')}_8daaf6152771_e5627efa2ab1`
      await store.catalogue.addSignature(signatureOf({ type: 'ja4', value, softwareId: 'gptbot' }), queries)
    }
  })
  await store.close()
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { MergeCounts } from '../../store/catalogue/catalogue-merge.ts'
import { StoreLogin } from '../../store/engine/store-login.ts'
import { Store } from '../../store/store.ts'
import { catalogueRows } from './catalogue-rows.ts'
import type { MergeWork } from './signature-compiler.ts'

/** Makes the catalogue in the database equal to the sources. Throws a Fault. */
export async function mergeCatalogue(work: Omit<MergeWork, 'kind'>): Promise<MergeCounts> {
  const { sources, storeUrl, storePassword, hash } = work
  const rows = await catalogueRows(sources)
  const store = await Store.open(storeUrl, new StoreLogin(storePassword))
  try {
    const nowMs = Date.now()
    return await store.catalogueMerge.merge(rows, { hash, nowMs, pause: () => sleep(PAUSE_MS) })
  } finally {
    await store.close()
  }
}

/** As long as one of the merge's transactions may block others. */
const PAUSE_MS = 3

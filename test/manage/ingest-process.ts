import { Store } from '../../src/store/store.ts'
import { countedBatch } from '../contract/counted-batch.ts'
import { ingestInto, seen } from '../contract/seen.ts'

// For ingest.test.ts, which kills it: sends the same Sightings in batches, four at a time, and says what is acknowledged.
// With a third argument, the sender has counted them.
const [url, count, isCounted] = process.argv.slice(2)
const store = await Store.open(url!)
const { ingest } = ingestInto(store)
const BATCH = 10
let next = 0
await Promise.all(Array.from({ length: 4 }, send))
await store.close()

async function send(): Promise<void> {
  while (next < Number(count)) {
    const batch = Array.from({ length: BATCH }, () => seen(next++))
    const { sightings, counts } = isCounted ? countedBatch(batch) : { sightings: batch, counts: [] }
    await ingest.take(sightings, 'none', counts)
    process.stdout.write(`${batch.map(({ id }) => id).join(' ')}\n`)
  }
}

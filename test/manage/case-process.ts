import { EventLog } from '../../src/manage/events/event-log.ts'
import { Store } from '../../src/store/store.ts'
import { event } from './webhook-site.ts'

// For cases.test.ts, which kills it: stores threats of three fingerprints, and says which are acknowledged.
const [url, count] = process.argv.slice(2)
const store = await Store.open(url!)
const log = new EventLog(store)
for (let number = 0; number < Number(count); number++) {
  const data = { reason: 'blocked', count: 1, detection: { fingerprints: { ja4: `t13d_${number % 3}` } } }
  const threat = event({ type: 'threat_detected', data: JSON.stringify(data) })
  await store.transaction((queries) => log.add([threat], queries))
  process.stdout.write(`${threat.id}\n`)
}
await store.close()

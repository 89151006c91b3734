import { parseArgs } from 'node:util'
import { setTimeout as wait } from 'node:timers/promises'
import { Store } from '../../src/store/store.ts'
import { event, WebhookSite } from './webhook-site.ts'

/**
 * A process that adds events and delivers them until it is killed. It says on its standard output which it has added,
 * once they are committed, and how large it is.
 */
const TOGETHER_MAX = 20
const PAUSE_MS = 25
const SUBJECTS = 50
const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    name: { type: 'string' },
    from: { type: 'string' },
    to: { type: 'string' },
  },
})
const { url, name, from, to } = values
const store = await Store.open(url!)
const owner = { teardown: () => undefined }
const settings = { timeoutMs: 1_000, retryBaseMs: 200, heldMs: 3_000 }
const site = await WebhookSite.start(owner, store, settings)
setInterval(() => say(`size ${process.memoryUsage().rss}`), 500).unref()
process.once('SIGTERM', async () => {
  await site.deliverer.close()
  await store.close()
  process.exit()
})

let next = Number(from)
// What was committed, and killed before it could say so.
while ((await store.events.byId(idOf(next), '*')) !== null) say(`added ${next++}`)
while (next < Number(to)) {
  const numbers = Array.from(
    { length: Math.min(1 + Math.floor(Math.random() * TOGETHER_MAX), Number(to) - next) },
    (_, index) => next + index,
  )
  await site.add(...numbers.map(drilled))
  for (const number of numbers) say(`added ${number}`)
  next += numbers.length
  await wait(PAUSE_MS)
}
say('all')
await new Promise(() => setInterval(() => undefined, 1_000))

function drilled(number: number) {
  const subject = `${name} ${number % SUBJECTS}`
  const data = JSON.stringify({ subject, number, text: 'x'.repeat(400) })
  return event({ id: idOf(number), subject, data })
}

function idOf(number: number): string {
  return `evt_${name}_${number}`
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

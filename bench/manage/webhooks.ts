import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { openFresh, KINDS } from '../../test/store/databases.ts'
import { event, WebhookSite } from '../../test/manage/webhook-site.ts'

/**
 * `npm run bench:webhooks`: deliveries a second to a receiver that answers at once, from events that are written down
 * already until the last outcome is, in each database. The receiver is a process of its own. The best of some rounds.
 */
const ROUNDS = 5
const EVENTS = 4_000
/** As large as what is told of a threat. */
const DATA = JSON.stringify({ reason: 'spoofed-browser', severity: 'high', text: 'x'.repeat(800) })

if (process.argv[2] === 'receive') await receive()
else await measure()

async function measure(): Promise<void> {
  const receiver = fork(new URL(import.meta.url).pathname, ['receive'])
  const url = await urlOf(receiver)
  for (const kind of KINDS) {
    const undoings: (() => unknown)[] = []
    const owner = { teardown: (undo: () => unknown) => void undoings.push(undo) }
    const store = await openFresh(kind, owner)
    const site = await WebhookSite.start(owner, store, { retryBaseMs: 10_000, pollMs: 500 })
    await site.webhook(url)
    const rates: number[] = []
    const processorMs: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const events = Array.from({ length: EVENTS }, () => event({ data: DATA }))
      const started = performance.now()
      const before = process.cpuUsage()
      await site.add(...events)
      while ((await store.deliveries.countPending()).count > 0) await wait(10)
      rates.push((EVENTS / (performance.now() - started)) * 1000)
      const { user, system } = process.cpuUsage(before)
      processorMs.push((user + system) / 1000 / EVENTS)
    }
    const sorted = rates.toSorted((a, b) => b - a)
    process.stdout.write(
      `${kind}: best ${sorted[0]!.toFixed(0)} deliveries/s, median ${sorted[ROUNDS >> 1]!.toFixed(0)}; ` +
        `${Math.min(...processorMs).toFixed(2)} ms of processor each\n`,
    )
    for (const undo of undoings.toReversed()) await undo()
  }
  receiver.kill()
}

async function receive(): Promise<void> {
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.writeHead(204).end())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`)
}

async function urlOf(receiver: ChildProcess): Promise<string> {
  const [url] = (await once(receiver, 'message')) as [string]
  return url
}

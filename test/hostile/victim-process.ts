import assert from 'node:assert/strict'
import { createLogTo } from '../../src/shared/log.ts'
import { LocalManageBus } from '../../src/plane/local-bus.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import { SingleWorker } from '../../src/proxy/worker/single-worker.ts'
import type { Order, Reading, Ready, VictimPlan } from './victim.ts'

// A real worker in a process of its own, so that what is measured is the worker's. See victim.ts.
const plan: VictimPlan = JSON.parse(process.argv[2]!)
const bus = new LocalManageBus()
bus.publish(makeSnapshot(1, { rules: [] }, Date.now()))
const worker = new SingleWorker(plan.settings, bus, createLogTo('silent', { write: () => undefined }))
const ticketKeys = Buffer.from(plan.ticketKeys, 'hex')
const addresses = await worker.start({ keyPairs: plan.keyPairs, ticketKeys, signingKey: null })

process.on('message', async ({ ticketKeys, isWeighed }: Order) => {
  if (ticketKeys !== null)
    worker.use({ keyPairs: plan.keyPairs, ticketKeys: Buffer.from(ticketKeys, 'hex'), signingKey: null })
  if (isWeighed) await collect()
  send(await read())
})
process.on('disconnect', () => process.exit())
send({ port: addresses.listen.port, plainPort: addresses.plainListen?.port ?? 0 })

async function collect(): Promise<void> {
  assert(globalThis.gc !== undefined, 'started with --expose-gc')
  // Twice, with a turn between: what the first finds unreachable has things of Node's to let go of.
  globalThis.gc()
  await new Promise((resolve) => setTimeout(resolve, 10))
  globalThis.gc()
}

async function read(): Promise<Reading> {
  const { rss, heapUsed, external } = process.memoryUsage()
  const metrics: Reading['metrics'] = {}
  for (const { name, values } of (await worker.read())[0]!) {
    for (const { labels, metricName, value } of values) {
      if (metricName !== undefined) continue
      const key = [name.replace('gatehouse_', ''), ...Object.values(labels)].join(' ')
      metrics[key] = value
    }
  }
  return { residentBytes: rss, heldBytes: heapUsed + external, metrics }
}

function send(message: Ready | Reading): void {
  process.send!(message)
}

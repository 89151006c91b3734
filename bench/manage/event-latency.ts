import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Gateway, post, startGateway } from './gateway.ts'

/**
 * How long after a request has come to the proxy its event is at a receiver of webhooks, in a gateway of two workers on
 * the embedded database. `npm run bench:events [-- --events N --load N --busy]`: beside so many other requests a second,
 * and while something else keeps a processor busy.
 */
const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '200' },
    load: { type: 'string', default: '200' },
    busy: { type: 'boolean', default: false },
  },
})

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-events-'))
  const app = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1')
  await once(app, 'listening')
  const busy = values.busy ? spawn(process.execPath, ['-e', 'for (;;);']) : null
  let gateway: Gateway | null = null
  try {
    const variables = {
      GATEHOUSE_PROXY_TRUSTED_PROXIES: '127.0.0.1',
      GATEHOUSE_WEBHOOKS_ALLOW_PRIVATE_ADDRESSES: 'true',
    }
    gateway = await startGateway({ folder, appPort: (app.address() as AddressInfo).port, variables })
    await sleep(3000) // for what a start does on the side
    await measure(gateway)
  } finally {
    gateway?.child.kill('SIGKILL')
    busy?.kill('SIGKILL')
    app.close()
    app.closeAllConnections()
    await sleep(500) // workers follow
    rmSync(folder, { recursive: true })
  }
}

async function measure(gateway: Gateway): Promise<void> {
  const sentMs = new Map<string, number>()
  const times: number[] = []
  const receiver = createServer(async (asked, response) => {
    const { data } = (await json(asked)) as {
      readonly data: { readonly request?: { readonly path: string } }
    }
    response.end()
    const path = data.request?.path ?? ''
    const atMs = sentMs.get(path)
    if (atMs !== undefined) times.push(performance.now() - atMs)
    sentMs.delete(path)
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  await post(gateway, '/v1/webhooks', { url, events: ['threat_detected'] })
  const load = setInterval(() => void ask(gateway.port, '/', {}), 1000 / Number(values.load))
  for (let number = 0; number < Number(values.events); number++) {
    const path = `/event-${number}`
    sentMs.set(path, performance.now())
    // Each from an address of its own, so that each is an event of its own, and few enough a minute to be no storm.
    const address = `192.0.${2 + (number >> 8)}.${number & 255}`
    void ask(gateway.port, path, { 'x-forwarded-for': address, 'x-agent-name': 'forged' })
    await sleep(EVENT_EVERY_MS)
  }
  clearInterval(load)
  for (let left = 100; sentMs.size > 0 && left > 0; left--) await sleep(100)
  receiver.close()
  receiver.closeAllConnections()
  times.sort((one, other) => one - other)
  const at = (share: number) =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))]?.toFixed(0)
  process.stdout.write(
    `from the request to the receiver: ${at(0.5)} ms at the median, ${at(0.99)} ms p99, ${at(1)} ms at worst; ${times.length} events, ${sentMs.size} missing\n`,
  )
}

async function ask(port: number, path: string, headers: Record<string, string>): Promise<void> {
  const options = { host: '127.0.0.1', port, path, agent: CONNECTIONS, rejectUnauthorized: false, headers }
  const [response] = await once(request(options).end(), 'response')
  response.resume()
}

const CONNECTIONS = new Agent({ keepAlive: true, maxSockets: 32 })
/** A storm is what comes more often. */
const EVENT_EVERY_MS = 2_100

await main()
process.exit()

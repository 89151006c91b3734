import assert from 'node:assert/strict'
import { request } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { startNats, folderFor, freshBusName } from './engines.ts'
import { asked, eventually, startFleetProxy, startManager } from './fleet.ts'
import type { RunningGatehouse } from './gatehouse.ts'
import { skipped } from './programs.ts'
import { startApp } from './app.ts'
import { freshUrl } from '../store/databases.ts'

const ADDRESSES = 60
/** About forty requests a second. */
const PACE_MS = 20
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

test('a crawl over two proxies and two managers is one campaign, and both proxies block it', {
  skip: skipped('nats-server'),
}, async (t) => {
  const app = await startApp(t)
  const [nats, postgres] = [await startNats(t), await freshUrl('postgres', t)]
  const place = { nats: nats.url, postgres, bus: freshBusName() }
  const managers = [await startManager(t, place), await startManager(t, place)]
  const proxies = await Promise.all(
    ['one', 'two'].map((name) => startFleetProxy(t, place, app.url, folderFor(t, name))),
  )
  const campaignsAt = async (manager: (typeof managers)[number]) =>
    (await asked(manager, 'GET', '/v1/campaigns')).campaigns
  let sent = 0
  const crawl = async () => {
    for (let i = 0; i < 20; i++) {
      await pageFrom(proxies[sent % 2]!, `127.1.0.${1 + (sent % ADDRESSES)}`, `/item/${sent}`)
      sent++
      await wait(PACE_MS)
    }
  }
  await eventually(async () => {
    await crawl()
    return (await campaignsAt(managers[0]!)).length === 1
  })
  t.comment(`found after ${sent} requests`)
  assert.ok(sent <= 1_000, `${sent} requests`)
  await eventually(async () => {
    await crawl()
    return (await campaignsAt(managers[0]!))[0].members >= 50
  })
  assert.equal((await campaignsAt(managers[1]!))[0].id, (await campaignsAt(managers[0]!))[0].id)
  const { requests } = await asked(
    managers[1]!,
    'GET',
    `/v1/requests?campaign_id=${(await campaignsAt(managers[1]!))[0].id}&limit=100`,
  )
  // Each proxy receives every second address, so these are of both.
  const addresses = new Set(requests.map(({ address }: { address: string }) => address))
  assert.ok(addresses.size >= 50, `${addresses.size} addresses`)

  const policy = { rules: [{ name: 'campaigns', when: { campaign: true }, action: 'block' }] }
  await asked(managers[1]!, 'PUT', '/v1/policy', policy, { 'if-match': '*' })
  for (const proxy of proxies) {
    await eventually(async () => (await pageFrom(proxy, '127.1.0.1', '/again')) === 403)
    assert.equal(await pageFrom(proxy, '127.9.0.1', '/again'), 200)
  }
})

/** A page as a browser requests it, from this address; its status. */
function pageFrom({ port, ca }: RunningGatehouse, localAddress: string, path: string): Promise<number> {
  const headers = {
    host: 'localhost',
    'user-agent': CHROME,
    accept: 'text/html,application/xhtml+xml',
    'sec-fetch-site': 'none',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-dest': 'document',
  }
  const to = {
    host: '127.0.0.1',
    servername: 'localhost',
    port,
    ca,
    path,
    localAddress,
    headers,
    agent: false,
  }
  return new Promise((resolve, reject) => {
    request(to, (response) => response.resume().on('end', () => resolve(response.statusCode!)))
      .on('error', reject)
      .end()
  })
}

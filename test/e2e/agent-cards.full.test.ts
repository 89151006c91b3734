import assert from 'node:assert/strict'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { once } from 'node:events'
import https from 'node:https'
import type { IncomingMessage } from 'node:http'
import { test } from 'tap'
import { DocumentServer } from '../identity/document-server.ts'
import { made } from '../identity/forgeries.ts'
import { newSigner } from '../identity/signer.ts'
import { startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'
import { until } from '../until.ts'

const POLICY = `unknown_signer: {wait: 5s}
rules:
  - {name: bad addresses, when: {evidence: outside-card-ranges}, action: {block: {status: 451}}}
  - {name: readers, when: {card: {purpose: search, trigger: fetcher}}, action: {block: {status: 401}}}
  - {name: listed, when: {card: {registry: 'http://*/agents.txt'}}, action: {block: {status: 404}}}
  - {name: no card, when: {verified: web-bot-auth, card: false}, action: {block: {status: 403}}}
`

test('rules test the cards of signers and the registries that list them', async (t) => {
  const app = await startApp(t)
  const server = await DocumentServer.start(t, 'http')
  const at = (path: string) => server.url(path, '127.0.0.1')
  const [signer, other] = [newSigner('ed25519'), newSigner('ed25519')]
  const document = (path: string, more: object) =>
    server.serveJson(path, { client_id: at(path), client_name: path.slice(1), ...more })
  server.serveJson('/keys', { keys: [signer.jwk] })
  document('/reader', {
    jwks_uri: at('/keys'),
    web_bot_auth: { purpose: 'search', trigger: 'fetcher' },
  })
  document('/crawler', {
    jwks: { keys: [signer.jwk] },
    web_bot_auth: { purpose: 'search', trigger: 'crawler' },
  })
  document('/listed', { jwks_uri: at('/keys'), web_bot_auth: { ips_uri: at('/ips.json') } })
  document('/both', { jwks_uri: at('/keys'), jwks: { keys: [signer.jwk] } })
  server.serveJson('/bare', { keys: [signer.jwk] })
  server.serveJson('/ips.json', { prefixes: [{ ipv4Prefix: '8.8.8.0/24' }] })
  server.serve('/agents.txt', (_, response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).end(`${at('/listed')}\nnot a card\n`),
  )
  const policy = join(temporaryFolder(t), 'policy.yaml')
  writeFileSync(policy, POLICY)
  const gate = await startGatehouse(t, {
    ...{ command: 'proxy', upstream: app.url, argv: ['--policy', policy] },
    settings: ['trusted_proxies: [127.0.0.1]'],
    variables: {
      ...{ GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true', GATEHOUSE_IDENTITY_HOSTS: 'localhost' },
      GATEHOUSE_IDENTITY_REGISTRIES: at('/agents.txt'),
    },
  })
  // What was created in the second of the start may have been used before it.
  const readyS = Math.floor(Date.now() / 1_000)
  await until(async () => Math.floor(Date.now() / 1_000) > readyS)
  const statusOf = async (path: string, key = signer, from = '8.8.8.8') => {
    const scene = {
      ...{ agent: { id: at(path), ed25519: key, p256: key, rsa: key }, stranger: other },
      ...{ authority: `localhost:${gate.port}`, nowS: Math.floor(Date.now() / 1_000) },
    }
    const shown = `sig1="${at(path)}";type=${path === '/bare' ? 'jwks_uri' : 'cimd'}`
    const { headers } = made(scene, {
      agent: shown,
      components: [
        ['"@authority"', scene.authority],
        ['"signature-agent";key="sig1"', shown.slice(5)],
      ],
    })
    return ask(gate, [...headers, 'X-Forwarded-For', from])
  }
  assert.equal(await statusOf('/reader'), 401)
  assert.equal(await statusOf('/crawler'), 200)
  assert.equal(await statusOf('/bare'), 403)
  // The card is that of a proven agent only.
  assert.equal(await statusOf('/reader', other), 200)
  assert.equal(await statusOf('/both'), 200)
  assert.deepEqual([await statusOf('/listed'), await statusOf('/listed')], [404, 404])
  await until(async () => (await statusOf('/listed', signer, '9.9.9.9')) === 451)
  assert.equal(await statusOf('/listed'), 404)
  const metrics = await (await fetch(`${gate.manage}/metrics`)).text()
  assert.match(metrics, /^gatehouse_registry_agents 2$/m)
  assert.match(gate.said(), /line 2: .*a registry of agents has invalid cards/)
})

async function ask({ port, ca }: RunningGatehouse, headers: readonly string[]): Promise<number> {
  const options = { port, ca, path: '/cart?id=7', servername: 'localhost', agent: false }
  const list = ['Host', `localhost:${port}`, ...headers]
  const request = https.request({ ...options, headers: list as never }).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response.statusCode!
}

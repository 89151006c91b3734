import assert from 'node:assert/strict'
import { createPublicKey, type JsonWebKey, verify } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { httpbis } from 'http-message-signatures'
import { test } from 'tap'
import { CARD, DIRECTORY } from '../../src/classify/known/signer-id.ts'
import { readCard } from '../../src/identity/cards/card-document.ts'
import { readKeySet } from '../../src/identity/keys/agent-document.ts'
import { directoryProof } from '../../src/identity/verify/directory-signature.ts'
import { run, start } from '../commands/gateway-process.ts'
import { Receiver } from './receiver.ts'
import { temporaryFolder } from './programs.ts'
import { freePort } from './ports.ts'

const KEY = 'an-admin-key-for-tests-only'
const listen = '"127.0.0.1:0"'

test('what we sign, others verify by our directory: webhooks, and what the app is told', async (t) => {
  const folder = temporaryFolder(t)
  const app = await Receiver.start(t)
  const receiver = await Receiver.start(t)
  const text = `proxy: {upstream: "${app.url}", listen: "127.0.0.1:${await freePort()}"}
manage: {listen: ${listen}, admin_key: ${KEY}}
webhooks: {allow_private_addresses: true}
signing: {webhooks: true, upstream: true}
`
  writeFileSync(join(folder, 'g.yaml'), text, { mode: 0o600 })
  const gateway = await start(t, folder, 'up')
  const file = join(folder, 'data', 'signing.jwk')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const secret = JSON.parse(readFileSync(file, 'utf8')).keys[0].d as string

  const answer = await fetch(`http://${gateway.manage}${DIRECTORY}`)
  const document = await answer.text()
  assert.equal(answer.headers.get('content-type'), 'application/http-message-signatures-directory+json')
  assert.equal(answer.headers.get('cache-control'), 'public, max-age=3600')
  const keys = readKeySet(JSON.parse(document), { allowPrivate: false })
  assert.equal(keys.length, 1)
  const own = {
    ...{ url: answer.url, headers: Object.fromEntries(answer.headers) },
    body: Buffer.from(document),
  }
  const proof = directoryProof(own, keys, Date.now())
  assert.equal(proof!.keys.length, 1)
  assert.ok(!document.includes(secret))
  const said = await fetch(`http://${gateway.manage}${CARD}`)
  const card = await said.text()
  const { client_id: cardId, jwks_uri: keysAt } = JSON.parse(card) as Record<string, string>
  assert.deepEqual([cardId, keysAt], [said.url, answer.url])
  assert.equal(readCard(JSON.parse(card), said.url, { allowPrivate: true })?.ignored.length, 0)
  const signedCard = { url: said.url, headers: Object.fromEntries(said.headers), body: Buffer.from(card) }
  assert.equal(directoryProof(signedCard, keys, Date.now(), true)?.keys.length, 1)
  assert.ok(!card.includes(secret))
  const posted = await fetch(`http://${gateway.manage}${DIRECTORY}`, { method: 'POST' })
  assert.equal(posted.status, 405)

  const [key] = keys
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const made = await fetch(`http://${gateway.manage}/v1/webhooks`, {
    ...{ method: 'POST', headers },
    body: JSON.stringify({ url: `${receiver.url}/hook?of=us`, events: ['new_agent'] }),
  })
  assert.equal(made.status, 201, await made.clone().text())
  const { id } = (await made.json()) as { id: string }
  await fetch(`http://${gateway.manage}/v1/webhooks/${id}/test`, { method: 'POST', headers })
  const told = await receiver.next()
  assert.equal(told.headers['signature-agent'], `sig1="http://${gateway.manage}"`)
  const isVerified = await httpbis.verifyMessage(
    {
      keyLookup: async ({ keyid }) =>
        keyid !== key!.thumbprint
          ? null
          : {
              id: keyid,
              algs: ['ed25519'],
              verify: async (data, signature) => verify(null, data, key!.key, signature),
            },
      requiredFields: ['@method', '@authority', '@path', '@query', 'content-digest', 'webhook-id'],
    },
    { method: 'POST', url: `${receiver.url}/hook?of=us`, headers: told.headers as Record<string, string> },
  )
  assert.equal(isVerified, true)
  const asCaptured = JSON.stringify({
    ...{ method: 'POST', url: `${receiver.url}/hook?of=us`, body: told.body.toString() },
    headers: told.headers,
  })
  writeFileSync(join(folder, 'hook.json'), asCaptured)
  assert.match(await run(folder, 'verify', 'hook.json', '--allow-private'), /^ok +body .*\n\nproven: http/m)

  const port = Number(/listen: "127\.0\.0\.1:(\d+)"\}/.exec(text)![1])
  const asked = request({ host: '127.0.0.1', port, path: '/a?b', rejectUnauthorized: false }).end()
  const seen = await app.next()
  asked.on('response', (response) => response.resume())
  const value = String(seen.headers['x-agent-signature'])
  const [, parameters, covered, signature] = /^((\([^)]*\)).*?);sig=:([^:]+):$/.exec(value)!
  assert.match(parameters!, new RegExp(`;keyid="${key!.thumbprint}";alg="ed25519"$`))
  const parts: Record<string, string> = {
    ...{ '@method': 'GET', '@authority': String(seen.headers.host), '@path': '/a', '@query': '?b' },
  }
  const names = [...covered!.matchAll(/"([^"]+)"/g)].map(([, name]) => name!)
  const base = names.map((name) => `"${name}": ${parts[name] ?? String(seen.headers[name])}\n`).join('')
  const publicKey = createPublicKey({ key: JSON.parse(document).keys[0] as JsonWebKey, format: 'jwk' })
  const bytes = Buffer.from(`${base}"@signature-params": ${parameters}`, 'latin1')
  assert.ok(verify(null, bytes, publicKey, Buffer.from(signature!, 'base64')))
  assert.ok(names.includes('x-agent-verdict'))

  const added = await run(folder, 'sign', 'key', '--add', file)
  gateway.hangUp()
  await gateway.until('reload_total{what="signing-key",outcome="loaded"}', 1)
  const later = (await (await fetch(`http://${gateway.manage}${DIRECTORY}`)).json()) as {
    keys: { kid: string }[]
  }
  assert.deepEqual(
    later.keys.map(({ kid }) => kid),
    [added.trim(), key!.thumbprint],
  )
  assert.ok(!gateway.said().includes(secret))
  await gateway.stop()
})

test('a gateway that signs nothing shows no keys, and makes none', async (t) => {
  const folder = temporaryFolder(t)
  const text = `proxy: {upstream: "http://127.0.0.1:9", listen: ${listen}}\nmanage: {listen: ${listen}}\n`
  writeFileSync(join(folder, 'g.yaml'), text, { mode: 0o600 })
  const gateway = await start(t, folder, 'up')
  const answer = await fetch(`http://${gateway.manage}${DIRECTORY}`)
  assert.equal(answer.status, 404)
  assert.match(await answer.text(), /does not sign requests/)
  assert.throws(() => statSync(join(folder, 'data', 'signing.jwk')), { code: 'ENOENT' })
  await gateway.stop()
})

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import * as jose from 'jose'
import * as oauth from 'oauth4webapi'
import { test } from 'tap'
import type {
  ClientDocument,
  ClientDocuments,
  Standing,
} from '../../src/manage/auth/oauth/client-documents.ts'
import { TestManagement } from './management.ts'
import { postForm } from './oauth-client.ts'
import { TestBrowser, TestPeople } from './oauth-people.ts'

const INSECURE = { [oauth.allowInsecureRequests]: true }
const AGENT = 'https://agent.example/identity.json'

class TestDocuments implements ClientDocuments {
  readonly documents = new Map<string, ClientDocument>()
  readonly standings = new Map<string, Standing>()

  async find(url: string): Promise<ClientDocument | null> {
    return this.documents.get(url) ?? null
  }

  async standing(url: string): Promise<Standing | null> {
    return this.standings.get(url) ?? null
  }
}

test('an agent proves that it is who its document is of, and may do what an administrator lets it', async (t) => {
  const { manage, documents, keys, ask } = await start(t)
  const nothing = await ask()
  assert.deepEqual([nothing.status, nothing.body.error], [400, 'invalid_scope'])
  documents.standings.set(AGENT, {
    name: 'the agent',
    apps: '*',
    scopes: ['read', 'detect'],
    plan: 'standard',
  })
  const { body } = await ask({ scope: 'read admin' })
  assert.equal(body.scope, 'read')
  const claims = jose.decodeJwt(body.access_token)
  assert.deepEqual([claims.sub, claims['client_id']], [AGENT, AGENT])
  const open = (path = '/v1/agents') =>
    manage.ask('GET', path, undefined, { authorization: `Bearer ${body.access_token}` })
  assert.deepEqual([(await open()).status, (await open('/v1/keys')).status], [200, 403])
  documents.standings.set(AGENT, { name: null, apps: '*', scopes: ['detect'], plan: 'standard' })
  await wait(600)
  assert.equal((await open()).status, 403)
  documents.standings.delete(AGENT)
  await wait(600)
  assert.equal((await open()).body.code, 'invalid_token')
  // Who has another key is somebody else.
  const others = await oauth.generateKeyPair('ES256')
  documents.standings.set(AGENT, { name: null, apps: '*', scopes: ['read'], plan: 'standard' })
  assert.equal((await ask({}, others.privateKey)).body.error, 'invalid_client')
  assert.equal((await ask({}, keys.privateKey)).status, 200)
  documents.documents.delete(AGENT)
  assert.equal((await ask({}, keys.privateKey)).body.error, 'invalid_client')
  assert.deepEqual(manage.failures, [])
})

test('a client that keeps its own document asks people, and gets what they have, less administration', async (t) => {
  const { manage, people, documents } = await start(t)
  const app = 'https://app.example/client.json'
  const redirect_uri = 'https://app.example/callback'
  documents.documents.set(app, { name: 'an app', jwks: null, redirectUris: [redirect_uri] })
  people.add('usr_1', ['admin'])
  const verifier = randomBytes(32).toString('base64url')
  const parameters = {
    ...{ response_type: 'code', client_id: app, redirect_uri, scope: 'read write admin' },
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }
  const authorize = (more: object) =>
    new TestBrowser(manage.url).open(
      `${manage.url}/oauth/authorize?${new URLSearchParams({ ...parameters, ...more })}`,
    )
  const { away } = await authorize({})
  const form = { grant_type: 'authorization_code', redirect_uri, client_id: app, code_verifier: verifier }
  const code = away!.searchParams.get('code')!
  const { status, body } = await postForm(manage.url, '/oauth/token', { ...form, code })
  assert.deepEqual([status, body.scope], [200, 'read write'])
  assert.equal(typeof body.refresh_token, 'string')
  assert.deepEqual(people.shown.at(-1)?.client, { id: app, name: 'an app', isRegistered: true })
  const bearer = { authorization: `Bearer ${body.access_token}` }
  assert.equal((await manage.ask('GET', '/v1/agents', undefined, bearer)).status, 200)
  assert.equal((await manage.ask('GET', '/v1/keys', undefined, bearer)).status, 403)
  const own = await postForm(manage.url, '/oauth/token', { grant_type: 'client_credentials', client_id: app })
  assert.equal(own.status, 400)
  assert.equal((await authorize({ redirect_uri: 'https://evil.example/' })).status, 400)
  for (const document of [
    { name: 'x', jwks: null, redirectUris: [] },
    { name: 'x', jwks: null, redirectUris: [redirect_uri, 'http://evil.example/'] },
    { name: 'x', jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] }, redirectUris: [redirect_uri] },
  ]) {
    documents.documents.set(app, document)
    assert.equal((await authorize({})).status, 400)
  }
  assert.deepEqual(manage.failures, [])
})

test('the management plane says that an address can be a client, and fetches nothing from where it must not', async (t) => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const place = `http://127.0.0.1:${(server.address() as AddressInfo).port}/client.json`
  const metadata = async ({ url }: TestManagement) =>
    (await (await fetch(`${url}/.well-known/oauth-authorization-server`)).json()) as Record<string, unknown>
  const alone = await TestManagement.start(t, { people: new TestPeople() })
  const { manage } = await start(t)
  for (const each of [alone, manage])
    for (const client_id of [place, place.replace('http:', 'https:'), 'https://169.254.169.254/latest']) {
      const refused = await postForm(each.url, '/oauth/token', {
        grant_type: 'client_credentials',
        client_id,
      })
      assert.deepEqual([refused.status, refused.body.error], [401, 'invalid_client'])
    }
  assert.deepEqual(asked, [])
  const member = 'client_id_metadata_document_supported'
  assert.deepEqual([(await metadata(alone))[member], (await metadata(manage))[member]], [true, true])
})

async function start(t: Parameters<typeof TestManagement.start>[0]) {
  const [people, documents] = [new TestPeople(), new TestDocuments()]
  const manage = await TestManagement.start(t, { people, clientDocuments: documents })
  const keys = await oauth.generateKeyPair('ES256')
  const jwks = { keys: [{ ...(await jose.exportJWK(keys.publicKey)) }] }
  documents.documents.set(AGENT, { name: 'itself', jwks, redirectUris: [] })
  const server = { issuer: manage.url, token_endpoint: `${manage.url}/oauth/token` }
  const ask = async (form: Record<string, string> = {}, key = keys.privateKey) => {
    const proof = oauth.PrivateKeyJwt(key)
    const client = { client_id: AGENT }
    const response = await oauth.clientCredentialsGrantRequest(
      server,
      client,
      proof,
      new URLSearchParams(form),
      INSECURE,
    )
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
    const body = (await response.json()) as any
    return { status: response.status, body }
  }
  return { manage, people, documents, keys, ask }
}

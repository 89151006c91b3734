import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Scope } from '../../src/manage/http/access/principal.ts'
import { DocumentServer } from '../identity/document-server.ts'
import { newSigner, type Signer } from '../identity/signer.ts'
import type { Owner } from '../store/databases.ts'
import { agentRequest, send } from './agent-client.ts'
import { GnapClient, type Token } from './gnap-client.ts'
import type { Answered, TestManagement } from './management.ts'
import { basic, clientFor, postForm } from './oauth-client.ts'

/** A way to prove who one is, which is made once and shown with each request. */
export interface Credential {
  /** `headers`: sent besides, and signed by none of them. */
  ask(method: string, path: string, headers?: Readonly<Record<string, string>>): Promise<Answered>
  /** With the same, spoiled. */
  askSpoiled(method: string, path: string): Promise<Answered>
}

/** Makes one that holds just these scopes. */
export type CredentialMaker = (
  manage: TestManagement,
  held: readonly Scope[],
  t: Owner,
) => Promise<Credential>

export const BOOTSTRAP_KEY = 'the first key of an administrator'

/** What is shown with each request as it is. The bootstrap key holds `admin`, and nothing less. */
export const PLAIN_CREDENTIALS: Readonly<Record<string, CredentialMaker>> = {
  'an API key': async (manage, scopes) => bearer(manage, await manage.key({ scopes, plan: 'standard' })),
  'the bootstrap key': async (manage) => bearer(manage, BOOTSTRAP_KEY),
  'an access token of OAuth': async (manage, scopes) => bearer(manage, await accessToken(manage, scopes, {})),
  'a bearer token of GNAP': async (manage, scopes) => {
    const { token } = await gnapToken(manage, scopes, ['bearer'])
    return bearer(manage, token.value)
  },
}

function bearer(manage: TestManagement, token: string): Credential {
  const send = (method: string, path: string, text: string, headers = {}) =>
    manage.ask(method, path, undefined, { ...headers, authorization: `Bearer ${text}` })
  return {
    ask: (method, path, headers) => send(method, path, token, headers),
    askSpoiled: (method, path) => send(method, path, spoiled(token)),
  }
}

export const boundByDpop: CredentialMaker = async (manage, scopes) => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const jwk = publicKey.export({ format: 'jwk' })
  const proof = (method: string, path: string, claims: Record<string, string>) =>
    new SignJWT({ htm: method, htu: manage.url + path.split('?', 1)[0]!, jti: randomUUID(), ...claims })
      .setIssuedAt()
      .setProtectedHeader({ alg: 'EdDSA', typ: 'dpop+jwt', jwk: jwk as Record<string, string> })
      .sign(privateKey)
  const token = await accessToken(manage, scopes, { dpop: await proof('POST', '/oauth/token', {}) })
  const ath = createHash('sha256').update(token).digest('base64url')
  const send = async (method: string, path: string, claims: Record<string, string>, headers = {}) =>
    manage.ask(method, path, undefined, {
      ...headers,
      authorization: `DPoP ${token}`,
      dpop: await proof(method, path, claims),
    })
  return {
    ask: (method, path, headers) => send(method, path, { ath }, headers),
    askSpoiled: (method, path) => send(method, path, { ath: spoiled(ath) }),
  }
}

export const boundByGnap: CredentialMaker = async (manage, scopes) => {
  const { client, token } = await gnapToken(manage, scopes, [])
  return {
    ask: (method, path, headers = {}) => client.ask(method, path, token, undefined, { headers }),
    askSpoiled: (method, path) => client.ask(method, path, token, undefined, { path: `${path}&more` }),
  }
}

export const agentIdentity: CredentialMaker = async (manage, scopes, t) => {
  const signer = newSigner('ed25519')
  const agent = scopes.length === 0 ? await stranger(t, signer) : `https://agent.example/${randomUUID()}`
  if (scopes.length > 0) await trust(manage, { document: documentOf(agent, signer) }, scopes)
  const from =
    (nonce?: string) =>
    async (method: string, path: string, more: Readonly<Record<string, string>> = {}) => {
      const asked = { method, path, agent, ...(nonce && { nonce }) }
      const sent = await agentRequest(manage.url, signer, asked)
      return send({ ...sent, headers: { ...sent.headers, ...more } })
    }
  const used = randomUUID()
  // Of who may do nothing nonces are not kept.
  if (scopes.length > 0) await from(used)('GET', '/v1/agents')
  return { ask: from(), askSpoiled: scopes.length > 0 ? from(used) : unsigned(manage, agent) }
}

function unsigned(manage: TestManagement, agent: string): Credential['askSpoiled'] {
  const strangeSigner = newSigner('ed25519')
  return async (method, path) => send(await agentRequest(manage.url, strangeSigner, { method, path, agent }))
}

/** Whom nobody trusts: its document is found, and that is all. */
async function stranger(t: Owner, signer: Signer): Promise<string> {
  const server = await DocumentServer.start(t, 'http')
  const agent = server.url('/identity.json', '127.0.0.1')
  server.serveJson('/identity.json', documentOf(agent, signer))
  return agent
}

/** Of a client that is an agent where it holds nothing: another could not have asked for it. */
async function accessToken(
  manage: TestManagement,
  scopes: readonly Scope[],
  headers: Record<string, string>,
): Promise<string> {
  const asked = { grant_type: 'client_credentials' }
  const answered =
    scopes.length > 0
      ? await postForm(manage.url, '/oauth/token', asked, {
          ...basic(await clientFor(manage, { scopes })),
          ...headers,
        })
      : await losingAll(manage, (form) =>
          postForm(manage.url, '/oauth/token', { ...asked, ...form }, headers),
        )
  assert.equal(answered.status, 200, JSON.stringify(answered.body))
  return answered.body.access_token
}

/** It was given what the agent may do no more. */
async function losingAll<Result>(
  manage: TestManagement,
  ask: (form: Record<string, string>) => Promise<Result>,
): Promise<Result> {
  const signer = newSigner('ecdsa-p256-sha256')
  const agent = `https://agent.example/${randomUUID()}`
  const document = documentOf(agent, signer)
  const before = await trust(manage, { document }, ['read'])
  const assertion = await new SignJWT({ iss: agent, sub: agent, aud: manage.url, jti: randomUUID() })
    .setIssuedAt()
    .setExpirationTime('1 minute')
    .setProtectedHeader({ alg: 'ES256' })
    .sign(signer.privateKey)
  const answered = await ask({
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  })
  await manage.ask('DELETE', `/v1/trust/${before}`)
  await trust(manage, { document }, ['write'])
  return answered
}

export async function gnapToken(
  manage: TestManagement,
  scopes: readonly Scope[],
  flags: readonly string[],
): Promise<{ readonly client: GnapClient; readonly token: Token }> {
  const client = new GnapClient(manage.url, newSigner('ed25519'))
  const first = scopes.length === 0 ? (['read'] as const) : scopes
  const entry = await trust(manage, { jwk: client.signer.jwk }, first)
  const wanted = { access: [{ type: 'service-api', actions: first }], flags }
  const { status, body } = await client.grant(first, { access_token: wanted })
  assert.equal(status, 200, JSON.stringify(body))
  if (scopes.length === 0) {
    await manage.ask('DELETE', `/v1/trust/${entry}`)
    await trust(manage, { jwk: client.signer.jwk }, ['write'])
  }
  return { client, token: body.access_token }
}

/** Resolves to the id of the entry. */
async function trust(
  manage: TestManagement,
  subject: Readonly<Record<string, unknown>>,
  scopes: readonly Scope[],
): Promise<string> {
  const { status, body } = await manage.ask('POST', '/v1/trust', { ...subject, scopes })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}

function documentOf(agent: string, { jwk }: Signer): Readonly<Record<string, unknown>> {
  return { client_id: agent, jwks: { keys: [jwk] } }
}

/** Another character in the middle: the last one of a base64url may mean nothing. */
function spoiled(text: string): string {
  const at = Math.floor(text.length / 2)
  return text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
}

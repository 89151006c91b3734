import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as jose from 'jose'
import { Provider } from 'oidc-provider'
import type { Owner } from '../store/databases.ts'

export interface OutsidePerson {
  readonly email?: string
  readonly email_verified?: unknown
  readonly groups?: unknown
  /** Claims that are at another place. */
  readonly _claim_names?: object
  readonly _claim_sources?: object
}

/** An OpenID provider that nobody here wrote, whose people say who they are as a test says. */
export class OutsideProvider {
  readonly url: string
  readonly people = new Map<string, OutsidePerson>()
  /** Who sits in front of the browser; `null`: somebody who does not want to. */
  who: string | null = 'anna'

  readonly #listen: (answer: Answer) => void

  static async start(t: Owner): Promise<OutsideProvider> {
    const { listen, url } = await server(t)
    return new OutsideProvider(url, listen)
  }

  private constructor(url: string, listen: (answer: Answer) => void) {
    this.url = url
    this.#listen = listen
  }

  /** From now on, for the gateway at this address, which has a secret there or none. */
  async serve(publicUrl: string, secret: string | null = null): Promise<void> {
    const provider = new Provider(this.url, {
      clients: [
        {
          ...{ client_id: CLIENT, redirect_uris: [`${publicUrl}/oauth/openid/callback`] },
          token_endpoint_auth_method: secret === null ? 'none' : 'client_secret_basic',
          ...(secret !== null && { client_secret: secret }),
        },
      ],
      jwks: { keys: [(await keyPair('RS256')).jwk] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
      cookies: { keys: ['of a test'] },
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      findAccount: async (_, id) => ({
        accountId: id,
        claims: () => ({ sub: id, ...(this.people.get(id) as object) }),
      }),
      loadExistingGrant: async (ctx) => {
        const { client, session } = ctx.oidc
        const grant = new provider.Grant({ clientId: client!.clientId, accountId: session!.accountId! })
        grant.addOIDCScope('openid email groups')
        await grant.save()
        return grant
      },
    })
    const answer = provider.callback()
    this.#listen(async (request, response) => {
      if (!request.url!.startsWith('/interaction/')) return answer(request, response)
      const result = this.who === null ? { error: 'access_denied' } : { login: { accountId: this.who } }
      await provider.interactionFinished(request, response, result)
    })
  }
}

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

/** What a provider could say that is not to be believed: each part of it may be changed. */
export class ForgingProvider {
  readonly url: string
  /** What it was asked for. */
  readonly asked: string[] = []
  readonly #answers = new Map<string, Answer>()
  readonly #signs: (claims: Record<string, unknown>) => Promise<string>
  metadata: Record<string, unknown>
  claims: Record<string, unknown>
  /** Makes the ID token of the claims. */
  sign: (claims: Record<string, unknown>) => Promise<string>

  static async start(t: Owner): Promise<ForgingProvider> {
    const { listen, url } = await server(t)
    const { key, jwk } = await keyPair('RS256')
    const forging = new ForgingProvider(url, key)
    const { kty, n, e, kid, alg } = jwk
    forging.answer('/jwks', (_, response) => sendJson(response, { keys: [{ kty, n, e, kid, alg }] }))
    listen(async (request, response) => {
      const path = request.url!.split('?', 1)[0]!
      forging.asked.push(`${request.method} ${path}`)
      const answer = forging.#answers.get(path)
      if (answer === undefined) response.writeHead(404).end()
      else await answer(request, response)
    })
    return forging
  }

  private constructor(url: string, key: jose.CryptoKey) {
    this.url = url
    this.metadata = {
      ...{ issuer: url, jwks_uri: `${url}/jwks`, userinfo_endpoint: `${url}/me` },
      ...{ authorization_endpoint: `${url}/auth`, token_endpoint: `${url}/token` },
      authorization_response_iss_parameter_supported: true,
      id_token_signing_alg_values_supported: ['RS256', 'none', 'HS256'],
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
    }
    this.claims = {}
    this.#signs = (claims) =>
      new jose.SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'a' }).sign(key)
    this.sign = this.#signs
    this.answer('/.well-known/openid-configuration', (_, response) => sendJson(response, this.metadata))
  }

  answer(path: string, answer: Answer): void {
    this.#answers.set(path, answer)
  }

  /** As it should be, for who was sent there. */
  honest(sentTo: URL): void {
    this.sign = this.#signs
    this.answer('/token', async (_, response) => {
      const id_token = await this.sign(this.claims)
      sendJson(response, { access_token: 'an-access-token', token_type: 'Bearer', id_token })
    })
    const nowS = Math.floor(Date.now() / 1000)
    this.claims = {
      ...{ iss: this.url, aud: CLIENT, sub: 'anna', iat: nowS, exp: nowS + 60, auth_time: nowS },
      ...{ nonce: sentTo.searchParams.get('nonce'), email: 'anna@example.com', email_verified: true },
    }
  }

  /** What it sends the browser back with. */
  back(sentTo: URL, more: Record<string, string | null> = {}): URL {
    const url = new URL(sentTo.searchParams.get('redirect_uri')!)
    const sent = { code: 'a-code', state: sentTo.searchParams.get('state'), iss: this.url, ...more }
    for (const [name, value] of Object.entries(sent)) if (value !== null) url.searchParams.set(name, value)
    return url
  }
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

async function server(t: Owner): Promise<{ url: string; listen(answer: Answer): void }> {
  let answer: Answer = () => undefined
  const listening = createServer((request, response) => void answer(request, response))
  listening.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  t.teardown(() => {
    listening.close()
    listening.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    listen: (next) => {
      answer = next
    },
  }
}

async function keyPair(alg: string) {
  const { privateKey: key } = await jose.generateKeyPair(alg, { extractable: true })
  return { key, jwk: { ...(await jose.exportJWK(key)), kid: 'a', alg, use: 'sig' } as jose.JWK_RSA_Private }
}

/** What it knows this gateway by. */
export const CLIENT = 'gatehouse'

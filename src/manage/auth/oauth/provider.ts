import { createHash, timingSafeEqual } from 'node:crypto'
import {
  type AccessToken,
  type ClientCredentials,
  type Configuration,
  errors,
  interactionPolicy,
  type KoaContextWithOIDC,
  Provider,
} from 'oidc-provider'
import type { OAuthClient } from '../../../store/people/oauth-clients.ts'
import type { Scope } from '../../http/access/principal.ts'
import { addAssertionGrant } from './assertion-grant.ts'
import type { Assertions } from './assertions.ts'
import { type ClientDocuments, clientOfDocument, isDocumentUrl } from './client-documents.ts'
import { AUTH_METHODS, metadataOf, OWN, type OwnMetadata, ownMetadata, scopesWithin } from './clients.ts'
import type { KnownClients } from './known-clients.ts'
import { messagePage, sendPage } from '../people/page.ts'
import { type BrowserContext, isSignedIn, type People, type Person } from './people.ts'
import { grantDigest, type RecordKeeping, Records } from './records.ts'
import { RESOURCES, resourceUrl } from '../../http/access/resources.ts'
import { INTERACTION_PATH, JWT_BEARER, ROUTES, SESSION_S, SIGNATURES, sessionCookie } from './routes.ts'
import type { KeySet } from './signing-keys.ts'

/** The parts of the authorization server. */
export interface ProviderParts extends RecordKeeping {
  readonly publicUrl: string
  readonly accessTokenTtlS: number
  /** The secret for DPoP nonces. `null`: proofs need no nonce. */
  readonly nonceSecret: Buffer | null
  /** `null`: people cannot sign in. */
  readonly people: People | null
  readonly clients: KnownClients
  readonly documents: ClientDocuments
  /** `null`: identity assertions are not accepted. */
  readonly assertions: Assertions | null
}

/** Configures oidc-provider. A new one is made when the signing key changes; it holds no lasting state. */
export function makeProvider(parts: ProviderParts, signer: KeySet['signer']): Provider {
  const provider = new Provider(parts.publicUrl, configuration(parts, signer))
  // The default compares with the secret itself, but only its hash is stored.
  provider.Client.prototype.compareClientSecret = function (actual: string) {
    const hash = createHash('sha256').update(actual).digest()
    const known = Buffer.from(this.clientSecret ?? '', 'hex')
    return known.length === hash.length && timingSafeEqual(hash, known)
  }
  speakAs(provider, parts.publicUrl)
  const { assertions, people } = parts
  if (assertions !== null && people !== null) addAssertionGrant(provider, { ...parts, assertions, people })
  return provider
}

/** Fixes the origin to the public URL: it must never come from the request. */
function speakAs(provider: Provider, publicUrl: string): void {
  const { origin, host, hostname, protocol } = new URL(publicUrl)
  const facts = { origin, host, hostname, protocol: protocol.slice(0, -1), secure: protocol === 'https:' }
  for (const [name, value] of Object.entries(facts))
    Object.defineProperty(provider.request, name, { value, configurable: true })
}

function configuration(parts: ProviderParts, signer: KeySet['signer']): Configuration {
  const { people } = parts
  return {
    adapter: (kind: string) => (kind === 'Client' ? clientsIn(parts) : new Records(kind, parts)),
    jwks: { keys: [{ ...signer.privateJwk }] },
    routes: ROUTES,
    scopes: ['offline_access'],
    claims: {},
    responseTypes: people === null ? [] : ['code'],
    clientAuthMethods: [...AUTH_METHODS],
    clientDefaults: { id_token_signed_response_alg: 'ES256', authorization_signed_response_alg: 'ES256' },
    extraClientMetadata: { properties: [OWN], validator: () => undefined },
    enabledJWA: {
      clientAuthSigningAlgValues: [...SIGNATURES],
      dPoPSigningAlgValues: [...SIGNATURES],
    },
    features: featuresOf(parts),
    pkce: { required: () => true },
    allowOmittingSingleRegisteredRedirectUri: false,
    // Only a page on the origin of the client's redirect URIs needs to read a token.
    clientBasedCORS: (_, origin, client) =>
      client.clientAuthMethod === 'none' &&
      (client.redirectUris ?? []).some((uri) => URL.parse(uri)?.origin === origin),
    cookies: {
      names: cookieNames(parts.publicUrl),
      long: { httpOnly: true, sameSite: 'lax' },
      short: { httpOnly: true, sameSite: 'lax' },
    },
    interactions: {
      policy: prompts(),
      url: (_, { uid }) => `${parts.publicUrl}${INTERACTION_PATH}${uid}`,
    },
    findAccount: async (ctx, id) => {
      const person = (await people?.find(id)) ?? null
      if (person === null || isOver(ctx, person)) return undefined
      return { accountId: id, person, claims: () => ({ sub: id }) }
    },
    issueRefreshToken: async (_, client, source) =>
      ownMetadata(client).hasRefresh || source.scopes.has('offline_access'),
    rotateRefreshToken: (ctx) => {
      checkRefresh(ctx, scopesFor(ctx, ownMetadata(ctx.oidc.client!)))
      return true
    },
    // Ending the session does not revoke consents.
    expiresWithSession: async () => false,
    extraTokenClaims: async (_, token) => claimsOf(token),
    // Shown to a person whose client has sent an invalid request.
    renderError: async (ctx, { error, error_description: description }) => {
      const text = [error, ...(description === undefined ? [] : [description])].join(': ')
      const page = messagePage('Request failed', text, ctx.status)
      sendPage(ctx as unknown as BrowserContext, parts.publicUrl, page)
    },
    ttl: {
      ...TTLS,
      AccessToken: () => parts.accessTokenTtlS,
      ClientCredentials: () => parts.accessTokenTtlS,
    },
    // oidc-provider must not fetch: documents are fetched elsewhere, with guards.
    fetch: async () => {
      throw new errors.InvalidRequest('fetching URLs is not supported')
    },
  }
}

/** Whether the session began before the person's password was changed or all their sessions were ended. */
function isOver({ oidc }: KoaContextWithOIDC, person: Person): boolean {
  const { session } = oidc as { session?: { accountId?: string; loginTs?: number } }
  return session?.accountId !== undefined && !isSignedIn((session.loginTs ?? 0) * 1000, person)
}

/** When to ask for a sign-in or consent. Also asks for a sign-in if the account was deleted. */
function prompts() {
  const policy = interactionPolicy.base()
  const isGone = ({ oidc }: KoaContextWithOIDC) =>
    oidc.session?.accountId !== undefined && oidc.account === undefined
  policy
    .get('login')!
    .checks.add(
      new interactionPolicy.Check('account_gone', 'the account no longer exists', 'login_required', isGone),
    )
  return policy
}

/** Cookie prefixes keep plain http and other hosts of the domain from setting them (RFC 6265bis §4.1.3). */
function cookieNames(publicUrl: string) {
  // These two cookies have a path, so they cannot use `__Host-`.
  const prefix = publicUrl.startsWith('https:') ? '__Secure-' : ''
  return {
    session: sessionCookie(publicUrl),
    interaction: `${prefix}gatehouse_interaction`,
    resume: `${prefix}gatehouse_resume`,
  }
}

function featuresOf({ publicUrl, accessTokenTtlS, nonceSecret }: ProviderParts): Configuration['features'] {
  const resources = new Set(RESOURCES.map((resource) => resourceUrl(publicUrl, resource)))
  return {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    dPoP: { enabled: true, ...(nonceSecret !== null && { nonceSecret, requireNonce: () => true }) },
    introspection: {
      enabled: true,
      allowedPolicy: async (_, client, token) => token.clientId === client.clientId,
    },
    revocation: {
      enabled: true,
      allowedPolicy: async (_, client, token) => token.clientId === client.clientId,
    },
    pushedAuthorizationRequests: { enabled: true },
    userinfo: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: async (_, __, oneOf) =>
        oneOf === undefined ? resourceUrl(publicUrl, 'v1') : [...oneOf][0]!,
      useGrantedResource: async () => true,
      getResourceServerInfo: async (ctx, resource, client) => {
        if (!resources.has(resource)) throw new errors.InvalidTarget()
        return {
          scope: scopesFor(ctx, ownMetadata(client)).join(' '),
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: accessTokenTtlS,
          jwt: { sign: { alg: 'ES256' } },
        }
      },
    },
  }
}

/**
 * The scopes available in this request: those of the client, limited to those of the person. A request
 * without a scope asks for all of the client's.
 */
function scopesFor(ctx: KoaContextWithOIDC, { scopes, withPeople }: OwnMetadata): readonly Scope[] {
  const { params, account, route } = ctx.oidc
  const isForItself = params?.['grant_type'] === 'client_credentials'
  const own = isForItself ? scopes : withPeople
  if (params !== undefined && !params['scope'] && (isForItself || ASKING.has(route)))
    params['scope'] = own.join(' ')
  const person = (account as { person?: Person } | undefined)?.person
  const may = scopesWithin(own)
  return person === undefined ? may : may.filter((scope) => scopesWithin([...person.scopes]).includes(scope))
}

/** Adds to the claims of RFC 9068. */
function claimsOf(token: AccessToken | ClientCredentials): Record<string, string> | undefined {
  if (!token.scope) throw noScope()
  return 'grantId' in token && token.grantId ? { grant: grantDigest(token.grantId) } : undefined
}

/** Read-only: clients.ts creates and deletes clients. */
function clientsIn({ clients, documents, assertions, people }: ProviderParts) {
  const more = assertions !== null && people !== null ? [JWT_BEARER] : []
  const refuse = async () => {
    throw new TypeError('clients cannot be changed through the authorization server')
  }
  return {
    find: async (id: string) => {
      const client = isDocumentUrl(id) ? await documentClient(id, documents) : await clients.byId(id)
      return client === null ? undefined : metadataOf(client, more)
    },
    upsert: refuse,
    findByUid: refuse,
    findByUserCode: refuse,
    consume: refuse,
    destroy: refuse,
    revokeByGrantId: refuse,
  }
}

async function documentClient(url: string, documents: ClientDocuments): Promise<OAuthClient | null> {
  const document = await documents.find(url)
  return document === null ? null : clientOfDocument(url, document, await documents.standing(url))
}

const ASKING = new Set(['authorization', 'pushed_authorization_request'])
const DAY_S = 86_400
const TTLS = {
  AuthorizationCode: 60,
  Grant: 90 * DAY_S,
  IdToken: 600,
  Interaction: 600,
  RefreshToken: 30 * DAY_S,
  Session: SESSION_S,
}

/**
 * oidc-provider checks the requested scope only after it has used up the refresh token, so an invalid request
 * would cost the client its token. This makes the same checks first and throws the same errors. `scopes`: all
 * that are available.
 */
function checkRefresh({ oidc }: KoaContextWithOIDC, scopes: readonly Scope[]): void {
  const { RefreshToken: token, Grant: grant } = oidc.entities
  const [resource] = [oidc.params?.['resource'] ?? token?.resource].flat()
  if (token === undefined || grant === undefined) return
  if (typeof resource !== 'string' || !token.resourceIndicators.has(resource))
    throw new errors.InvalidTarget()
  const asked = oidc.params?.['scope'] ? oidc.requestParamScopes : token.scopes
  const had = scopes.filter((scope) => asked.has(scope))
  if (grant.getResourceScopeFiltered(resource, had) === '') throw noScope()
}

function noScope(): errors.OIDCProviderError {
  return new errors.CustomOIDCProviderError('invalid_scope', 'none of the requested scopes is available')
}

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
import { type ClientDocuments, clientOfDocument, isDocumentUrl } from './client-documents.ts'
import { AUTH_METHODS, metadataOf, OWN, type OwnMetadata, ownMetadata, scopesWithin } from './clients.ts'
import type { KnownClients } from './known-clients.ts'
import { messagePage, sendPage } from '../people/page.ts'
import { type BrowserContext, isSignedIn, type People, type Person } from './people.ts'
import { grantDigest, type RecordKeeping, Records } from './records.ts'
import { checkRefresh, noScope } from './refresh.ts'
import { RESOURCES, resourceUrl } from '../../http/access/resources.ts'
import { INTERACTION_PATH, ROUTES, SESSION_S, SIGNATURES, sessionCookie } from './routes.ts'
import type { KeySet } from './signing-keys.ts'

/** What the authorization server is made of. */
export interface ProviderParts extends RecordKeeping {
  readonly publicUrl: string
  readonly accessTokenTtlS: number
  /** Of what nonces in proofs of keys are made; `null`: none are needed. */
  readonly nonceSecret: Buffer | null
  /** `null`: there is nobody who could sign in. */
  readonly people: People | null
  readonly clients: KnownClients
  readonly documents: ClientDocuments
}

/** oidc-provider as it is used here. It is made anew when another key signs: nothing lasting is in it. */
export function makeProvider(parts: ProviderParts, signer: KeySet['signer']): Provider {
  const provider = new Provider(parts.publicUrl, configuration(parts, signer))
  // Its own comparison wants the secret; there is only a hash of it, which it takes for one.
  provider.Client.prototype.compareClientSecret = function (actual: string) {
    const hash = createHash('sha256').update(actual).digest()
    const known = Buffer.from(this.clientSecret ?? '', 'hex')
    return known.length === hash.length && timingSafeEqual(hash, known)
  }
  speakAs(provider, parts.publicUrl)
  return provider
}

/** Who sent a request, and to what host, is never taken from the request itself. */
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
    // It compares what a page's origin is with where the codes of the client go; others have no use for a token.
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
    // Who closes the browser does not take back what they consented to.
    expiresWithSession: async () => false,
    extraTokenClaims: async (_, token) => claimsOf(token),
    // For somebody in a browser whose client has asked wrongly.
    renderError: async (ctx, { error, error_description: description }) => {
      const text = [error, ...(description === undefined ? [] : [description])].join(': ')
      const page = messagePage('This cannot go on', text, ctx.status)
      sendPage(ctx as unknown as BrowserContext, parts.publicUrl, page)
    },
    ttl: {
      ...TTLS,
      AccessToken: () => parts.accessTokenTtlS,
      ClientCredentials: () => parts.accessTokenTtlS,
    },
    // It goes nowhere by itself: what is fetched is fetched by others, with a guard.
    fetch: async () => {
      throw new errors.InvalidRequest('nothing is fetched from elsewhere')
    },
  }
}

/** Who has signed in in this browser, but before their password was changed. */
function isOver({ oidc }: KoaContextWithOIDC, person: Person): boolean {
  const { session } = oidc as { session?: { accountId?: string; loginTs?: number } }
  return session?.accountId !== undefined && !isSignedIn((session.loginTs ?? 0) * 1000, person)
}

/** When somebody has to sign in or to consent. Also when the one who is signed in is gone. */
function prompts() {
  const policy = interactionPolicy.base()
  const isGone = ({ oidc }: KoaContextWithOIDC) =>
    oidc.session?.accountId !== undefined && oidc.account === undefined
  policy
    .get('login')!
    .checks.add(
      new interactionPolicy.Check('account_gone', 'nobody is signed in any more', 'login_required', isGone),
    )
  return policy
}

/** Names that neither plain http nor other hosts of the domain can set (RFC 6265bis §4.1.3). */
function cookieNames(publicUrl: string) {
  // These two are for one path each.
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
 * What can be had in this request: of the client's, what the person has, too. Whoever asks for nothing asks for all of
 * it.
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

/** Beside those of RFC 9068. */
function claimsOf(token: AccessToken | ClientCredentials): Record<string, string> | undefined {
  if (!token.scope) throw noScope()
  return 'grantId' in token && token.grantId ? { grant: grantDigest(token.grantId) } : undefined
}

/** They are only read here: what makes them is clients.ts. */
function clientsIn({ clients, documents }: Pick<ProviderParts, 'clients' | 'documents'>) {
  const refuse = async () => {
    throw new TypeError('clients are not changed by way of the authorization server')
  }
  return {
    find: async (id: string) => {
      const client = isDocumentUrl(id) ? await documentClient(id, documents) : await clients.byId(id)
      return client === null ? undefined : metadataOf(client)
    },
    ...{ upsert: refuse, findByUid: refuse, findByUserCode: refuse, consume: refuse, destroy: refuse },
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

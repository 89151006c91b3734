import { ALL_APPS, type AppList } from '../../../apps/app-scope.ts'
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import type { ClientMetadata } from 'oidc-provider'
import type { OAuthClient } from '../../../store/people/oauth-clients.ts'
import type { Queries } from '../../../store/engine/database.ts'
import type { Store } from '../../../store/store.ts'
import { type Actor, changed } from '../../http/audit.ts'
import { newId } from '../../http/ids.ts'
import { type FieldError, invalid } from '../../http/refusal.ts'
import { hashOfKey, newSecret } from '../api-keys.ts'
import { type Plan, SCOPES, type Scope } from '../../http/access/principal.ts'
import { type Denials, DENIED_MS } from './denials.ts'

export interface WantedClient {
  readonly name: string
  readonly grantTypes: readonly GrantType[]
  readonly redirectUris: readonly string[]
  readonly scopes: readonly Scope[]
  readonly apps: AppList
  readonly authMethod: AuthMethod
  /** A JWK Set. */
  readonly jwks: Readonly<Record<string, unknown>> | null
  readonly plan: Plan
  readonly origin: 'administrator' | 'registration'
}

/** The members of a client that must be consistent, no matter where it comes from. */
type CheckedMetadata = Pick<OAuthClient, 'grantTypes' | 'redirectUris' | 'authMethod' | 'jwks'>

export type GrantType = (typeof GRANT_TYPES)[number]
export type AuthMethod = (typeof AUTH_METHODS)[number]

export const GRANT_TYPES = ['client_credentials', 'authorization_code', 'refresh_token'] as const
export const AUTH_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'] as const

/** Creates a client, for the API, the command line and registration. Only this answer contains the secret. */
export async function makeClient(
  store: Store,
  wanted: WantedClient,
  actor: Actor,
  nowMs: number,
  /** Throws if no more clients are allowed. */
  checkLimit: (queries: Queries) => Promise<void> = async () => undefined,
): Promise<{ client: OAuthClient; secret: string | null }> {
  checkClient(wanted)
  const secret = wanted.authMethod.startsWith('client_secret') ? newSecret(SECRET_PREFIX) : null
  const client = {
    ...wanted,
    id: newId('cli'),
    secretHash: secret === null ? null : hashOfKey(secret),
    createdAtMs: nowMs,
  }
  const { id: subject, name, scopes, apps, plan, grantTypes, authMethod, redirectUris, origin } = client
  const detail = { name, scopes, apps, plan, grantTypes, authMethod, redirectUris, origin }
  await changed(store, actor, { action: 'createClient', subject, apps, detail }, nowMs, async (queries) => {
    await checkLimit(queries)
    await store.oauthClients.add(client, queries)
  })
  return { client, secret }
}

/** Also deletes its codes and refresh tokens, and denies its access tokens. `false`: it does not exist. */
export async function deleteClient(
  store: Store,
  denials: Pick<Denials, 'addTo' | 'learn'>,
  { id, name, apps }: OAuthClient,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'deleteClient', subject: id, apps, detail: { name } }
  try {
    await changed(store, actor, change, nowMs, async (queries) => {
      if (!(await store.oauthClients.remove(id, queries))) throw NOT_THERE
      await store.oauthRecords.removeClient(id, queries)
      await denials.addTo(queries, 'client', id)
    })
  } catch (error) {
    if (error === NOT_THERE) return false
    throw error
  }
  denials.learn('client', id, nowMs + DENIED_MS)
  return true
}

/** Ignores scopes that this version does not know. */
export function scopesOf({ scopes }: Pick<OAuthClient, 'scopes'>): readonly Scope[] {
  return SCOPES.filter((scope) => scopes.includes(scope))
}

/**
 * The scopes people can consent to. No person can give `admin` to a client known only by its own document.
 */
export function scopesWithPeople(client: Pick<OAuthClient, 'scopes' | 'origin'>): readonly Scope[] {
  return client.origin === 'document' ? SCOPES.filter((scope) => scope !== 'admin') : scopesOf(client)
}

/** The apps that a client may see for a person. One that is known only by its document sees those of the person. */
export function appsWithPeople({ apps, origin }: Pick<OAuthClient, 'apps' | 'origin'>): AppList {
  return origin === 'document' ? ALL_APPS : apps
}

/** The scopes a client may request: `admin` includes all. */
export function scopesWithin(scopes: readonly Scope[]): readonly Scope[] {
  return scopes.includes('admin') ? SCOPES : scopes
}

/** The client for oidc-provider. `more`: grant types of all clients that have a credential. `client_secret` is the hash: see `compareClientSecret` in provider.ts. */
export function metadataOf(client: OAuthClient, more: readonly string[] = []): ClientMetadata {
  const { id, name, secretHash, authMethod, grantTypes, redirectUris, jwks, origin } = client
  const hasCode = grantTypes.includes('authorization_code')
  return {
    client_id: id,
    client_name: name,
    ...(secretHash === null ? {} : { client_secret: secretHash }),
    token_endpoint_auth_method: authMethod as AuthMethod,
    // The code exchange decides whether to issue a refresh token: `offline_access` also requests one.
    grant_types: [
      ...(hasCode ? new Set([...grantTypes, 'refresh_token']) : grantTypes),
      ...(authMethod === 'none' ? [] : more),
    ],
    response_types: hasCode ? ['code'] : [],
    redirect_uris: [...redirectUris],
    // A native client may use any port of a loopback address (RFC 8252 §7.3).
    application_type: redirectUris.some((uri) => uri.startsWith('http:')) ? 'native' : 'web',
    ...(jwks === null ? {} : { jwks: jwks as unknown as NonNullable<ClientMetadata['jwks']> }),
    [OWN]: {
      scopes: scopesOf(client),
      withPeople: scopesWithPeople(client),
      hasRefresh: grantTypes.includes('refresh_token'),
      origin,
    } satisfies OwnMetadata,
  }
}

/** Our own client metadata, beyond the specifications. */
export interface OwnMetadata {
  /** When the client acts for itself. */
  readonly scopes: readonly Scope[]
  /** When the client acts for a person who consents. */
  readonly withPeople: readonly Scope[]
  /** The client has registered for refresh tokens. */
  readonly hasRefresh: boolean
  readonly origin: string
}

export function ownMetadata(client: { readonly [member: string]: unknown }): OwnMetadata {
  return client[OWN] as OwnMetadata
}

/** The name of the metadata member. */
export const OWN = 'gatehouse'

/** Throws a Refusal that lists the inconsistencies. */
export function checkClient(wanted: CheckedMetadata): void {
  const [problem, ...more] = [
    ...grantProblems(wanted),
    ...wanted.redirectUris.flatMap((uri, index) => redirectProblems(uri, `/redirect_uris/${index}`)),
    ...keyProblems(wanted),
  ]
  if (problem !== undefined) throw invalid([problem, ...more])
}

function grantProblems({ grantTypes, redirectUris, authMethod }: CheckedMetadata): readonly FieldError[] {
  const problems: FieldError[] = []
  const hasCode = grantTypes.includes('authorization_code')
  const add = (pointer: string, detail: string) => void problems.push({ pointer, detail })
  if (hasCode && redirectUris.length === 0) add('/redirect_uris', 'is required with authorization_code')
  if (!hasCode && redirectUris.length > 0) add('/redirect_uris', 'is allowed only with authorization_code')
  if (!hasCode && grantTypes.includes('refresh_token'))
    add('/grant_types', 'may contain refresh_token only together with authorization_code')
  if (authMethod === 'none' && grantTypes.includes('client_credentials'))
    add(
      '/token_endpoint_auth_method',
      'must not be none: client_credentials requires a client with a credential',
    )
  return problems
}

/**
 * Allows https, and http to the user's own machine for apps. Redirect URIs are compared character by
 * character.
 */
function redirectProblems(uri: string, pointer: string): readonly FieldError[] {
  const wrong = (detail: string) => [{ pointer, detail }]
  if (!VISIBLE.test(uri)) return wrong('is not a valid URI')
  const url = URL.parse(uri)
  if (url === null) return wrong('is not a valid URI')
  if (uri.includes('#')) return wrong('contains a fragment')
  if (url.username !== '' || url.password !== '' || /^[a-z]+:\/\/[^/?]*@/i.test(uri))
    return wrong('contains a user name or a password')
  const isLoopback = LOOPBACKS.has(url.hostname)
  if (url.protocol === 'http:' && isLoopback) return []
  if (url.protocol !== 'https:') return wrong('must be https, or http to 127.0.0.1, [::1] or localhost')
  if (isLoopback) return wrong('must use http for 127.0.0.1, [::1] or localhost')
  return []
}

function keyProblems({ authMethod, jwks }: CheckedMetadata): readonly FieldError[] {
  if (authMethod !== 'private_key_jwt')
    return jwks === null ? [] : [{ pointer: '/jwks', detail: 'is allowed only with private_key_jwt' }]
  if (jwks === null) return [{ pointer: '/jwks', detail: 'is required with private_key_jwt' }]
  const { keys } = jwks
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > KEYS_MAX)
    return [{ pointer: '/jwks/keys', detail: `must be a list of 1 to ${KEYS_MAX} keys` }]
  return keys.flatMap((key: unknown, index) => {
    const detail = keyProblem(key)
    return detail === null ? [] : [{ pointer: `/jwks/keys/${index}`, detail }]
  })
}

function keyProblem(key: unknown): string | null {
  if (typeof key !== 'object' || key === null) return 'is not a key'
  const { kty, d, k } = key as Record<string, unknown>
  if (kty === 'oct' || k !== undefined) return 'is a secret: only public keys are accepted'
  if (d !== undefined) return 'is a private key: create a new key pair and send only the public key'
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey({
      key: key as JsonWebKey,
      format: 'jwk',
    })
    if (asymmetricKeyType === 'rsa' && asymmetricKeyDetails!.modulusLength! < RSA_BITS_MIN)
      return `has fewer than ${RSA_BITS_MIN} bits`
    return null
  } catch {
    return 'is not a supported key'
  }
}

const NOT_THERE = new Error('not there')
const SECRET_PREFIX = 'ghs_'
const VISIBLE = /^[\x21-\x7e]{1,2000}$/
const LOOPBACKS = new Set(['127.0.0.1', '[::1]', 'localhost'])
const KEYS_MAX = 32
const RSA_BITS_MIN = 2048

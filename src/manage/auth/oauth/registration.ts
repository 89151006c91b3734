import { ALL_APPS } from '../../../apps/app-scope.ts'
import { createHash, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import type { Queries } from '../../../store/engine/database.ts'
import type { Store } from '../../../store/store.ts'
import { Refusal } from '../../http/refusal.ts'
import { SCOPES, type Scope } from '../../http/access/principal.ts'
import { OAuthError } from './answer.ts'
import { AUTH_METHODS, makeClient } from './clients.ts'
import type { OAuthSettings } from './oauth.ts'

/** A registration request (RFC 7591). */
interface Registering {
  /** The `Authorization` header. */
  readonly authorization: string
  readonly body: unknown
  readonly address: string
  readonly requestId: string
}

/** Registers a client at its own request. It can only ask people for consent, and never gets `admin`. */
export async function register(
  { authorization, body, address, requestId }: Registering,
  settings: OAuthSettings,
  store: Store,
  nowMs: number,
): Promise<Readonly<Record<string, unknown>>> {
  admit(authorization, settings)
  const asked = metadata.safeParse(body)
  if (!asked.success) {
    const [{ path, message }] = asked.error.issues as [z.core.$ZodIssue]
    throw wrong(path.join('.'), message)
  }
  const { client_name, redirect_uris, token_endpoint_auth_method, grant_types, scope, jwks } = asked.data
  const wanted = {
    name: client_name,
    grantTypes: grant_types,
    redirectUris: redirect_uris,
    scopes: scopesIn(scope),
    // The person who consents limits it.
    apps: ALL_APPS,
    authMethod: token_endpoint_auth_method,
    jwks: jwks ?? null,
    plan: 'standard',
    origin: 'registration',
  } as const
  const actor = { id: 'anonymous', address, requestId }
  const checkLimit = async (queries: Queries) => {
    if ((await store.oauthClients.countOf('registration', queries)) >= CLIENTS_MAX)
      throw new OAuthError(403, 'access_denied', 'too many self-registered clients')
  }
  const { client, secret } = await makeClient(store, wanted, actor, nowMs, checkLimit).catch(
    (error: unknown) => {
      if (!(error instanceof Refusal)) throw error
      const [first] = error.errors
      throw wrong(first?.pointer.slice(1) ?? '', first?.detail ?? error.message)
    },
  )
  return {
    client_id: client.id,
    client_id_issued_at: Math.floor(nowMs / 1000),
    ...(secret === null ? {} : { client_secret: secret, client_secret_expires_at: 0 }),
    client_name,
    redirect_uris,
    token_endpoint_auth_method,
    grant_types,
    response_types: ['code'],
    scope: client.scopes.join(' '),
    ...(jwks === undefined ? {} : { jwks }),
  }
}

function admit(authorization: string, { registration, registrationToken }: OAuthSettings): void {
  if (registration === 'open') return
  const given = /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? ''
  const isGiven = registrationToken !== null && timingSafeEqual(digest(given), digest(registrationToken))
  if (registration === 'token' && isGiven) return
  throw new OAuthError(401, 'invalid_token', 'registration requires the registration token', {
    'WWW-Authenticate': `Bearer realm="gatehouse"${given === '' ? '' : ', error="invalid_token"'}`,
  })
}

function scopesIn(text: string | undefined): readonly Scope[] {
  const may = SCOPES.filter((scope) => scope !== 'admin')
  if (text === undefined) return may
  const asked = text.split(' ')
  const scopes = may.filter((scope) => asked.includes(scope))
  if (scopes.length === 0) throw wrong('scope', `must contain at least one of ${may.join(', ')}`)
  return scopes
}

function wrong(place: string, detail: string): OAuthError {
  const code = place.startsWith('redirect_uris') ? 'invalid_redirect_uri' : 'invalid_client_metadata'
  return new OAuthError(400, code, `${place} ${detail}`.trim())
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Ignores other members, as RFC 7591 requires. */
const metadata = z.object({
  client_name: z
    .string()
    .trim()
    .min(1)
    .max(100)
    .regex(/^\P{Cc}*$/u)
    .default('unnamed client'),
  redirect_uris: z.array(z.string()).min(1).max(20),
  token_endpoint_auth_method: z.enum(AUTH_METHODS).default('client_secret_basic'),
  grant_types: z
    .array(z.enum(['authorization_code', 'refresh_token']))
    .min(1)
    .max(2)
    .default(['authorization_code']),
  response_types: z.array(z.literal('code')).max(1).optional(),
  scope: z.string().max(1_000).optional(),
  jwks: z.record(z.string(), z.unknown()).optional(),
})

export const REGISTRATION_PATH = '/oauth/register'
const CLIENTS_MAX = 10_000

import * as z from 'zod'
import { appsOf, appsToGive, ifVisible, shownApps, wantedApps } from './app-access.ts'
import type { OAuthClient } from '../../store/people/oauth-clients.ts'
import { AUTH_METHODS, deleteClient, GRANT_TYPES, makeClient, scopesOf } from '../auth/oauth/clients.ts'
import { PLANS, planFor, SCOPES } from '../http/access/principal.ts'
import { Refusal } from '../http/refusal.ts'
import { plan, scope } from './keys.ts'
import { given, has, is, mayBe, rules, when } from './member-rules.ts'
import { actorOf } from '../http/operation.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

const grantType = z.enum(GRANT_TYPES).meta({ id: 'GrantType' })
const authMethod = z.enum(AUTH_METHODS).meta({
  id: 'ClientAuthMethod',
  description:
    'How it authenticates at the token endpoint. `private_key_jwt`: with a key in `jwks`. `none`: for an app that cannot keep a secret.',
})
const jwks = z.record(z.string(), z.unknown()).meta({
  description: 'A JWK Set (RFC 7517) of public keys.',
  example: { keys: [{ kty: 'EC', crv: 'P-256', x: '…', y: '…' }] },
})
const redirectUris = z.array(z.string()).max(20).meta({
  description:
    'Compared character by character. Must be `https`, or for an app on the machine of its user `http` to 127.0.0.1, [::1] or localhost on any port.',
})
const clientFields = {
  client_id: z.string().meta({ example: 'cli_x7c1Jq0aT5b2' }),
  name: z.string(),
  grant_types: z.array(grantType),
  redirect_uris: z.array(z.string()),
  scopes: z.array(scope),
  apps: shownApps,
  token_endpoint_auth_method: authMethod,
  jwks: jwks.nullable(),
  plan,
  created_at: time,
}
const client = z
  .strictObject({
    ...clientFields,
    origin: z.string().meta({
      description:
        '`registration`: it registered itself (RFC 7591). `administrator`: an administrator created it.',
    }),
  })
  .meta({ id: 'Client' })
const newClient = z
  .strictObject({
    ...client.shape,
    client_secret: z.string().optional().meta({ description: 'Shown only in this answer.' }),
  })
  .meta({ id: 'NewClient' })

const clientRequest = z
  .strictObject({
    name: z.string().min(1, 'is empty').max(100, 'is longer than 100 characters'),
    grant_types: z.array(grantType).min(1, 'is empty').max(GRANT_TYPES.length),
    redirect_uris: redirectUris.optional(),
    scopes: z.array(scope).min(1, 'is empty').max(SCOPES.length),
    apps: wantedApps,
    token_endpoint_auth_method: authMethod.optional(),
    jwks: jwks.optional(),
    plan: z.enum(PLANS).optional(),
  })
  .meta({
    id: 'ClientRequest',
    override: rules(
      when(
        has('grant_types', 'authorization_code'),
        is('redirect_uris', { minItems: 1 }),
        rules(mayBe('redirect_uris', { maxItems: 0 }), { not: has('grant_types', 'refresh_token') }),
      ),
      when(is('token_endpoint_auth_method', { const: 'none' }), {
        not: has('grant_types', 'client_credentials'),
      }),
      when(is('token_endpoint_auth_method', { const: 'private_key_jwt' }), given('jwks')),
      when(given('jwks'), mayBe('token_endpoint_auth_method', { const: 'private_key_jwt' })),
    ),
  })

const EXAMPLE = {
  client_id: 'cli_x7c1Jq0aT5b2',
  name: 'nightly build',
  grant_types: ['client_credentials' as const],
  redirect_uris: [],
  scopes: ['read' as const, 'detect' as const],
  apps: '*' as const,
  jwks: null,
  token_endpoint_auth_method: 'client_secret_basic' as const,
  plan: 'standard' as const,
  created_at: '2026-11-21T09:30:00.000Z',
  origin: 'administrator',
}

const createClient = operation({
  id: 'createClient',
  method: 'POST',
  path: '/clients',
  tag: 'Administration',
  summary: 'Create an OAuth client',
  description:
    'It gets access tokens at `/oauth/token`. Its secret is shown only in this answer. Only a hash is stored.',
  scopes: ['admin'],
  reach: 'filtered',
  body: clientRequest,
  status: 201,
  answer: newClient,
  isIdempotent: true,
  examples: {
    body: { name: 'nightly build', grant_types: ['client_credentials'], scopes: ['read', 'detect'] },
    answer: { ...EXAMPLE, client_secret: 'ghs_…' },
  },
  run: async (call, management) => {
    const { store, nowMs } = management
    const { body } = call
    const authMethod =
      body.token_endpoint_auth_method ?? (body.jwks ? 'private_key_jwt' : 'client_secret_basic')
    const scopes = SCOPES.filter((each) => body.scopes.includes(each))
    const wanted = {
      name: body.name,
      scopes,
      apps: await appsToGive(body.apps, call.principal, management),
      authMethod,
      jwks: body.jwks ?? null,
      plan: body.plan ?? planFor(scopes),
      grantTypes: [...new Set(body.grant_types)],
      redirectUris: [...new Set(body.redirect_uris)],
      origin: 'administrator',
    } as const
    const { client, secret } = await makeClient(store, wanted, actorOf(call), nowMs())
    return { body: { ...shown(client), ...(secret === null ? {} : { client_secret: secret }) } }
  },
})

const listClients = listing({
  id: 'listClients',
  path: '/clients',
  tag: 'Administration',
  summary: 'List OAuth clients',
  description: 'Newest first.',
  scopes: ['admin'],
  reach: 'filtered',
  name: 'clients',
  filters: {},
  part: (_, part, { store }, { principal }) => store.oauthClients.list(part, principal.apps),
  items: { schema: client, show: (records) => records.map(shown) },
})

const removeClient = operation({
  id: 'deleteClient',
  method: 'DELETE',
  path: '/clients/{client_id}',
  tag: 'Administration',
  summary: 'Delete an OAuth client',
  description: 'Also deletes its codes and refresh tokens. Its access tokens become invalid within a second.',
  scopes: ['admin'],
  reach: 'filtered',
  params: z.strictObject({ client_id: z.string() }),
  status: 204,
  find: async ({ params, principal }, { store }) =>
    ifVisible(await store.oauthClients.byId(params.client_id), principal),
  run: async (call, { store, oauth, nowMs }) => {
    // Another request has deleted the client first.
    if (!(await deleteClient(store, oauth.denials, call.subject, actorOf(call), nowMs())))
      throw new Refusal('not_found', `OAuth client "${call.subject.id}" not found`)
    return { body: null }
  },
})

export const CLIENT_OPERATIONS: readonly ApiOffered[] = [createClient, listClients, removeClient]

function shown(client: OAuthClient) {
  const { id, name, redirectUris, jwks, createdAtMs, origin } = client
  return {
    client_id: id,
    name,
    grant_types: GRANT_TYPES.filter((type) => client.grantTypes.includes(type)),
    redirect_uris: [...redirectUris],
    scopes: [...scopesOf(client)],
    apps: appsOf(client),
    token_endpoint_auth_method:
      AUTH_METHODS.find((method) => method === client.authMethod) ?? 'client_secret_basic',
    jwks,
    plan: PLANS.find((each) => each === client.plan) ?? 'free',
    created_at: timeOf(createdAtMs),
    origin,
  }
}

import { appInFilter } from './apps.ts'
import { boolean, choice, duration, integer, optional, path, text } from './kinds.ts'
import { issuerUrl } from './network-kinds.ts'
import type { Kind } from './kinds.ts'
import { type ValueOf, list, noRisk, secret, section, sections, setting } from './items.ts'
import { ALL_APPS, type AppList } from '../apps/app-scope.ts'
import type { Secret } from '../shared/secret.ts'

/** As for clients: see manage/auth/oauth/routes.ts. */
const SIGNATURES = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'] as const

/** An app, or `*`. */
const appOrAll: Kind<string> = {
  ...appInFilter,
  read: (place) => (place.value === '*' ? '*' : appInFilter.read(place)),
}

/** One of `auth.openid.roles`. */
const OPENID_ROLE = section('', {
  value: setting(text, undefined, 'A value of the claim, such as the name of a group. Case counts.'),
  role: setting(
    choice('viewer', 'editor', 'admin'),
    undefined,
    '`viewer`: the scopes `read` and `detect`. `editor`: also `write` and `mcp`. `admin`: every scope.',
  ),
  apps: list(
    appOrAll,
    'The apps whose objects they may see, by id. `["*"]`: all apps. Required; an id that is not an app matches nothing.',
  ),
})

export const AUTH = section('Access to the API.', {
  failures_per_minute: setting(
    integer(1, 100_000),
    120,
    'Failed authentications allowed per minute from one address (for IPv6, one /64); more are answered 429. Valid credentials are still accepted.',
  ),
  access_token_ttl_s: setting(
    integer(5, 600),
    600,
    'Lifetime of an access token, in seconds. Clients get a new one without user interaction.',
  ),
  signing_key_rotation: setting(
    duration('1h', '3650d'),
    '90d',
    'How long a key signs access tokens before it is rotated.',
  ),
  registration: setting(
    choice('off', 'token', 'open'),
    'off',
    'Dynamic registration of OAuth clients (RFC 7591): `off`, only with the `registration_token` (`token`), or without any credential (`open`). Such a client can only ask users for their consent.',
    (who) => (who === 'open' ? 'any client can ask your users for consent, under any name' : null),
  ),
  dpop_nonce: setting(
    choice('off', 'required'),
    'off',
    'Whether each DPoP proof must contain a nonce that Gatehouse issued in the last few minutes, so that proofs cannot be made in advance. Clients retry automatically with the nonce from the response.',
  ),
  registration_token: secret('The initial access token for `registration: token`.', 16),
  gnap_bearer_tokens: setting(
    boolean,
    true,
    'Whether GNAP issues bearer tokens to clients that request them. `false`: each request with a token must be signed.',
  ),
  openid: section(
    'An external OpenID provider. Its users can sign in if a matching user exists here. Register the redirect URI `{public_url}/oauth/openid/callback` there.',
    {
      issuer: setting(
        optional(issuerUrl),
        null,
        'The issuer URL, exactly as in its metadata. `null`: users sign in with their local credentials. The operator of the provider can sign in as any user whose email address it reports as verified, without the password and one-time code set here.',
      ),
      name: setting(optional(text), null, 'Its name on the sign-in page. `null`: its host.'),
      client_id: setting(optional(text), null, 'The client ID of this installation at the provider.'),
      client_secret: secret(
        'The client secret of this installation at the provider. Omit it to use PKCE only; PKCE is always used.',
        0,
      ),
      ca_file: setting(
        optional(path),
        null,
        'PEM file with CAs that are trusted instead of those of the system.',
      ),
      allow_private: setting(
        boolean,
        false,
        'Whether it may have an address that is not on the public internet. Plain `http://` also needs `fetch.allow_private_addresses`.',
        (isAllowed) =>
          isAllowed
            ? 'the owner of the DNS names of its hosts can make this server send requests to internal hosts'
            : null,
      ),
      roles: sections(
        OPENID_ROLE,
        'Roles by a claim of the provider, such as groups; config/guide/accounts.md. At each sign-in, the first entry whose value is in the claim decides the scopes and apps of the user, and creates the user if necessary. Without one, the user has no access. Empty: administrators decide here.',
      ),
      roles_claim: setting(
        text,
        'groups',
        'The claim of the ID token, or of the UserInfo endpoint, that has the values of `roles`: a text or a list of texts.',
      ),
      roles_scope: setting(
        optional(text),
        null,
        'A scope to request for the claim, if the provider needs one, such as `groups`.',
      ),
      assertions: section(
        'Identity assertions of the provider (ID-JAG, enterprise-managed authorization): a client exchanges one at `/oauth/token` for a token for `/mcp`, without a consent of the user; config/guide/accounts.md.',
        {
          accept: setting(boolean, false, 'Whether they are accepted.', (isAccepted) =>
            isAccepted
              ? 'the operator of the provider decides which clients act for which linked users'
              : null,
          ),
          clients: list(
            text,
            'The ids of the clients that may use them. Empty: every client with a credential.',
          ),
          algorithms: list(
            choice(...SIGNATURES),
            'The signature algorithms that the provider may use.',
            noRisk,
            [...SIGNATURES],
          ),
        },
      ),
    },
  ),
})

export interface AuthConfig {
  readonly failuresPerMinute: number
  readonly accessTokenTtlS: number
  readonly gnapBearerTokens: boolean
  readonly dpopNonce: 'off' | 'required'
  readonly signingKeyRotationMs: number
  readonly registration: 'off' | 'token' | 'open'
  readonly registrationToken: Secret<string> | null
  /** `null`: no sign-in through an identity provider. */
  readonly openid: OpenidConfig | null
}

interface OpenidConfig {
  readonly issuer: string
  readonly name: string
  readonly clientId: string
  readonly clientSecret: Secret<string> | null
  readonly caFile: string | null
  readonly allowPrivate: boolean
  /** `null`: administrators decide here. */
  readonly roles: OpenidRoles | null
  /** `null`: its identity assertions are not accepted. */
  readonly assertions: { readonly clients: readonly string[]; readonly algorithms: readonly string[] } | null
}

interface OpenidRoles {
  readonly claim: string
  readonly scope: string | null
  readonly list: readonly OpenidRole[]
}

interface OpenidRole {
  readonly value: string
  readonly role: 'viewer' | 'editor' | 'admin'
  readonly apps: AppList
}

export function authConfig(auth: ValueOf<typeof AUTH>, allowPrivateFetches: boolean): AuthConfig {
  return {
    failuresPerMinute: auth.failures_per_minute,
    accessTokenTtlS: auth.access_token_ttl_s,
    gnapBearerTokens: auth.gnap_bearer_tokens,
    dpopNonce: auth.dpop_nonce,
    signingKeyRotationMs: auth.signing_key_rotation,
    registration: auth.registration,
    registrationToken: auth.registration_token,
    openid: openidConfig(auth.openid, allowPrivateFetches),
  }
}

function openidConfig(
  openid: ValueOf<typeof AUTH>['openid'],
  allowPrivateFetches: boolean,
): OpenidConfig | null {
  const { issuer, client_id, name, assertions } = openid
  if (issuer === null || client_id === null) return null
  return {
    issuer,
    name: name ?? new URL(issuer).host,
    clientId: client_id,
    clientSecret: openid.client_secret,
    caFile: openid.ca_file,
    allowPrivate: openid.allow_private || allowPrivateFetches,
    roles: rolesConfig(openid),
    assertions: assertions.accept ? { clients: assertions.clients, algorithms: assertions.algorithms } : null,
  }
}

function rolesConfig(openid: ValueOf<typeof AUTH>['openid']): OpenidRoles | null {
  const { roles, roles_claim: claim, roles_scope: scope } = openid
  if (roles.length === 0) return null
  const list = roles.map(({ apps, ...role }): OpenidRole => {
    return { ...role, apps: apps.includes(ALL_APPS) ? ALL_APPS : apps }
  })
  return { claim, scope, list }
}

// Constants of the authorization server, for code that must not load it.

/** The name of the session cookie. */
export function sessionCookie(publicUrl: string): string {
  return `${publicUrl.startsWith('https:') ? '__Host-' : ''}gatehouse_session`
}

/** How long a session lasts if the person chose to stay signed in. */
export const SESSION_S = 14 * 86_400
export const INTERACTION_PATH = '/oauth/interaction/'
/** Where an external OpenID provider redirects browsers. */
export const OPENID_CALLBACK = '/oauth/openid/callback'
export const ROUTES = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  introspection: '/oauth/introspect',
  revocation: '/oauth/revoke',
  pushed_authorization_request: '/oauth/par',
  end_session: '/oauth/session/end',
  jwks: '/oauth/jwks',
} as const
/** The signature algorithms that clients may use. */
export const SIGNATURES = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'] as const
/** The grant of identity assertions (RFC 7523), and its profile (ID-JAG). */
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
export const ID_JAG = 'urn:ietf:params:oauth:grant-profile:id-jag'

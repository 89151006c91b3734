// What is said of the authorization server where it need not be loaded.

/** By what a browser says who is signed in in it. */
export function sessionCookie(publicUrl: string): string {
  return `${publicUrl.startsWith('https:') ? '__Host-' : ''}gatehouse_session`
}

/** How long somebody stays signed in who wants to. */
export const SESSION_S = 14 * 86_400
export const INTERACTION_PATH = '/oauth/interaction/'
/** Where an OpenID provider elsewhere sends browsers back to. */
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
/** What clients may sign with. */
export const SIGNATURES = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'] as const

import { IN_TAB } from '../parts/kept.ts'
/** Tokens of a user who signed in with an account. */
export interface Tokens {
  readonly access: string
  readonly refresh: string | null
  /** Slightly before the access token expires. */
  readonly renewAtMs: number
}

/**
 * Whether users can sign in with an account; `at`: only at that address, because the gateway expects to be
 * reached there.
 */
export async function accountsOffered(): Promise<boolean | { readonly at: string }> {
  const { issuer, authorization_endpoint } = await metadata()
  if (authorization_endpoint === undefined) return false
  return new URL(issuer).origin === location.origin ? true : { at: `${issuer}${PAGE}` }
}

/** Opens the sign-in page; `page`: where to return to. */
export async function beginSignIn(page: string): Promise<void> {
  const { authorization_endpoint } = await metadata()
  const [verifier, state] = [random(), random()]
  IN_TAB.set(PLACE, JSON.stringify({ verifier, state, page } satisfies Begun))
  const challenge = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const asked = new URLSearchParams({
    ...{ client_id: CLIENT, response_type: 'code', redirect_uri: redirectUri(), scope: SCOPE, state },
    ...{ code_challenge: base64url(new Uint8Array(challenge)), code_challenge_method: 'S256' },
    resource: await resource(),
  })
  location.assign(`${authorization_endpoint}?${asked}`)
}

/** Throws an error with a readable message. */
export async function finishSignIn(
  query: URLSearchParams,
): Promise<{ readonly tokens: Tokens; readonly page: string }> {
  const begun = IN_TAB.get(PLACE)
  IN_TAB.delete(PLACE)
  const { verifier, state, page } = JSON.parse(begun ?? '{}') as Partial<Begun>
  if (verifier === undefined || page === undefined || state !== query.get('state'))
    throw new Error('This sign-in was not started in this tab. Start it again.')
  const code = query.get('code')
  if (code === null)
    throw new Error(query.get('error_description') ?? `Sign-in refused: ${query.get('error')}`)
  const tokens = await tokensFor({
    ...{ grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: redirectUri() },
  })
  return { tokens, page }
}

export async function renewed({ refresh }: Tokens): Promise<Tokens> {
  if (refresh === null) throw new Error('Your session expired. Sign in again.')
  return tokensFor({ grant_type: 'refresh_token', refresh_token: refresh })
}

async function tokensFor(grant: Readonly<Record<string, string>>): Promise<Tokens> {
  const { token_endpoint } = await metadata()
  const body = new URLSearchParams({ ...grant, client_id: CLIENT, resource: await resource() })
  const response = await fetch(token_endpoint, { method: 'POST', body, credentials: 'omit' })
  const said = (await response.json().catch(() => ({}))) as Readonly<Record<string, unknown>>
  if (!response.ok) throw new Error(String(said['error_description'] ?? 'Sign-in refused.'))
  const { access_token, refresh_token, expires_in } = said
  return {
    access: String(access_token),
    refresh: typeof refresh_token === 'string' ? refresh_token : null,
    renewAtMs: Date.now() + (Number(expires_in) - EARLY_S) * 1_000,
  }
}

async function metadata(): Promise<Metadata> {
  return (await fetch('/.well-known/oauth-authorization-server')).json() as Promise<Metadata>
}

async function resource(): Promise<string> {
  const document = await (await fetch('/.well-known/oauth-protected-resource/v1')).json()
  return (document as { resource: string }).resource
}

function redirectUri(): string {
  return location.origin + PAGE
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)))
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

/** RFC 8414. */
interface Metadata {
  readonly issuer: string
  readonly authorization_endpoint?: string
  readonly token_endpoint: string
}

/** State to keep until the browser returns from the sign-in page. */
interface Begun {
  readonly verifier: string
  readonly state: string
  readonly page: string
}

/** The id of this page at the management plane. */
const CLIENT = 'dashboard'
const PAGE = '/dashboard/'
const SCOPE = 'read detect write admin mcp'
const PLACE = 'gatehouse.sign-in'
const EARLY_S = 30

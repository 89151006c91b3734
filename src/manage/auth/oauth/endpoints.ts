import type Koa from 'koa'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { Fault } from '../../../shared/fault.ts'
import { readBody } from '../../http/body.ts'
import type { RequestContext, RequestState } from '../../http/router.ts'
import { putHead } from '../../http/front/head.ts'
import type { AuthContext } from '../context.ts'
import { Refusal } from '../../http/refusal.ts'
import { AccessGiven } from '../given-access.ts'
import { refusalAfterFailure } from '../failures.ts'
import { ACCOUNT } from '../people/account-pages.ts'
import { SIGN_OUT } from '../people/people-pages.ts'
import { OAuthError, sayError, unavailable } from './answer.ts'
import { interactionOf, sessionOf } from './interactions.ts'
import { INTERACTION_PATH, OPENID_CALLBACK, ROUTES } from './routes.ts'
import { REGISTRATION_PATH, register } from './registration.ts'
import { introspected, revoke } from './token-requests.ts'

type OAuthEndpoint = (ctx: RequestContext, management: AuthContext) => Promise<void>

/**
 * The endpoints below /oauth/, and /account, which uses the same sessions. oidc-provider implements the
 * protocol; it sees only these paths, and this server sends its responses. Every error has the form that the
 * protocol defines.
 */
export function oauthEndpoints(management: AuthContext): Koa.Middleware<RequestState> {
  return async (ctx, next) => {
    const found = endpointAt(ctx.url.split('?', 1)[0]!, management)
    if (found === null) return next()
    ctx.state.operation = 'oauth'
    try {
      if (!found.methods.includes(ctx.method)) throw notAllowed(found.methods)
      await found.answer(ctx, management)
    } catch (error) {
      sayError(ctx, errorOf(error, management))
    }
  }
}

interface OAuthRoute {
  readonly methods: readonly string[]
  readonly answer: OAuthEndpoint
}

function endpointAt(path: string, { oauth }: AuthContext): OAuthRoute | null {
  const fixed = FIXED.get(path)
  if (fixed !== undefined) return fixed
  if (oauth.people === null) return null
  if (path === REGISTRATION_PATH) return oauth.settings.registration === 'off' ? null : REGISTER
  if (RESUME.test(path)) return { methods: ['GET'], answer: byProvider }
  if (INTERACTION.test(path)) return { methods: ['GET', 'POST'], answer: interact }
  return FOR_PEOPLE.get(path.startsWith(`${ACCOUNT}/`) ? ACCOUNT : path) ?? null
}

const byProvider: OAuthEndpoint = async (ctx, management) => {
  // oidc-provider looks for the CORS headers that are already set.
  putHead(ctx)
  const provider = await management.oauth.provider()
  const inner = await run(provider, ctx, management)
  const { failure } = inner.state as { failure?: Error }
  if (failure !== undefined) {
    // The client learns of this error through the redirect, so it is only logged.
    if (inner.status >= 500) throw failure
    management.log.error('request to the authorization server failed', { error: failure })
  }
  const { status, body } = inner
  ctx.body = body
  ctx.status = status
  if (isError(body, 'invalid_client')) await throttle(ctx, management)
}

/** Counted, because knowing a client id is enough to send this. */
const push: OAuthEndpoint = async (ctx, management) => {
  if (ctx.method === 'POST') countBeginning(ctx, management)
  await byProvider(ctx, management)
}

const authorize = inBrowser(async (ctx, management) => {
  countBeginning(ctx, management)
  askForConsentWhenOffline(ctx)
  await byProvider(ctx, management)
})

function countBeginning(ctx: RequestContext, { oauth, nowMs }: AuthContext): void {
  oauth.beginnings.count(ctx.state.address, nowMs())
}

/**
 * Like `byProvider`, then answers for access tokens, which oidc-provider does not store. It has authenticated
 * the client.
 */
const withOurTokens =
  (answer: (inner: KoaContextWithOIDC, management: AuthContext) => Promise<unknown>): OAuthEndpoint =>
  async (ctx, management) => {
    await byProvider(ctx, management)
    const inner = INNER.get(ctx)
    if (inner === undefined || !isError(ctx.body, 'unsupported_token_type')) return
    // The Content-Type of the replaced error.
    ctx.remove('Content-Type')
    ctx.body = await answer(inner, management)
    ctx.status = 200
  }

const jwks: OAuthEndpoint = async (ctx, { oauth }) => {
  const { published } = await oauth.keys.current()
  ctx.state.isPublic = true
  ctx.set('Access-Control-Allow-Origin', '*')
  ctx.body = JSON.stringify({ keys: published })
  ctx.set('Content-Type', 'application/jwk-set+json; charset=utf-8')
}

const registration: OAuthEndpoint = async (ctx, { oauth, store, nowMs }) => {
  const body = await readBody(ctx, REGISTRATION_BYTES_MAX)
  const asked = {
    body,
    authorization: ctx.get('Authorization'),
    requestId: ctx.state.requestId,
    address: ctx.state.address,
  }
  ctx.body = await register(asked, oauth.settings, store, nowMs())
  ctx.status = 201
}

const interact = inBrowser(async (ctx, { oauth }) => {
  const interaction = await interactionOf(ctx, await oauth.provider(), oauth)
  await oauth.people!.interact(ctx, interaction)
})

const signOut = inBrowser(async (ctx, { oauth }) => {
  await oauth.people!.signOut(ctx, await sessionOf(ctx, await oauth.provider()))
})

const cameBack = inBrowser((ctx, { oauth }) => oauth.people!.cameBack(ctx))

const account = inBrowser(async (ctx, management) => {
  const session = await sessionOf(ctx, await management.oauth.provider())
  await management.oauth.people!.account(ctx, session, new AccessGiven(management))
})

/** Shows errors as a page, because the client is a browser. */
function inBrowser(answer: OAuthEndpoint): OAuthEndpoint {
  return async (ctx, management) => {
    try {
      await answer(ctx, management)
    } catch (error) {
      const { status, message, headers } = errorOf(error, management)
      ctx.set({ ...headers })
      management.oauth.people!.refused(ctx, status, message)
    }
  }
}

/** Runs oidc-provider without sending its response. */
async function run(
  provider: Provider,
  ctx: RequestContext,
  management: AuthContext,
): Promise<KoaContextWithOIDC> {
  const inner = provider.createContext(ctx.req, ctx.res) as unknown as KoaContextWithOIDC
  // If the issuer has a path, the URLs of oidc-provider start with it.
  const { pathname } = new URL(management.publicUrl)
  Object.assign(inner, { mountPath: pathname === '/' ? '' : pathname })
  INNER.set(ctx, inner)
  await composedOf(provider)(inner)
  return inner
}

function composedOf(provider: Provider): (inner: KoaContextWithOIDC) => Promise<void> {
  const known = COMPOSED.get(provider)
  if (known !== undefined) return known
  provider.on('server_error', (inner, error) => Object.assign(inner.state, { failure: error }))
  const [only] = provider.middleware as Koa.Middleware[]
  const composed = async (inner: KoaContextWithOIDC) => {
    await only!(inner as never, async () => undefined)
  }
  COMPOSED.set(provider, composed)
  return composed
}

/** OpenID Connect ignores `offline_access` without prompt=consent. Adds the prompt if it is missing. */
function askForConsentWhenOffline(ctx: RequestContext): void {
  const query = new URLSearchParams(ctx.querystring)
  const isOffline = (query.get('scope') ?? '').split(' ').includes('offline_access')
  if (!isOffline || query.has('prompt')) return
  query.set('prompt', 'consent')
  ctx.req.url = `${ctx.path}?${query}`
}

/** Counts failed client authentication and throttles the address. */
async function throttle(ctx: RequestContext, management: AuthContext): Promise<void> {
  const refusal = new Refusal('invalid_token', 'unknown client or wrong credential')
  const address = ctx.state.address
  const said = await refusalAfterFailure(refusal, address, ctx.state.requestId, management)
  if (said !== refusal)
    sayError(ctx, new OAuthError(said.status, 'invalid_client', said.message, said.headers))
}

function errorOf(error: unknown, { log }: AuthContext): OAuthError {
  if (error instanceof OAuthError) return error
  if (error instanceof Refusal)
    return new OAuthError(error.status, 'invalid_request', error.message, error.headers)
  if (error instanceof Fault && error.code.startsWith('STORE_')) return unavailable()
  log.error('request to the authorization server failed', { error: error as Error })
  return error instanceof Fault
    ? unavailable()
    : new OAuthError(500, 'server_error', 'see the log of Gatehouse for details')
}

function notAllowed(methods: readonly string[]): Refusal {
  return new Refusal('method_not_allowed', `allowed methods: ${methods.join(', ')}`, {
    headers: { Allow: methods.join(', ') },
  })
}

function isError(body: unknown, code: string): boolean {
  return typeof body === 'object' && body !== null && 'error' in body && body.error === code
}

/** Web pages may call these. oidc-provider decides per client whether they may read the answer. */
const ASKED = ['POST', 'OPTIONS']
const REGISTER: OAuthRoute = { methods: ['POST'], answer: registration }
const FIXED: ReadonlyMap<string, OAuthRoute> = new Map([
  [ROUTES.token, { methods: ASKED, answer: byProvider }],
  [ROUTES.introspection, { methods: ASKED, answer: withOurTokens(introspected) }],
  [ROUTES.revocation, { methods: ASKED, answer: withOurTokens(revoke) }],
  [ROUTES.jwks, { methods: ['GET', 'HEAD'], answer: jwks }],
])
const FOR_PEOPLE: ReadonlyMap<string, OAuthRoute> = new Map([
  [ROUTES.authorization, { methods: ['GET'], answer: authorize }],
  [ROUTES.pushed_authorization_request, { methods: ASKED, answer: push }],
  [`${ROUTES.end_session}/confirm`, { methods: ['POST'], answer: byProvider }],
  [OPENID_CALLBACK, { methods: ['GET'], answer: cameBack }],
  [ACCOUNT, { methods: ['GET', 'POST'], answer: account }],
  [SIGN_OUT, { methods: ['GET', 'POST'], answer: signOut }],
])
const RESUME = /^\/oauth\/authorize\/[\w-]{1,64}$/
const INTERACTION = new RegExp(`^${INTERACTION_PATH}[\\w-]{1,64}(?:/[\\w-]{1,32})?$`)
const REGISTRATION_BYTES_MAX = 65_536
const INNER = new WeakMap<RequestContext, KoaContextWithOIDC>()
const COMPOSED = new WeakMap<Provider, (inner: KoaContextWithOIDC) => Promise<void>>()

import type { InteractionResults, Provider } from 'oidc-provider'
import type { RequestContext } from '../../http/router.ts'
import type { Scope } from '../../http/access/principal.ts'
import { OAuthError } from './answer.ts'
import { ownMetadata, scopesWithin } from './clients.ts'
import type { OAuth } from './oauth.ts'
import type { BrowserSession, HowSignedIn, Interaction } from './people.ts'
import { INTERACTION_PATH, SESSION_S, sessionCookie } from './routes.ts'

type Details = Awaited<ReturnType<Provider['interactionDetails']>>
type Client = NonNullable<Awaited<ReturnType<Provider['Client']['find']>>>
type Grant = InstanceType<Provider['Grant']>

/** The interaction that waits in this browser. Throws an OAuthError if there is no such interaction. */
export async function interactionOf(
  ctx: RequestContext,
  provider: Provider,
  { people }: OAuth,
): Promise<Interaction> {
  const details = await provider.interactionDetails(ctx.req, ctx.res).catch((error: unknown) => {
    if ((error as { error?: string }).error === 'invalid_request') throw over()
    throw error
  })
  // The cookie decides which interaction it is; the path must match.
  if (ctx.url.slice(INTERACTION_PATH.length).split(/[/?]/, 1)[0] !== details.uid) throw over()
  const client = await provider.Client.find(String(details.params['client_id']))
  if (client === undefined) throw over()
  const finish = async (result: InteractionResults, mergeWithLastSubmission = false) => {
    const target = await provider.interactionResult(ctx.req, ctx.res, result, {
      mergeWithLastSubmission,
    })
    ctx.status = 303
    ctx.set('Location', target)
    ctx.body = ''
  }
  const personId = details.session?.accountId ?? null
  const asked = askedIn(details, client)
  return {
    uid: details.uid,
    asks: details.prompt.name === 'login' ? 'login' : 'consent',
    isAnew: isAskedAnew(details.params),
    client: {
      id: client.clientId,
      name: client.clientName ?? client.clientId,
      isRegistered: ownMetadata(client).origin !== 'administrator',
    },
    redirectUri: String(details.params['redirect_uri']),
    scopes: asked.scopes,
    isOffline: asked.isOffline,
    personId,
    signedIn: async (id, how) => {
      await leave(ctx, details, provider)
      await finish({ login: loginOf(id, how) })
    },
    consented: async (scopes) => {
      const person = personId === null ? null : await people!.find(personId)
      if (person === null) throw over()
      const own = scopesWithin([...person.scopes])
      const granted = scopes.filter((scope) => own.includes(scope) && asked.scopes.includes(scope))
      if (granted.length === 0) return finish(DENIED)
      const grant = new provider.Grant({ accountId: person.id, clientId: client.clientId })
      fill(grant, asked, granted)
      // Merge with the login result: after a forced login the person would otherwise have to sign in twice.
      await finish({ consent: { grantId: await grant.save() } }, true)
    },
    denied: () => finish(DENIED),
  }
}

/** The session of this browser: the person signed in, and how to end it. */
export async function sessionOf(ctx: RequestContext, provider: Provider): Promise<BrowserSession> {
  const inner = provider.createContext(ctx.req, ctx.res)
  const session = await provider.Session.get(inner)
  return {
    personId: session.accountId ?? null,
    signedInAtMs: (session.loginTs ?? 0) * 1000,
    signIn: async (id, how) => {
      if (session.accountId !== undefined) await session.destroy()
      const next = new provider.Session()
      const { accountId, ts: loginTs, remember } = loginOf(id, how)
      next.loginAccount({ accountId, loginTs, transient: !remember })
      await next.save(SESSION_S)
      const expires = remember ? { expires: new Date((loginTs + SESSION_S) * 1000) } : {}
      inner.cookies.set(sessionCookie(provider.issuer), next.jti, {
        httpOnly: true,
        sameSite: 'lax',
        overwrite: true,
        ...expires,
      })
    },
    end: async () => {
      await session.destroy()
      inner.cookies.set(sessionCookie(provider.issuer), null, { httpOnly: true, sameSite: 'lax' })
    },
  }
}

/** Signs out the person who is signed in, so that nothing of their session passes to the next one. */
async function leave(ctx: RequestContext, details: Details, provider: Provider): Promise<void> {
  const session = await provider.Session.get(provider.createContext(ctx.req, ctx.res))
  if (session.accountId === undefined) return
  details.session = undefined
  await details.persist()
  await session.destroy()
}

function loginOf(accountId: string, { atMs, stays }: HowSignedIn) {
  return { accountId, ts: Math.floor(atMs / 1000), remember: stays }
}

function isAskedAnew({ prompt, max_age }: Details['params']): boolean {
  return (
    max_age !== undefined ||
    String(prompt ?? '')
      .split(' ')
      .includes('login')
  )
}

/** The requested access, limited to what the client may have. */
interface RequestedAccess {
  readonly scopes: readonly Scope[]
  readonly resources: readonly string[]
  readonly isOffline: boolean
  /** OpenID Connect scopes, which are not supported. */
  readonly others: readonly string[]
}

function askedIn({ params }: Details, client: Client): RequestedAccess {
  const words = String(params['scope'] ?? '').split(' ')
  const may = scopesWithin(ownMetadata(client).withPeople)
  return {
    scopes: may.filter((scope) => words.includes(scope)),
    resources: [params['resource']].flat().map(String),
    isOffline: words.includes('offline_access'),
    others: words.filter((word) => word === 'openid'),
  }
}

/**
 * Records what was granted and what was refused: otherwise oidc-provider would ask for the rest again. Each
 * consent is a separate grant, so that it can be revoked alone.
 */
function fill(
  grant: Grant,
  { scopes, resources, isOffline, others }: RequestedAccess,
  granted: readonly Scope[],
): void {
  const refused = scopes.filter((scope) => !granted.includes(scope))
  for (const resource of resources) {
    grant.addResourceScope(resource, granted.join(' '))
    if (refused.length > 0) grant.rejectResourceScope(resource, refused.join(' '))
  }
  if (isOffline) grant.addOIDCScope('offline_access')
  if (others.length > 0) grant.rejectOIDCScope(others.join(' '))
}

function over(): OAuthError {
  return new OAuthError(
    400,
    'invalid_request',
    'this sign-in has expired or began in another browser: start again',
  )
}

const DENIED: InteractionResults = { error: 'access_denied', error_description: 'the request was denied' }

import { appListOf } from '../../../apps/app-scope.ts'
import type { GnapGrantRecord } from '../../../store/people/gnap-grants.ts'
import type { RequestContext } from '../../http/router.ts'
import { type Html, html, PAGE_HEADERS } from '../../http/front/html.ts'
import type { AuthContext } from '../context.ts'
import { hashOfKey, looksLikeSecret, newSecret } from '../api-keys.ts'
import { sessionOf } from '../oauth/interactions.ts'
import type { Person } from '../oauth/people.ts'
import { knownScopes, type Scope } from '../../http/access/principal.ts'
import { finishLocation } from './finish.ts'
import { grantEndpoint } from './gnap.ts'
import { INTERACT_PREFIX } from './gnap-tokens.ts'
import { decideGrant, nameOf } from './grants.ts'

/**
 * The page to which the client sends the browser (RFC 9635 §4.1.1). It shows the request and reloads until
 * there is a decision, then sends the browser back. The decision is made elsewhere.
 */
export async function interactPage(
  ctx: RequestContext,
  secret: string,
  management: AuthContext,
): Promise<void> {
  const { store, publicUrl, oauth } = management
  const grant = await grantBehind(secret, management)
  ctx.set(PAGE_HEADERS)
  if (grant === null) {
    ctx.status = 404
    return show(ctx, 'This request has ended', html`<p>Return to the program that sent you here.</p>`)
  }
  if (grant.state === 'waiting') {
    ctx.set('Refresh', '5')
    const isAnybody = (await oauth.people?.isAnybody()) === true
    const decideUrl = isAnybody ? `${publicUrl}/gnap/decide/${secret}` : null
    return show(ctx, 'Waiting for approval', waiting(grant, decideUrl))
  }
  if (grant.finish === null) {
    const what = grant.state === 'approved' ? 'approved' : 'denied'
    return show(ctx, `The request is ${what}`, html`<p>Return to the program that sent you here.</p>`)
  }
  const reference = newSecret('')
  await store.gnapGrants.setReference(grant.id, hashOfKey(reference))
  lead(ctx, finishLocation(grant.finish, reference, grantEndpoint(publicUrl)))
}

/** The page where a signed-in person decides. They can approve only scopes that they have. */
export async function decidePage(
  ctx: RequestContext,
  secret: string,
  management: AuthContext,
): Promise<void> {
  const { store, publicUrl, oauth, nowMs } = management
  const { people } = oauth
  const grant = await grantBehind(secret, management)
  const interactUrl = `${publicUrl}/gnap/interact/${secret}`
  // The interact page shows the outcome and sends the browser back.
  if (grant?.state !== 'waiting' || people === null) return lead(ctx, interactUrl)
  const decide =
    (decision: 'approve' | 'deny') =>
    async ({ id, apps }: Person, atMs: number, scopes: readonly Scope[] = []) => {
      const actor = { id, address: ctx.state.address, requestId: ctx.state.requestId }
      // If another decision came first, it stands and this one is ignored.
      await decideGrant(store, grant, { decision, scopes, apps: appListOf(apps), atMs }, actor, nowMs())
      lead(ctx, interactUrl)
    }
  await people.decide(ctx, await sessionOf(ctx, await oauth.provider()), {
    id: grant.id,
    name: nameOf(grant),
    uri: grant.display.uri,
    thumbprint: grant.thumbprint,
    scopes: knownScopes(grant.scopes),
    isBearer: grant.wanted.tokens.some(({ isBearer }) => isBearer),
    finishUri: grant.finish?.uri ?? null,
    approve: decide('approve'),
    deny: decide('deny'),
  })
}

/** `null`: no such request, or it has ended. */
async function grantBehind(secret: string, { store, nowMs }: AuthContext): Promise<GnapGrantRecord | null> {
  if (!looksLikeSecret(secret, INTERACT_PREFIX)) return null
  const grant = await store.gnapGrants.byInteractHash(hashOfKey(secret))
  return grant === null || grant.state === 'finished' || grant.expiresAtMs <= nowMs() ? null : grant
}

/** 303, so that the browser does not repeat the method and body of this request (RFC 9635 §11.29). */
function lead(ctx: RequestContext, url: string): void {
  ctx.status = 303
  ctx.set('Location', url)
  ctx.body = ''
}

/** `decideUrl`: the page where people decide. `null`: no accounts exist. */
function waiting(grant: GnapGrantRecord, decideUrl: string | null): Html {
  const { id, thumbprint, scopes, display, finish } = grant
  const rows: readonly (readonly [string, string | null])[] = [
    ['Request', id],
    ['Claimed name', nameOf(grant)],
    ['Claimed website', display.uri],
    ['Key', thumbprint],
    ['Requested scopes', scopes.join(', ')],
    ['Returns you to', finish === null ? null : new URL(finish.uri).origin],
  ]
  const shown = rows.flatMap(([name, value]) =>
    value === null ? [] : [html`<tr><th scope="row">${name}</th><td><code>${value}</code></td></tr>`],
  )
  return html`<p>A program asks for access to Gatehouse. Its key is unknown, and its name and website are not verified. An administrator decides; this page checks for the decision every five seconds.</p>
<table>${shown}</table>
${decideUrl === null ? '' : html`<p>If you have an account here and started this request yourself, <a href="${decideUrl}">sign in and decide</a>. You can allow only what your own account may do.</p>`}`
}

function show(ctx: RequestContext, title: string, content: Html): void {
  ctx.body = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="stylesheet" href="/docs/style.css">
<main>
<h1>${title}</h1>
${content}
</main>
</html>
`.text
  ctx.set('Content-Type', 'text/html; charset=utf-8')
}

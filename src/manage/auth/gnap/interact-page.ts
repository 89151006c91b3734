import type { GnapGrantRecord } from '../../../store/gnap-grants.ts'
import { PAGE_HEADERS } from '../../api/documents.ts'
import type { RequestContext } from '../../api/router.ts'
import { type Html, html } from '../../docs/html.ts'
import type { Management } from '../../management.ts'
import { hashOfKey, looksLikeSecret, newSecret } from '../api-keys.ts'
import { finishLocation } from './finish.ts'
import { grantEndpoint } from './gnap.ts'
import { INTERACT_PREFIX } from './gnap-tokens.ts'
import { nameOf } from './grants.ts'

/**
 * The page that a client sends people to (RFC 9635 §4.1.1). It decides nothing: it says who has to, waits, and sends the
 * browser back.
 */
export async function interactPage(
  ctx: RequestContext,
  secret: string,
  { store, publicUrl, nowMs }: Management,
): Promise<void> {
  const grant = looksLikeSecret(secret, INTERACT_PREFIX)
    ? await store.gnapGrants.byInteractHash(hashOfKey(secret))
    : null
  ctx.set(PAGE_HEADERS)
  if (grant === null || grant.state === 'finished' || grant.expiresAtMs <= nowMs()) {
    ctx.status = 404
    return show(ctx, 'This request is over', html`<p>Go back to the program that has sent you here.</p>`)
  }
  if (grant.state === 'waiting') {
    ctx.set('Refresh', '5')
    return show(ctx, 'Somebody has to approve this', waiting(grant))
  }
  if (grant.finish === null) {
    const what = grant.state === 'approved' ? 'approved' : 'denied'
    return show(ctx, `The request is ${what}`, html`<p>Go back to the program that has sent you here.</p>`)
  }
  const reference = newSecret('')
  await store.gnapGrants.setReference(grant.id, hashOfKey(reference))
  // Not with the request of this one (RFC 9635 §11.29).
  ctx.status = 303
  ctx.set('Location', finishLocation(grant.finish, reference, grantEndpoint(publicUrl)))
  ctx.body = ''
}

function waiting(grant: GnapGrantRecord): Html {
  const { id, thumbprint, scopes, display, finish } = grant
  const rows: readonly (readonly [string, string | null])[] = [
    ['Request', id],
    ['It calls itself', nameOf(grant)],
    ['Its page', display.uri],
    ['Its key', thumbprint],
    ['It asks for', scopes.join(', ')],
    ['It has you sent back to', finish === null ? null : new URL(finish.uri).origin],
  ]
  const shown = rows.flatMap(([name, value]) =>
    value === null ? [] : [html`<tr><th scope="row">${name}</th><td><code>${value}</code></td></tr>`],
  )
  return html`<p>A program asks for access to Gatehouse. Nobody here knows its key, and what it says about itself is not checked. An administrator sees the request and decides; this page looks for it every five seconds.</p>
<table>${shown}</table>`
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

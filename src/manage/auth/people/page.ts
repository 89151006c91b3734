import { type Html, html } from '../../http/front/html.ts'
import type { BrowserContext } from '../oauth/people.ts'

/**
 * An HTML page of the sign-in flows. It works without scripts; its policy forbids all scripts except the one
 * for passkeys, on pages that have it.
 */
export interface SignInPage {
  readonly title: string
  readonly content: Html
  /** The origin, beside this server, to which the form may lead. Browsers also check redirects against it. */
  readonly leadsTo?: string
  /** The only script of the page. Without it, scripts are forbidden. */
  readonly script?: string
  readonly status?: number
  readonly retryAfterS?: number
}

export function sendPage(
  ctx: BrowserContext,
  publicUrl: string,
  { title, content, leadsTo, script, status = 200, retryAfterS }: SignInPage,
): void {
  ctx.state.isSecret = true
  ctx.status = status
  ctx.set({
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': `default-src 'none'; style-src 'self'; ${script === undefined ? '' : `script-src ${script}; `}form-action 'self'${
      leadsTo === undefined ? '' : ` ${sourceOf(leadsTo)}`
    }; base-uri 'none'; frame-ancestors 'none'`,
    'Referrer-Policy': 'no-referrer',
    'X-Frame-Options': 'DENY',
  })
  if (retryAfterS !== undefined) ctx.set('Retry-After', String(retryAfterS))
  ctx.body = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} – Gatehouse</title>
<link rel="stylesheet" href="${publicUrl}/docs/style.css">
${script === undefined ? '' : html`<script src="${script}" defer></script>\n`}<main class="card">
<p class="brand">Gatehouse at <b>${new URL(publicUrl).host}</b></p>
${content}
</main>
</html>
`.text
}

/** Redirects with 303, so that the browser does not submit a form again. */
export function leadTo(ctx: BrowserContext, url: string): void {
  ctx.state.isSecret = true
  ctx.status = 303
  ctx.set({ Location: url, 'Referrer-Policy': 'no-referrer' })
  ctx.body = ''
}

/** A page with a message only. */
export function messagePage(title: string, text: string, status: number, retryAfterS?: number): SignInPage {
  const content = html`<h1>${title}</h1><p role="status">${text}</p>`
  return { title, content, status, ...(retryAfterS === undefined ? {} : { retryAfterS }) }
}

/** A CSP source cannot be an IPv6 address: then this allows every host with that scheme. */
function sourceOf(url: string): string {
  const { origin, hostname, protocol } = new URL(url)
  return hostname.startsWith('[') ? protocol : origin
}

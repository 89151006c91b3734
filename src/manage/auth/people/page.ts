import { type Html, html } from '../../http/front/html.ts'
import type { BrowserContext } from '../oauth/people.ts'

/** What somebody sees in their browser while they sign in. It works without scripts; its policy
 * forbids all but the one for passkeys, where that is on it. */
export interface Page {
  readonly title: string
  readonly content: Html
  /** Beside this server, where its form may lead to: an origin. A browser also asks this of redirects. */
  readonly leadsTo?: string
  /** The one script that it has; else scripts are forbidden. */
  readonly script?: string
  readonly status?: number
  readonly retryAfterS?: number
}

export function sendPage(
  ctx: BrowserContext,
  publicUrl: string,
  { title, content, leadsTo, script, status = 200, retryAfterS }: Page,
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

/** A page that only says something. */
export function messagePage(title: string, text: string, status: number, retryAfterS?: number): Page {
  const content = html`<h1>${title}</h1><p role="status">${text}</p>`
  return { title, content, status, ...(retryAfterS === undefined ? {} : { retryAfterS }) }
}

/** An address of IPv6 is no source of a policy: then any http is. */
function sourceOf(url: string): string {
  const { origin, hostname, protocol } = new URL(url)
  return hostname.startsWith('[') ? protocol : origin
}

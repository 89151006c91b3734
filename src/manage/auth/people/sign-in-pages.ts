import { type Html, html } from '../../http/front/html.ts'
import { isDocumentUrl } from '../oauth/client-documents.ts'
import type { HowSignedIn, Interaction } from '../oauth/people.ts'
import type { Scope } from '../../http/access/principal.ts'
import { TOKEN } from './form.ts'
import type { OutsideOffer } from './outside-sign-in.ts'
import type { SignInPage } from './page.ts'
import type { Ceremony } from './passkeys.ts'

/** Why a page asks for a sign-in, and where it leads. */
export interface AskingWho {
  /** The purpose of the form. */
  readonly purpose: string
  /** The reason shown to the person. */
  readonly words: Html
  /** Where the browser goes at the end, if not to this server. */
  readonly leadsTo?: string
  /** The expected account, if known. */
  readonly email?: string
  /** Whether the person must sign in again, even if already signed in. */
  readonly isAnew?: boolean
  /** Present if the person may refuse. */
  denied?(): Promise<void>
  signedIn(userId: string, how: HowSignedIn): Promise<void>
}

export interface SignInForm {
  readonly token: string
  /** The address typed before. */
  readonly email: string
  /** `null`: no attempt yet. */
  readonly problem: string | null
  /** The link to sign in elsewhere. `null`: not configured. */
  readonly outside: OutsideOffer | null
  /** `null`: passkeys are not available here. */
  readonly passkey: Ceremony | null
  readonly status?: number
  readonly retryAfterS?: number
}

export function signInPage(
  { words, leadsTo, denied }: AskingWho,
  { token, email, problem, passkey, outside, status = 200, retryAfterS }: SignInForm,
): SignInPage {
  const invalid = problem === null ? html`` : html` aria-invalid="true" aria-describedby="problem"`
  const content = html`<h1>Sign in</h1>
<p>${words}</p>
${outside === null ? '' : elsewhere(outside, problem === null)}
${problemBox(problem)}
<form method="post">
${hidden(token)}
<label for="email">Email address</label>
<input id="email" name="email" type="email" value="${email}" autocomplete="username" maxlength="320" required${invalid}${email === '' ? AUTOFOCUS : ''}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${invalid}${email === '' ? '' : AUTOFOCUS}>
<label for="code">One-time code <small>from your app, if you use one, or a recovery code</small></label>
<input id="code" name="code" autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="64"${invalid}>
<label class="choice"><input type="checkbox" name="stay" value="yes"> <span>Stay signed in on this device for 14 days</span></label>
<p class="buttons"><button name="action" value="sign-in">Sign in</button>${denied === undefined ? '' : DENY}</p>
</form>
${passkey === null ? '' : passkeyForm(token, passkey)}
${leadsTo === undefined ? '' : html`<p><small>You then continue to <b>${hostOf(leadsTo)}</b>.</small></p>`}`
  const isNew = problem === null
  const title = isNew && !outside?.problem ? 'Sign in' : 'Not signed in'
  const more = {
    ...(leadsTo !== undefined && { leadsTo }),
    ...(retryAfterS !== undefined && { retryAfterS }),
  }
  return { title, content, status: isNew ? (outside?.problem?.status ?? status) : status, ...more }
}

/** The script shows the form if the browser supports passkeys. */
function passkeyForm(token: string, { options, sealed }: Ceremony): Html {
  return html`<form method="post" data-passkey="use" data-options="${options}" hidden>
${hidden(token)}
<input type="hidden" name="ceremony" value="${sealed}">
<input type="hidden" name="response" value="">
<p class="buttons"><button name="action" value="passkey">Sign in with a passkey</button></p>
<p role="status"></p>
</form>`
}

/** The reason for a sign-in that a client requested. */
export function wantsAccess(client: Interaction['client']): Html {
  return html`${nameOf(client)} requests access to your account.`
}

interface ConsentForm {
  readonly token: string
  readonly name: string
  /** The requested scopes that this person has. */
  readonly scopes: readonly Scope[]
  readonly problem: string | null
  readonly signOutUrl: string
}

export function consentPage(
  { client, redirectUri, scopes: asked, isOffline }: Interaction,
  { token, name, scopes, problem, signOutUrl }: ConsentForm,
): SignInPage {
  const choices = scopes.map(
    (scope) =>
      html`<label class="choice"><input type="checkbox" name="scope" value="${scope}" checked> <span>${WORDS[scope]} <small><code>${scope}</code></small></span></label>`,
  )
  const others = asked.filter((scope) => !scopes.includes(scope))
  const content = html`<h1>Allow access?</h1>
<p>${nameOf(client)} at <b>${hostOf(redirectUri)}</b> requests access to your account.</p>
${client.isRegistered ? html`<p class="problem"><b>It registered itself. Its name is not verified.</b></p>` : ''}
${problemBox(problem)}
<form method="post">
${hidden(token)}
${scopes.length === 0 ? '' : html`<fieldset><legend>It may</legend>${choices}</fieldset>`}
${others.length === 0 ? '' : html`<p>It also requests permissions that you do not have and cannot grant: ${others.map((scope) => html`<code>${scope}</code> `)}</p>`}
${isOffline && scopes.length > 0 ? html`<p>It keeps access <b>while you are away</b>. You (at <code>/account</code>) or an administrator can revoke it.</p>` : ''}
<p class="buttons">${scopes.length === 0 ? '' : html`<button name="action" value="allow">Allow</button> `}<button name="action" value="deny">Deny</button></p>
</form>
<p><small>You are signed in as <bdi>${plain(name)}</bdi>. <a href="${signOutUrl}">Sign out</a></small></p>`
  return { title: 'Allow access?', content, leadsTo: redirectUri, status: problem === null ? 200 : 400 }
}

/** `name`: the person signed in. `null`: signed out. */
export function signOutPage(token: string, name: string | null): SignInPage {
  if (name === null)
    return {
      title: 'Signed out',
      content: html`<h1>Signed out</h1><p role="status">You are signed out in this browser.</p>`,
    }
  const content = html`<h1>Sign out?</h1>
<p>You are signed in as <bdi>${plain(name)}</bdi>. Programs that you allowed keep their access.</p>
<form method="post">
${hidden(token)}
<p class="buttons"><button name="action" value="sign-out">Sign out</button></p>
</form>`
  return { title: 'Sign out?', content }
}

/**
 * A link, not a form: the page's policy limits where forms lead, and the provider may redirect to other
 * hosts.
 */
function elsewhere({ name, url, problem }: OutsideOffer, isNew: boolean): Html {
  const shown = plain(name)
  const box =
    problem === null || !isNew
      ? ''
      : html`<p class="problem" role="alert"><bdi>${shown}</bdi>: ${problem.text}</p>`
  return html`${box}
<p class="buttons"><a class="button" href="${url}">Sign in with <bdi>${shown}</bdi></a></p>`
}

export function problemBox(problem: string | null): Html {
  return problem === null ? html`` : html`<p class="problem" id="problem" role="alert">${problem}</p>`
}

export function hidden(token: string): Html {
  return html`<input type="hidden" name="${TOKEN}" value="${token}">`
}

/** A client with its own document chooses its own name, so the host of the document is shown too. */
function nameOf({ id, name }: Interaction['client']): Html {
  const owner = isDocumentUrl(id) ? html` of <b>${hostOf(id)}</b>` : ''
  return html`<b>“<bdi>${plain(name)}</bdi>”</b>${owner}`
}

/** Untrusted text: removes control characters and characters that change the text direction. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, ' ')
}

export function hostOf(url: string): string {
  return new URL(url).host
}

const DENY = html` <button name="action" value="deny" formnovalidate>Deny</button>`
const AUTOFOCUS = html` autofocus`
/** What each scope allows. */
export const WORDS: Readonly<Record<Scope, string>> = {
  read: 'see agents, signatures, events and statistics',
  detect: 'classify requests and run tasks',
  write: 'submit signatures',
  admin: 'do everything: keys, users, settings, policy',
  mcp: 'use the tools for AI assistants',
}

import type { PasskeyRecord } from '../../../store/people/passkeys.ts'
import type { UserRecord } from '../../../store/people/users.ts'
import { type Html, html } from '../../http/front/html.ts'
import type { Given } from '../oauth/people.ts'
import { scopesOf } from './make-user.ts'
import { codeUri } from './one-time-codes.ts'
import type { Page } from './page.ts'
import type { Ceremony } from './passkeys.ts'
import { hidden, plain, problemBox, WORDS } from './sign-in-pages.ts'

export interface Account {
  readonly user: UserRecord
  readonly token: string
  /** The result of the last action. `null`: none. */
  readonly notice: string | null
  /** How many are left. */
  readonly recoveryCodes: number
  readonly given: readonly Given[]
  /** How many. `null`: passkeys are not available here. */
  readonly passkeys: number | null
}

export function accountPage(
  publicUrl: string,
  { user, token, notice, recoveryCodes, given, passkeys }: Account,
): Page {
  const { email, hasPassword, hasCodes } = user
  const codes = hasCodes
    ? `A code is asked for beside the password. Recovery codes left: ${recoveryCodes}.`
    : 'No code is asked for beside the password.'
  const content = html`<h1>Your account</h1>
<p>You are signed in as <b><bdi>${plain(email)}</bdi></b>. <a href="${publicUrl}/oauth/sign-out">Sign out</a></p>
${notice === null ? '' : html`<p class="notice" role="status">${notice}</p>`}
<h2>What you may do</h2>
<ul>${scopesOf(user).map((scope) => html`<li>${WORDS[scope]} <small><code>${scope}</code></small></li>`)}</ul>
<h2>How you sign in</h2>
${hasPassword ? html`<p><a href="${publicUrl}/account/password">Change your password</a></p>` : html`<p>You have no password here.</p>`}
<p>${codes} <a href="${publicUrl}/account/codes">One-time codes</a></p>
${passkeys === null ? '' : html`<p>${passkeys === 1 ? 'You have 1 passkey.' : `You have ${passkeys === 0 ? 'no' : passkeys} passkeys.`} <a href="${publicUrl}/account/passkeys">Passkeys</a></p>`}
<h2>What you have allowed</h2>
${given.length === 0 ? html`<p>No program has access in your name.</p>` : html`<ul class="plain">${given.map((each) => givenItem(each, token))}</ul>`}
<h2>If something is wrong</h2>
<form method="post">
${hidden(token)}
<p>This ends every session of yours, in this browser too, and all that you have allowed programs.</p>
<p class="buttons"><button name="action" value="sign-out-everywhere">Sign out everywhere</button></p>
</form>`
  return { title: 'Your account', content }
}

export interface PasswordForm {
  readonly token: string
  readonly problem: string | null
  readonly status: number
}

export function passwordPage({ email }: UserRecord, { token, problem, status }: PasswordForm): Page {
  const invalid = problem === null ? html`` : html` aria-invalid="true" aria-describedby="problem"`
  const content = html`<h1>Change your password</h1>
<p>You are signed out in every other browser then, and what you have allowed programs is over.</p>
${problemBox(problem)}
<form method="post">
${hidden(token)}
<label for="email">Your account</label>
<input id="email" name="email" type="email" value="${email}" autocomplete="username" readonly>
<label for="current">Your password now</label>
<input id="current" name="current" type="password" autocomplete="current-password" required${invalid}>
<label for="new">A new one <small>of 12 characters or more</small></label>
<input id="new" name="new" type="password" autocomplete="new-password" minlength="12" required${invalid}>
<label for="again">The new one again</label>
<input id="again" name="again" type="password" autocomplete="new-password" minlength="12" required${invalid}>
<p class="buttons"><button name="action" value="change">Change it</button></p>
</form>`
  return { title: problem === null ? 'Change your password' : 'Not changed', content, status }
}

export function codesPage(publicUrl: string, { hasCodes }: UserRecord, token: string): Page {
  const now = hasCodes
    ? html`<p>A code from an app is asked for beside your password. With another app, or new recovery codes, those before are worth nothing.</p>`
    : html`<p>An app on your phone shows a code that changes every half minute. With it your password alone is of no use to who has read it.</p>`
  const content = html`<h1>One-time codes</h1>
${now}
<form method="post">
${hidden(token)}
<p class="buttons"><button name="action" value="begin">${hasCodes ? 'Begin anew' : 'Begin'}</button>${hasCodes ? html` <button name="action" value="stop">Ask for none</button>` : ''}</p>
</form>
${back(publicUrl)}`
  return { title: 'One-time codes', content }
}

export interface CodesForm {
  readonly token: string
  /** The secret, sealed so that only this server can read it. */
  readonly pending: string
  readonly secret: string
  readonly problem: string | null
}

export function confirmCodesPage(
  { email }: UserRecord,
  { token, pending, secret, problem }: CodesForm,
): Page {
  const invalid = problem === null ? html`` : html` aria-invalid="true" aria-describedby="problem"`
  const uri = codeUri(secret, email)
  const content = html`<h1>Set up your app</h1>
<p>On the device with the app, <a href="${uri}">open it with this link</a>. Or type this into the app, as a key for codes by time:</p>
<p class="secret"><code>${secret.match(/.{4}/g)!.join(' ')}</code></p>
${problemBox(problem)}
<form method="post">
${hidden(token)}
<input type="hidden" name="pending" value="${pending}">
<label for="code">The code that it shows</label>
<input id="code" name="code" autocomplete="one-time-code" inputmode="numeric" maxlength="16" required autofocus${invalid}>
<p class="buttons"><button name="action" value="confirm">Ask me for codes</button></p>
</form>
<p><small>Nothing changes before the code was right. The address that the app needs: <code>${uri}</code></small></p>`
  const title = problem === null ? 'Set up your app' : 'Not set up'
  return { title, content, status: problem === null ? 200 : 400 }
}

export function recoveryCodesPage(publicUrl: string, codes: readonly string[]): Page {
  const content = html`<h1>Codes are asked for</h1>
<p role="status">Keep these for when you have lost the app: each opens once. They are shown here only.</p>
<ul class="secret">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
${back(publicUrl)}`
  return { title: 'Codes are asked for', content }
}

export interface PasskeyList {
  readonly token: string
  readonly passkeys: readonly PasskeyRecord[]
  /** For adding a passkey. */
  readonly ceremony: Ceremony
  readonly problem: string | null
}

export function passkeysPage(publicUrl: string, { token, passkeys, ceremony, problem }: PasskeyList): Page {
  const { options, sealed } = ceremony
  const content = html`<h1>Passkeys</h1>
<p>With a passkey your device shows who you are, after you have unlocked it: without your password, and without a code.</p>
${problemBox(problem)}
${passkeys.length === 0 ? '' : html`<ul class="plain">${passkeys.map((each) => passkeyItem(each, token))}</ul>`}
<form method="post" data-passkey="make" data-options="${options}" hidden>
${hidden(token)}
<input type="hidden" name="ceremony" value="${sealed}">
<input type="hidden" name="response" value="">
<label for="name">What you call the device</label>
<input id="name" name="name" maxlength="60" autocomplete="off" required>
<p class="buttons"><button name="action" value="add">Make a passkey</button></p>
<p role="status"></p>
</form>
<noscript><p>To make one takes a script of this server, which your browser does not run.</p></noscript>
${back(publicUrl)}`
  return { title: problem === null ? 'Passkeys' : 'No passkey made', content }
}

function passkeyItem({ id, name, createdAtMs, usedAtMs }: PasskeyRecord, token: string): Html {
  const used = usedAtMs === null ? 'never used' : `last used on ${day(usedAtMs)}`
  return html`<li><form method="post">
${hidden(token)}
<input type="hidden" name="passkey" value="${id}">
<p><b><bdi>${plain(name)}</bdi></b> <small>made on ${day(createdAtMs)}, ${used}</small></p>
<p class="buttons"><button name="action" value="remove">Remove it</button></p>
</form></li>`
}

/** The page after a completed action. */
export function donePage(publicUrl: string, title: string, text: string): Page {
  return { title, content: html`<h1>${title}</h1><p role="status">${text}</p>${back(publicUrl)}` }
}

function givenItem({ id, name, how, scopes, isOffline, untilMs }: Given, token: string): Html {
  const whose = {
    client: 'A client',
    document: 'An app with a document of its own',
    key: 'A program with a key',
  }
  return html`<li><form method="post">
${hidden(token)}
<input type="hidden" name="given" value="${id}">
<p><b><bdi>${plain(name)}</bdi></b> <small>${whose[how]}: <code>${plain(id)}</code></small><br>
<code>${scopes.join(' ')}</code>${isOffline ? ' – while you are not here, too' : ''}, until ${day(untilMs)} at the latest</p>
<p class="buttons"><button name="action" value="take-back">Take it back</button></p>
</form></li>`
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function back(publicUrl: string): Html {
  return html`<p><a href="${publicUrl}/account">Your account</a></p>`
}

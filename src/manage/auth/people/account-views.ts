import type { PasskeyRecord } from '../../../store/people/passkeys.ts'
import type { UserRecord } from '../../../store/people/users.ts'
import { type Html, html } from '../../http/front/html.ts'
import type { ProgramAccess } from '../oauth/people.ts'
import { scopesOf } from './make-user.ts'
import { codeUri } from './one-time-codes.ts'
import type { SignInPage } from './page.ts'
import type { Ceremony } from './passkeys.ts'
import { hidden, plain, problemBox, WORDS } from './sign-in-pages.ts'

interface Account {
  readonly user: UserRecord
  readonly token: string
  /** The result of the last action. `null`: none. */
  readonly notice: string | null
  /** How many are left. */
  readonly recoveryCodes: number
  readonly given: readonly ProgramAccess[]
  /** How many. `null`: passkeys are not available here. */
  readonly passkeys: number | null
}

export function accountPage(
  publicUrl: string,
  { user, token, notice, recoveryCodes, given, passkeys }: Account,
): SignInPage {
  const { email, hasPassword, hasCodes } = user
  const codes = hasCodes
    ? `Two-factor codes are on. Recovery codes left: ${recoveryCodes}.`
    : 'Two-factor codes are off.'
  const content = html`<h1>Your account</h1>
<p>You are signed in as <b><bdi>${plain(email)}</bdi></b>. <a href="${publicUrl}/oauth/sign-out">Sign out</a></p>
${notice === null ? '' : html`<p class="notice" role="status">${notice}</p>`}
<h2>What you may do</h2>
<ul>${scopesOf(user).map((scope) => html`<li>${WORDS[scope]} <small><code>${scope}</code></small></li>`)}</ul>
<h2>How you sign in</h2>
${hasPassword ? html`<p><a href="${publicUrl}/account/password">Change your password</a></p>` : html`<p>This account has no password.</p>`}
<p>${codes} <a href="${publicUrl}/account/codes">One-time codes</a></p>
${passkeys === null ? '' : html`<p>${passkeys === 1 ? 'You have 1 passkey.' : `You have ${passkeys === 0 ? 'no' : passkeys} passkeys.`} <a href="${publicUrl}/account/passkeys">Passkeys</a></p>`}
<h2>Programs with access</h2>
${given.length === 0 ? html`<p>No program has access to your account.</p>` : html`<ul class="plain">${given.map((each) => givenItem(each, token))}</ul>`}
<h2>If something is wrong</h2>
<form method="post">
${hidden(token)}
<p>This ends all your sessions, including this one, and revokes the access of all programs.</p>
<p class="buttons"><button name="action" value="sign-out-everywhere">Sign out everywhere</button></p>
</form>`
  return { title: 'Your account', content }
}

interface PasswordForm {
  readonly token: string
  readonly problem: string | null
  readonly status: number
}

export function passwordPage({ email }: UserRecord, { token, problem, status }: PasswordForm): SignInPage {
  const invalid = problem === null ? html`` : html` aria-invalid="true" aria-describedby="problem"`
  const content = html`<h1>Change your password</h1>
<p>This signs you out of all other browsers and revokes the access of all programs.</p>
${problemBox(problem)}
<form method="post">
${hidden(token)}
<label for="email">Your account</label>
<input id="email" name="email" type="email" value="${email}" autocomplete="username" readonly>
<label for="current">Current password</label>
<input id="current" name="current" type="password" autocomplete="current-password" required${invalid}>
<label for="new">New password <small>at least 12 characters</small></label>
<input id="new" name="new" type="password" autocomplete="new-password" minlength="12" required${invalid}>
<label for="again">Repeat the new password</label>
<input id="again" name="again" type="password" autocomplete="new-password" minlength="12" required${invalid}>
<p class="buttons"><button name="action" value="change">Change password</button></p>
</form>`
  return { title: problem === null ? 'Change your password' : 'Not changed', content, status }
}

export function codesPage(publicUrl: string, { hasCodes }: UserRecord, token: string): SignInPage {
  const now = hasCodes
    ? html`<p>After your password, you enter a code from an app. If you set up another app, the old app and the old recovery codes stop working.</p>`
    : html`<p>An app on your phone shows a code that changes every 30 seconds. With codes on, a stolen password alone is not enough to sign in.</p>`
  const content = html`<h1>One-time codes</h1>
${now}
<form method="post">
${hidden(token)}
<p class="buttons"><button name="action" value="begin">${hasCodes ? 'Set up again' : 'Set up'}</button>${hasCodes ? html` <button name="action" value="stop">Turn off</button>` : ''}</p>
</form>
${back(publicUrl)}`
  return { title: 'One-time codes', content }
}

interface CodesForm {
  readonly token: string
  /** The secret, sealed so that only this server can read it. */
  readonly pending: string
  readonly secret: string
  readonly problem: string | null
}

export function confirmCodesPage(
  { email }: UserRecord,
  { token, pending, secret, problem }: CodesForm,
): SignInPage {
  const invalid = problem === null ? html`` : html` aria-invalid="true" aria-describedby="problem"`
  const uri = codeUri(secret, email)
  const content = html`<h1>Set up your app</h1>
<p>On the device with the app, <a href="${uri}">open it with this link</a>. Or enter this key in the app, as a time-based code:</p>
<p class="secret"><code>${secret.match(/.{4}/g)!.join(' ')}</code></p>
${problemBox(problem)}
<form method="post">
${hidden(token)}
<input type="hidden" name="pending" value="${pending}">
<label for="code">Code from the app</label>
<input id="code" name="code" autocomplete="one-time-code" inputmode="numeric" maxlength="16" required autofocus${invalid}>
<p class="buttons"><button name="action" value="confirm">Turn on</button></p>
</form>
<p><small>Nothing changes until you enter a correct code. Setup link for the app: <code>${uri}</code></small></p>`
  const title = problem === null ? 'Set up your app' : 'Not set up'
  return { title, content, status: problem === null ? 200 : 400 }
}

export function recoveryCodesPage(publicUrl: string, codes: readonly string[]): SignInPage {
  const content = html`<h1>One-time codes are on</h1>
<p role="status">Save these recovery codes in case you lose the app. Each works once. They are not shown again.</p>
<ul class="secret">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
${back(publicUrl)}`
  return { title: 'One-time codes are on', content }
}

interface PasskeyList {
  readonly token: string
  readonly passkeys: readonly PasskeyRecord[]
  /** For adding a passkey. */
  readonly ceremony: Ceremony
  readonly problem: string | null
}

export function passkeysPage(
  publicUrl: string,
  { token, passkeys, ceremony, problem }: PasskeyList,
): SignInPage {
  const { options, sealed } = ceremony
  const content = html`<h1>Passkeys</h1>
<p>With a passkey, you sign in by unlocking your device. You need no password and no code.</p>
${problemBox(problem)}
${passkeys.length === 0 ? '' : html`<ul class="plain">${passkeys.map((each) => passkeyItem(each, token))}</ul>`}
<form method="post" data-passkey="make" data-options="${options}" hidden>
${hidden(token)}
<input type="hidden" name="ceremony" value="${sealed}">
<input type="hidden" name="response" value="">
<label for="name">Name of the device</label>
<input id="name" name="name" maxlength="60" autocomplete="off" required>
<p class="buttons"><button name="action" value="add">Add passkey</button></p>
<p role="status"></p>
</form>
<noscript><p>Passkeys need JavaScript, which is off in your browser.</p></noscript>
${back(publicUrl)}`
  return { title: problem === null ? 'Passkeys' : 'Passkey not added', content }
}

function passkeyItem({ id, name, createdAtMs, usedAtMs }: PasskeyRecord, token: string): Html {
  const used = usedAtMs === null ? 'never used' : `last used on ${day(usedAtMs)}`
  return html`<li><form method="post">
${hidden(token)}
<input type="hidden" name="passkey" value="${id}">
<p><b><bdi>${plain(name)}</bdi></b> <small>added on ${day(createdAtMs)}, ${used}</small></p>
<p class="buttons"><button name="action" value="remove">Remove</button></p>
</form></li>`
}

/** The page after a completed action. */
export function donePage(publicUrl: string, title: string, text: string): SignInPage {
  return { title, content: html`<h1>${title}</h1><p role="status">${text}</p>${back(publicUrl)}` }
}

function givenItem({ id, name, how, scopes, isOffline, untilMs }: ProgramAccess, token: string): Html {
  const whose = {
    client: 'Client',
    document: 'App with its own client document',
    key: 'Program with a key',
  }
  return html`<li><form method="post">
${hidden(token)}
<input type="hidden" name="given" value="${id}">
<p><b><bdi>${plain(name)}</bdi></b> <small>${whose[how]}: <code>${plain(id)}</code></small><br>
<code>${scopes.join(' ')}</code>${isOffline ? ' – also while you are away' : ''}, until ${day(untilMs)}</p>
<p class="buttons"><button name="action" value="take-back">Revoke</button></p>
</form></li>`
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function back(publicUrl: string): Html {
  return html`<p><a href="${publicUrl}/account">Your account</a></p>`
}

import { Fault } from '../../../shared/fault.ts'
import type { UserRecord } from '../../../store/people/users.ts'
import { PASSKEY_SCRIPT_PATH } from './passkey-script.ts'
import { html } from '../../http/front/html.ts'
import {
  type BrowserContext,
  type BrowserSession,
  type GivenAccess,
  type HowSignedIn,
  isSignedIn,
} from '../oauth/people.ts'
import {
  accountPage,
  codesPage,
  confirmCodesPage,
  donePage,
  passkeysPage,
  passwordPage,
  recoveryCodesPage,
} from './account-views.ts'
import { type FormPages, fromOf } from './form-pages.ts'
import type { KnownDevices } from './known-devices.ts'
import { addPasskey, endSessions, removePasskey, setPassword, startCodes, stopCodes } from './make-user.ts'
import { newCodeSecret, stepOfCode } from './one-time-codes.ts'
import { leadTo, messagePage, type SignInPage } from './page.ts'
import { passwordProblem } from './password-hash.ts'
import type { Passkeys } from './passkeys.ts'
import type { SignIn, SignInParts } from './sign-in.ts'
import { type DeskParts, type SignInDesk, tooMany } from './sign-in-desk.ts'

/** The account of a signed-in person, to view and change: `/account` and the pages below it. */
export class AccountPages {
  readonly #parts: SignInParts
  readonly #pages: FormPages
  readonly #desk: SignInDesk
  readonly #signIn: SignIn
  readonly #passkeys: Passkeys
  readonly #devices: KnownDevices

  constructor(parts: SignInParts, { pages, signIn, passkeys, devices }: DeskParts, desk: SignInDesk) {
    this.#passkeys = passkeys
    this.#devices = devices
    this.#parts = parts
    this.#pages = pages
    this.#desk = desk
    this.#signIn = signIn
  }

  answer(ctx: BrowserContext, session: BrowserSession, given: GivenAccess): Promise<void> {
    const path = ctx.url.split('?', 1)[0]!
    const work = this.#works.get(path)
    return this.#pages.answer(ctx, path, async (form) => {
      if (work === undefined) return NOT_THERE
      const user = await this.#signedIn(session)
      const isLongAgo = this.#parts.nowMs() - session.signedInAtMs > RECENT_MS
      if (user !== null && !(work.isSensitive && isLongAgo))
        return work.page({ ctx, user, session, given, form, token: this.#pages.tokenFor(ctx, path) })
      const signedIn = async (id: string, how: HowSignedIn) => {
        await session.signIn(id, how)
        leadTo(ctx, `${this.#pages.publicUrl}${path}`)
      }
      const why = user === null ? YOUR_ACCOUNT : LONG_AGO
      const asking = {
        purpose: path,
        words: why,
        signedIn,
        isAnew: user !== null,
        ...(user !== null && { email: user.email }),
      }
      return this.#desk.page(ctx, asking, form)
    })
  }

  /** `null`: signed out, or the sign-in is no longer valid. */
  async #signedIn({ personId, signedInAtMs }: BrowserSession): Promise<UserRecord | null> {
    const user = personId === null ? null : await this.#parts.store.users.byId(personId)
    return user === null || user.isDisabled || !isSignedIn(signedInAtMs, user) ? null : user
  }

  async #overview({ ctx, user, session, given, form, token }: AccountVisit): Promise<SignInPage | null> {
    const { store, nowMs } = this.#parts
    let notice: string | null = null
    switch (form?.get('action')) {
      case 'take-back':
        notice = (await given.takeBack(user, form.get('given') ?? '', fromOf(ctx)))
          ? 'Access revoked. It takes effect within a second.'
          : 'Access was already revoked.'
        break
      case 'sign-out-everywhere':
        await endSessions(store, user, actor(user, ctx), nowMs())
        await session.end()
        return donePage(
          this.#pages.publicUrl,
          'Signed out everywhere',
          'You are signed out of all browsers, and the access of all programs is revoked.',
        )
    }
    return accountPage(this.#pages.publicUrl, {
      user,
      token,
      notice,
      recoveryCodes: user.hasCodes ? await store.users.recoveryCodes(user.id) : 0,
      given: await given.of(user.id),
      passkeys: this.#passkeys.isOffered ? (await store.passkeys.ofUser(user.id)).length : null,
    })
  }

  async #password({ ctx, user, session, form, token }: AccountVisit): Promise<SignInPage | null> {
    // An account without a password has nothing to steal. An administrator can set one.
    if (!user.hasPassword) return NO_PASSWORD
    const page = (problem: string | null, status: number) => passwordPage(user, { token, problem, status })
    if (form?.get('action') !== 'change') return page(null, 200)
    const [current, next, again] = ['current', 'new', 'again'].map((name) => form.get(name) ?? '')
    if (next !== again) return page('The two new passwords do not match.', 400)
    const wrong = passwordProblem(next!)
    if (wrong !== null) return page(`The new password ${wrong}.`, 400)
    const proven = await this.#signIn.prove(user, current!, fromOf(ctx))
    if (proven.kind === 'refused') return page('The current password is wrong.', 403)
    if (proven.kind === 'throttled')
      return { ...page(tooMany(proven.retryAfterS), 429), retryAfterS: proven.retryAfterS }
    const { store, passwords, nowMs } = this.#parts
    const atMs = nowMs()
    if (!(await setPassword({ store, hasher: passwords }, user, next!, actor(user, ctx), atMs))) return GONE
    // The change has ended all sessions, this one too. Sessions store whole seconds, so the new one starts at
    // the next second.
    await session.signIn(user.id, { atMs: Math.ceil(atMs / 1000) * 1000, stays: false })
    await this.#devices.remember(ctx, user.id, atMs)
    return donePage(
      this.#pages.publicUrl,
      'Password changed',
      'You are signed out of all other browsers, and the access of all programs is revoked.',
    )
  }

  async #codes(visit: AccountVisit): Promise<SignInPage | null> {
    const { ctx, user, form, token } = visit
    switch (form?.get('action')) {
      case 'begin':
        return this.#begin(visit, newCodeSecret(), null)
      case 'confirm':
        return this.#confirm(visit, form)
      case 'stop':
        if (!(await stopCodes(this.#parts.store, user, actor(user, ctx), this.#parts.nowMs()))) return GONE
        return donePage(
          this.#pages.publicUrl,
          'One-time codes are off',
          'From now on you sign in with your password only.',
        )
      default:
        return codesPage(this.#pages.publicUrl, user, token)
    }
  }

  async #passkey(visit: AccountVisit): Promise<SignInPage | null> {
    const { ctx, user, form, token } = visit
    const { store, nowMs } = this.#parts
    if (!this.#passkeys.isOffered) return NO_PASSKEYS
    switch (form?.get('action')) {
      case 'add': {
        const performed = { sealed: form.get('ceremony') ?? '', response: form.get('response') ?? '' }
        const name = (form.get('name') ?? '').trim()
        if (!NAME.test(name)) return this.#passkeyList(visit, 'The name must have 1 to 60 characters.', 400)
        const made = await this.#passkeys.made(performed, token)
        const isAdded =
          made !== null && (await addPasskey(store, user, { ...made, name }, actor(user, ctx), nowMs()))
        return isAdded
          ? this.#passkeyList(visit, null)
          : this.#passkeyList(visit, 'The passkey was not accepted, or it took too long. Try again.', 400)
      }
      case 'remove':
        await removePasskey(store, user, form.get('passkey') ?? '', actor(user, ctx), nowMs())
        return this.#passkeyList(visit, null)
      default:
        return this.#passkeyList(visit, null)
    }
  }

  async #passkeyList(
    { user, token }: AccountVisit,
    problem: string | null,
    status = 200,
  ): Promise<SignInPage> {
    const passkeys = await this.#parts.store.passkeys.ofUser(user.id)
    const ceremony = await this.#passkeys.beginMaking(user, passkeys, token)
    const page = passkeysPage(this.#pages.publicUrl, { token, passkeys, ceremony, problem })
    return { ...page, status, script: `${this.#pages.publicUrl}${PASSKEY_SCRIPT_PATH}` }
  }

  /** Until the person confirms it, the secret is only in the page, sealed so that it cannot be changed. */
  async #begin({ user, token }: AccountVisit, secret: string, problem: string | null): Promise<SignInPage> {
    const { sealer, nowMs } = this.#parts
    const text = JSON.stringify({ secret, expiresAtMs: nowMs() + RECENT_MS })
    const pending = await sealer.seal(text, pendingAs(user, token))
    return confirmCodesPage(user, { token, pending, secret, problem })
  }

  async #confirm(visit: AccountVisit, form: URLSearchParams): Promise<SignInPage> {
    const { ctx, user, token } = visit
    const { store, sealer, nowMs } = this.#parts
    const secret = await this.#pending(form.get('pending') ?? '', pendingAs(user, token))
    if (secret === null)
      return this.#begin(visit, newCodeSecret(), 'That took too long. Set up the app again with this key.')
    const usedStep = stepOfCode((form.get('code') ?? '').replaceAll(/\s/g, ''), secret, nowMs())
    if (usedStep === null) return this.#begin(visit, secret, 'Wrong code. Check the clock of your device.')
    const made = await startCodes({ store, sealer }, user, actor(user, ctx), nowMs(), { secret, usedStep })
    return made === null ? GONE : recoveryCodesPage(this.#pages.publicUrl, made.recoveryCodes)
  }

  /** `null`: expired, or not sealed by us. */
  async #pending(sealed: string, what: string): Promise<string | null> {
    try {
      const opened = await this.#parts.sealer.open(sealed, what)
      const { secret, expiresAtMs } = JSON.parse(opened.reveal()) as { secret: string; expiresAtMs: number }
      return expiresAtMs > this.#parts.nowMs() ? secret : null
    } catch (error) {
      if (error instanceof Fault && FOREIGN_SEALS.has(error.code)) return null
      throw error
    }
  }

  readonly #works: ReadonlyMap<string, Work> = new Map<string, Work>([
    [ACCOUNT, { isSensitive: false, page: (visit) => this.#overview(visit) }],
    [`${ACCOUNT}/password`, { isSensitive: true, page: (visit) => this.#password(visit) }],
    [`${ACCOUNT}/passkeys`, { isSensitive: true, page: (visit) => this.#passkey(visit) }],
    [`${ACCOUNT}/codes`, { isSensitive: true, page: (visit) => this.#codes(visit) }],
  ])
}

/** A signed-in person who views a page or submits its form. */
interface AccountVisit {
  readonly ctx: BrowserContext
  readonly user: UserRecord
  readonly session: BrowserSession
  readonly given: GivenAccess
  readonly form: URLSearchParams | null
  /** The token for the page's form. */
  readonly token: string
}

interface Work {
  /** The page changes how the person signs in, so it needs a recent sign-in. */
  readonly isSensitive: boolean
  page(visit: AccountVisit): Promise<SignInPage | null>
}

function actor({ id }: UserRecord, ctx: BrowserContext) {
  return { id, ...fromOf(ctx) }
}

/** The secret is sealed for one person and one page in one browser. */
function pendingAs({ id }: UserRecord, token: string): string {
  return `one-time codes that ${id} has not confirmed ${token}`
}

export const ACCOUNT = '/account'
const RECENT_MS = 600_000
const FOREIGN_SEALS: ReadonlySet<string> = new Set(['SEAL_BROKEN', 'SEAL_KEY_WRONG'])
const YOUR_ACCOUNT = html`Sign in to see your account.`
const LONG_AGO = html`Your sign-in is too old for this change. Sign in again.`
const NOT_THERE = messagePage('Page not found', 'Your account is at /account.', 404)
const GONE = messagePage('Account deleted', 'An administrator has deleted your account.', 403)
/** A name that a person has typed. */
const NAME = /^\P{Cc}{1,60}$/u
const NO_PASSKEYS = messagePage(
  'Passkeys are not available',
  'Browsers support passkeys only for https host names and localhost. An administrator must set manage.public_url to such a URL.',
  404,
)
const NO_PASSWORD = messagePage('You have no password', 'An administrator can set one for you.', 403)

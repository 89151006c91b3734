import { PASSKEY_SCRIPT_PATH } from './passkey-script.ts'
import type { BrowserContext } from '../oauth/people.ts'
import type { KnownDevices } from './known-devices.ts'
import { type FormPages, fromOf, gone } from './form-pages.ts'
import type { SignInPage } from './page.ts'
import type { OutsideSignIn } from './outside-sign-in.ts'
import type { Passkeys } from './passkeys.ts'
import { EMAIL_LENGTH_MAX, emailIn } from './make-user.ts'
import type { SignedIn, SignIn } from './sign-in.ts'
import { type AskingWho, type SignInForm, signInPage } from './sign-in-pages.ts'

/** Runs the sign-in form for every page that needs one. */
export class SignInDesk {
  readonly #pages: FormPages
  readonly #signIn: SignIn
  readonly #passkeys: Passkeys
  readonly #outside: OutsideSignIn | null
  readonly #devices: KnownDevices

  constructor({ pages, signIn, passkeys, outside, devices }: DeskParts) {
    this.#outside = outside
    this.#passkeys = passkeys
    this.#pages = pages
    this.#signIn = signIn
    this.#devices = devices
  }

  async page(
    ctx: BrowserContext,
    asking: AskingWho,
    form: URLSearchParams | null,
  ): Promise<SignInPage | null> {
    if (form === null && (await this.#outside?.answer(ctx, asking)) === true) return null
    const token = this.#pages.tokenFor(ctx, asking.purpose)
    const action = form?.get('action')
    if (action === 'deny' && asking.denied !== undefined) return gone(asking.denied())
    const field = (name: string) => form?.get(name) ?? ''
    const typed = { token, email: field('email').slice(0, EMAIL_LENGTH_MAX) }
    switch (action) {
      case 'sign-in': {
        const [email, password, code] = [field('email'), field('password'), field('code')]
        const account = emailIn(email)
        const device = account === null ? null : await this.#devices.idFor(ctx, account)
        const found = await this.#signIn.attempt({ email, password, code, device, ...fromOf(ctx) })
        return this.#after(ctx, asking, found, { ...typed, stays: field('stay') === 'yes', wrong: WRONG })
      }
      case 'passkey': {
        const performed = { sealed: field('ceremony'), response: field('response') }
        const found = await this.#passkeys.signIn(performed, token, fromOf(ctx))
        return this.#after(ctx, asking, found, { ...typed, stays: false, wrong: WRONG_PASSKEY })
      }
      default:
        return this.#ask(ctx, asking, { token, email: asking.email ?? '', problem: null })
    }
  }

  async #after(
    ctx: BrowserContext,
    asking: AskingWho,
    found: SignedIn,
    { stays, wrong, ...typed }: Typed,
  ): Promise<SignInPage | null> {
    switch (found.kind) {
      case 'signed-in':
        await this.#devices.remember(ctx, found.userId, found.atMs)
        return gone(asking.signedIn(found.userId, { atMs: found.atMs, stays }))
      case 'throttled': {
        const { retryAfterS } = found
        return this.#ask(ctx, asking, { ...typed, problem: tooMany(retryAfterS), status: 429, retryAfterS })
      }
      case 'refused':
        return this.#ask(ctx, asking, { ...typed, problem: wrong, status: 403 })
    }
  }

  async #ask(
    ctx: BrowserContext,
    asking: AskingWho,
    form: Omit<SignInForm, 'passkey' | 'outside'>,
  ): Promise<SignInPage> {
    const passkey = this.#passkeys.isOffered ? await this.#passkeys.beginUsing(form.token) : null
    const page = signInPage(asking, { ...form, passkey, outside: this.#outside?.offer(ctx) ?? null })
    return passkey === null ? page : { ...page, script: `${this.#pages.publicUrl}${PASSKEY_SCRIPT_PATH}` }
  }
}

export interface DeskParts {
  readonly pages: FormPages
  readonly signIn: SignIn
  readonly passkeys: Passkeys
  readonly outside: OutsideSignIn | null
  readonly devices: KnownDevices
}

interface Typed {
  readonly token: string
  readonly email: string
  readonly stays: boolean
  /** The message for a refused attempt. */
  readonly wrong: string
}

/** The message for a throttled attempt. */
export function tooMany(retryAfterS: number): string {
  return `Too many attempts. Try again in ${Math.ceil(retryAfterS / 60)} min.`
}

const WRONG = 'Wrong email address, password or code.'
const WRONG_PASSKEY =
  'The passkey was not accepted, or it took too long. Try again, or sign in with your password.'

import type { BrowserContext } from '../oauth/people.ts'
import { type FormPages, fromOf, gone } from './form-pages.ts'
import type { Page } from './page.ts'
import type { SignIn } from './sign-in.ts'
import { type AskingWho, signInPage } from './sign-in-pages.ts'

/** Asks people who they are, whatever it is for. */
export class SignInDesk {
  readonly #pages: FormPages
  readonly #signIn: SignIn

  constructor(pages: FormPages, signIn: SignIn) {
    this.#pages = pages
    this.#signIn = signIn
  }

  async page(ctx: BrowserContext, asking: AskingWho, form: URLSearchParams | null): Promise<Page | null> {
    const token = this.#pages.tokenFor(ctx, asking.purpose)
    const action = form?.get('action')
    if (action === 'deny' && asking.denied !== undefined) return gone(asking.denied())
    if (form === null || action !== 'sign-in')
      return signInPage(asking, { token, email: asking.email ?? '', problem: null })
    const [email, password, code] = ['email', 'password', 'code'].map((name) => form.get(name) ?? '')
    const attempt = { email: email!, password: password!, code: code!, ...fromOf(ctx) }
    const found = await this.#signIn.attempt(attempt)
    const typed = { token, email: email!.slice(0, EMAIL_LENGTH_MAX) }
    switch (found.kind) {
      case 'signed-in':
        return gone(asking.signedIn(found.userId, { atMs: found.atMs, stays: form.get('stay') === 'yes' }))
      case 'throttled': {
        const { retryAfterS } = found
        return signInPage(asking, { ...typed, problem: tooMany(retryAfterS), status: 429, retryAfterS })
      }
      case 'refused':
        return signInPage(asking, { ...typed, problem: WRONG, status: 403 })
    }
  }
}

/** To who has tried too often. */
export function tooMany(retryAfterS: number): string {
  return `There were too many attempts. Try again in ${Math.ceil(retryAfterS / 60)} min.`
}

const EMAIL_LENGTH_MAX = 320
const WRONG = 'That is not right. Check the address, the password and, if you use one, the code.'

import { Fault } from '../../../fault.ts'
import { changed } from '../../audit.ts'
import { Refusal } from '../../refusal.ts'
import { scopesWithin } from '../oauth/clients.ts'
import type { BrowserContext, BrowserSession, Interaction, People, Person } from '../oauth/people.ts'
import { OPENID_CALLBACK } from '../oauth/routes.ts'
import { planFor, type Scope } from '../principal.ts'
import type { OpenidProvider } from './openid-provider.ts'
import { OutsideSignIn } from './outside-sign-in.ts'
import { FormTokens, readForm } from './form.ts'
import { scopesOf } from './make-user.ts'
import { messagePage, type Page, sendPage } from './page.ts'
import { isBusy, SignIn, type SignInParts } from './sign-in.ts'
import { consentPage, signInPage, signOutPage } from './sign-in-pages.ts'

export interface PeopleParts extends SignInParts {
  readonly publicUrl: string
  /** Where else people may say who they are; `null`: nowhere. */
  readonly elsewhere: OpenidProvider | null
}

/** Those who are in the database, and the pages they sign in and consent on. */
export class PeoplePages implements People {
  readonly #parts: PeopleParts
  readonly #signIn: SignIn
  readonly #tokens: FormTokens
  readonly #outside: OutsideSignIn | null

  constructor(parts: PeopleParts) {
    this.#parts = parts
    this.#signIn = new SignIn(parts)
    this.#tokens = new FormTokens(parts.publicUrl)
    this.#outside = parts.elsewhere === null ? null : new OutsideSignIn(parts.elsewhere, parts)
  }

  async find(id: string): Promise<Person | null> {
    const user = await this.#parts.store.users.byId(id)
    if (user === null) return null
    const scopes = scopesOf(user)
    const { email: name, signedInSinceMs } = user
    return { id, name, scopes: new Set(scopes), plan: planFor(scopes), signedInSinceMs }
  }

  isAnybody(): Promise<boolean> {
    return this.#parts.store.users.isAnybody()
  }

  interact(ctx: BrowserContext, interaction: Interaction): Promise<void> {
    return this.#answer(ctx, interaction.uid, (form) =>
      interaction.asks === 'login'
        ? this.#login(ctx, interaction, form)
        : this.#consent(ctx, interaction, form),
    )
  }

  signOut(ctx: BrowserContext, session: BrowserSession): Promise<void> {
    return this.#answer(ctx, SIGN_OUT, async (form) => {
      if (form?.get('action') === 'sign-out') {
        await session.end()
        return signOutPage('', null)
      }
      const person = session.personId === null ? null : await this.find(session.personId)
      return signOutPage(this.#tokens.tokenFor(ctx, SIGN_OUT), person?.name ?? null)
    })
  }

  cameBack(ctx: BrowserContext): Promise<void> {
    return this.#answer(ctx, OPENID_CALLBACK, async () =>
      (await this.#outside?.cameBack(ctx)) === true ? null : NOT_BEGUN,
    )
  }

  refused(ctx: BrowserContext, status: number, text: string): void {
    sendPage(ctx, this.#parts.publicUrl, messagePage('This cannot go on', sentence(text), status))
  }

  /** `work` gets what was sent, or `null` where it is only looked at, and gives the page that comes of it, if one does. */
  async #answer(
    ctx: BrowserContext,
    purpose: string,
    work: (form: URLSearchParams | null) => Promise<Page | null>,
  ): Promise<void> {
    const { publicUrl } = this.#parts
    const page = await this.#page(ctx, purpose, work).catch(pageAt)
    if (page !== null) sendPage(ctx, publicUrl, page)
  }

  async #page(
    ctx: BrowserContext,
    purpose: string,
    work: (form: URLSearchParams | null) => Promise<Page | null>,
  ): Promise<Page | null> {
    if (!isPrivate(this.#parts.publicUrl)) return UNSAFE
    if (ctx.method !== 'POST') return work(null)
    const form = await readForm(ctx)
    return this.#tokens.isGood(ctx, purpose, form) ? work(form) : FOREIGN
  }

  async #login(
    ctx: BrowserContext,
    interaction: Interaction,
    form: URLSearchParams | null,
  ): Promise<Page | null> {
    if (form === null && (await this.#outside?.answer(ctx, interaction)) === true) return null
    const outside = this.#outside?.offer(ctx) ?? null
    const token = this.#tokens.tokenFor(ctx, interaction.uid)
    const action = form?.get('action')
    if (form === null || (action !== 'sign-in' && action !== 'deny'))
      return signInPage(interaction, { token, email: '', problem: null, outside })
    if (action === 'deny') return gone(interaction.denied())
    const [email, password, code] = ['email', 'password', 'code'].map((name) => form.get(name) ?? '')
    const found = await this.#signIn.attempt({
      ...{ email: email!, password: password!, code: code! },
      ...{ address: ctx.req.socket.remoteAddress ?? '', requestId: ctx.state.requestId },
    })
    const typed = { token, email: email!.slice(0, EMAIL_LENGTH_MAX), outside }
    switch (found.kind) {
      case 'signed-in':
        return gone(
          interaction.signedIn(found.userId, { atMs: found.atMs, stays: form.get('stay') === 'yes' }),
        )
      case 'throttled': {
        const { retryAfterS } = found
        const problem = `There were too many attempts. Try again in ${Math.ceil(retryAfterS / 60)} min.`
        return signInPage(interaction, { ...typed, problem, status: 429, retryAfterS })
      }
      case 'refused':
        return signInPage(interaction, { ...typed, problem: WRONG, status: 403 })
    }
  }

  async #consent(
    ctx: BrowserContext,
    interaction: Interaction,
    form: URLSearchParams | null,
  ): Promise<Page | null> {
    const { personId, uid, scopes: asked } = interaction
    const person = personId === null ? null : await this.find(personId)
    if (person === null) return GONE
    const action = form?.get('action')
    if (action === 'deny') return gone(interaction.denied())
    const own = scopesWithin([...person.scopes])
    const scopes = asked.filter((scope) => own.includes(scope))
    const chosen = action === 'allow' ? scopes.filter((scope) => form!.getAll('scope').includes(scope)) : []
    if (chosen.length > 0) {
      await this.#tell(ctx, person, interaction, chosen)
      return gone(interaction.consented(chosen))
    }
    return consentPage(interaction, {
      token: this.#tokens.tokenFor(ctx, uid),
      ...{ name: person.name, scopes },
      problem: action === 'allow' ? 'Choose what it may do, or deny.' : null,
      signOutUrl: `${this.#parts.publicUrl}${SIGN_OUT}`,
    })
  }

  /** Of what was asked for, what is allowed whom by whom. */
  async #tell(
    ctx: BrowserContext,
    { id }: Person,
    { client, isOffline }: Interaction,
    scopes: readonly Scope[],
  ): Promise<void> {
    const { store, nowMs } = this.#parts
    const actor = { id, address: ctx.req.socket.remoteAddress ?? '', requestId: ctx.state.requestId }
    const change = { action: 'allowClient', subject: client.id, detail: { scopes, isOffline } }
    await changed(store, actor, change, nowMs(), async () => undefined)
  }
}

/** The browser is led on: there is no page. */
async function gone(leaving: Promise<void>): Promise<null> {
  await leaving
  return null
}

/** For what a person can do something about; what else is thrown is for others. */
function pageAt(error: unknown): Page {
  if (error instanceof Refusal) return messagePage('This cannot go on', sentence(error.message), error.status)
  if (isBusy(error)) return { ...LATER, retryAfterS: BUSY_S }
  if (error instanceof Fault && error.code.startsWith('STORE_')) return { ...LATER, retryAfterS: BUSY_S }
  throw error
}

/** Whether nobody reads a password on its way here. */
function isPrivate(publicUrl: string): boolean {
  const { protocol, hostname } = new URL(publicUrl)
  return protocol === 'https:' || /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname)
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

export const SIGN_OUT = '/oauth/sign-out'
const EMAIL_LENGTH_MAX = 320
const BUSY_S = 5
const WRONG = 'That is not right. Check the address, the password and, if you use one, the code.'
const UNSAFE = messagePage(
  'No sign-in here',
  'Passwords are not taken over plain http. Whoever runs this sets manage.public_url to the https address of it.',
  403,
)
const FOREIGN = messagePage(
  'Nothing was done',
  'This did not come from the page that was shown in this browser, or that has stopped keeping cookies. Go back, load the page again and try once more.',
  403,
)
const GONE = messagePage('Nobody is signed in', 'Go back to where you came from, and begin again.', 403)
const NOT_BEGUN = messagePage(
  'This did not begin here',
  'No sign-in of this gateway leads here. Go back to where you came from, and begin again.',
  400,
)
const LATER = messagePage('Not now', 'This cannot be answered now. Load the page again in some seconds.', 503)

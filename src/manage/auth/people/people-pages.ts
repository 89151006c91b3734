import { appListOf, appScopeOf } from '../../../apps/app-scope.ts'
import { changed } from '../../http/audit.ts'
import { scopesWithin } from '../oauth/clients.ts'
import type {
  AskedAccess,
  BrowserContext,
  BrowserSession,
  GivenAccess,
  Interaction,
  People,
  Person,
} from '../oauth/people.ts'
import { OPENID_CALLBACK } from '../oauth/routes.ts'
import { planFor, type Scope } from '../../http/access/principal.ts'
import { AccountPages } from './account-pages.ts'
import { DecisionPages } from './decision-pages.ts'
import { FormPages, fromOf, gone } from './form-pages.ts'
import { scopesOf } from './make-user.ts'
import type { OpenidProvider } from './openid-provider.ts'
import { OutsideSignIn } from './outside-sign-in.ts'
import { KnownDevices } from './known-devices.ts'
import { messagePage, type SignInPage } from './page.ts'
import { Passkeys } from './passkeys.ts'
import { SignIn, type SignInParts } from './sign-in.ts'
import { SignInDesk } from './sign-in-desk.ts'
import { consentPage, signOutPage, wantsAccess } from './sign-in-pages.ts'

interface PeopleParts extends SignInParts {
  readonly publicUrl: string
  /** The external OpenID provider. `null`: none. */
  readonly elsewhere: OpenidProvider | null
}

/** The accounts in the database, and their pages to sign in and consent. */
export class PeoplePages implements People {
  readonly #parts: PeopleParts
  readonly #pages: FormPages
  readonly #desk: SignInDesk
  readonly #account: AccountPages
  readonly #decisions: DecisionPages
  readonly #outside: OutsideSignIn | null

  constructor(parts: PeopleParts) {
    const signIn = new SignIn(parts)
    this.#parts = parts
    this.#pages = new FormPages(parts.publicUrl)
    const passkeys = new Passkeys(parts)
    this.#outside = parts.elsewhere === null ? null : new OutsideSignIn(parts.elsewhere, parts)
    const devices = new KnownDevices(parts)
    const people = { pages: this.#pages, signIn, passkeys, outside: this.#outside, devices }
    this.#desk = new SignInDesk(people)
    this.#account = new AccountPages(parts, people, this.#desk)
    this.#decisions = new DecisionPages(this, this.#pages, this.#desk)
  }

  async find(id: string): Promise<Person | null> {
    const user = await this.#parts.store.users.byId(id)
    if (user === null || user.isDisabled) return null
    const scopes = scopesOf(user)
    const { email: name, signedInSinceMs } = user
    const access = { scopes: new Set(scopes), apps: appScopeOf(user.apps), plan: planFor(scopes) }
    return { id, name, ...access, signedInSinceMs }
  }

  isAnybody(): Promise<boolean> {
    return this.#parts.store.users.isAnybody()
  }

  interact(ctx: BrowserContext, interaction: Interaction): Promise<void> {
    return this.#pages.answer(ctx, interaction.uid, (form) =>
      interaction.asks === 'login'
        ? this.#login(ctx, interaction, form)
        : this.#consent(ctx, interaction, form),
    )
  }

  account(ctx: BrowserContext, session: BrowserSession, given: GivenAccess): Promise<void> {
    return this.#account.answer(ctx, session, given)
  }

  decide(ctx: BrowserContext, session: BrowserSession, asked: AskedAccess): Promise<void> {
    return this.#decisions.answer(ctx, session, asked)
  }

  signOut(ctx: BrowserContext, session: BrowserSession): Promise<void> {
    return this.#pages.answer(ctx, SIGN_OUT, async (form) => {
      if (form?.get('action') === 'sign-out') {
        await session.end()
        return signOutPage('', null)
      }
      const person = session.personId === null ? null : await this.find(session.personId)
      return signOutPage(this.#pages.tokenFor(ctx, SIGN_OUT), person?.name ?? null)
    })
  }

  cameBack(ctx: BrowserContext): Promise<void> {
    return this.#pages.answer(ctx, OPENID_CALLBACK, async () =>
      (await this.#outside?.cameBack(ctx)) === true ? null : NOT_BEGUN,
    )
  }

  refused(ctx: BrowserContext, status: number, text: string): void {
    this.#pages.refused(ctx, status, text)
  }

  #login(
    ctx: BrowserContext,
    interaction: Interaction,
    form: URLSearchParams | null,
  ): Promise<SignInPage | null> {
    const asking = {
      purpose: interaction.uid,
      isAnew: interaction.isAnew,
      words: wantsAccess(interaction.client),
      leadsTo: interaction.redirectUri,
      denied: () => interaction.denied(),
      signedIn: interaction.signedIn,
    }
    return this.#desk.page(ctx, asking, form)
  }

  async #consent(
    ctx: BrowserContext,
    interaction: Interaction,
    form: URLSearchParams | null,
  ): Promise<SignInPage | null> {
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
      token: this.#pages.tokenFor(ctx, uid),
      name: person.name,
      scopes,
      problem: action === 'allow' ? 'Choose at least one permission, or deny.' : null,
      signOutUrl: `${this.#parts.publicUrl}${SIGN_OUT}`,
    })
  }

  /** Writes the consent to the audit log. */
  async #tell(
    ctx: BrowserContext,
    { id, apps }: Person,
    { client, isOffline }: Interaction,
    scopes: readonly Scope[],
  ): Promise<void> {
    const { store, nowMs } = this.#parts
    const change = {
      action: 'allowClient',
      subject: client.id,
      apps: appListOf(apps),
      detail: { scopes, isOffline },
    }
    await changed(store, { id, ...fromOf(ctx) }, change, nowMs(), async () => undefined)
  }
}

export const SIGN_OUT = '/oauth/sign-out'
const GONE = messagePage('Not signed in', 'Go back to the program and start again.', 403)
const NOT_BEGUN = messagePage(
  'Unknown sign-in',
  'This address does not belong to a sign-in of this gateway. Go back and start again.',
  400,
)

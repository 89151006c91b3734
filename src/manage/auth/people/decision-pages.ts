import { type Html, html } from '../../http/front/html.ts'
import type { AskedAccess, BrowserContext, BrowserSession, People, Person } from '../oauth/people.ts'
import { isSignedIn } from '../oauth/people.ts'
import { scopesWithin } from '../oauth/clients.ts'
import type { Scope } from '../../http/access/principal.ts'
import { type FormPages, gone } from './form-pages.ts'
import { leadTo, type SignInPage } from './page.ts'
import type { SignInDesk } from './sign-in-desk.ts'
import { hidden, hostOf, plain, problemBox, WORDS } from './sign-in-pages.ts'

/** Where a signed-in person decides about a program with an unknown key (RFC 9635 §4.1.1). */
export class DecisionPages {
  readonly #people: Pick<People, 'find'>
  readonly #pages: FormPages
  readonly #desk: SignInDesk

  constructor(people: Pick<People, 'find'>, pages: FormPages, desk: SignInDesk) {
    this.#people = people
    this.#pages = pages
    this.#desk = desk
  }

  answer(ctx: BrowserContext, session: BrowserSession, asked: AskedAccess): Promise<void> {
    const purpose = `decide ${asked.id}`
    return this.#pages.answer(ctx, purpose, async (form) => {
      const person = session.personId === null ? null : await this.#people.find(session.personId)
      if (person !== null && isSignedIn(session.signedInAtMs, person))
        return this.#decide(ctx, { person, atMs: session.signedInAtMs, purpose }, asked, form)
      const asking = {
        purpose,
        words: html`A program that claims to be ${nameOf(asked)} requests access to your account.`,
        signedIn: async (...[id, how]: Parameters<BrowserSession['signIn']>) => {
          await session.signIn(id, how)
          leadTo(ctx, `${this.#pages.publicUrl}${ctx.url.split('?', 1)[0]}`)
        },
      }
      return this.#desk.page(ctx, asking, form)
    })
  }

  async #decide(
    ctx: BrowserContext,
    { person, atMs, purpose }: { person: Person; atMs: number; purpose: string },
    asked: AskedAccess,
    form: URLSearchParams | null,
  ): Promise<SignInPage | null> {
    const action = form?.get('action')
    if (action === 'deny') return gone(asked.deny(person, atMs))
    // As for clients that register themselves, a person cannot give `admin` on a page.
    const own = scopesWithin([...person.scopes])
    const scopes = asked.scopes.filter((scope) => scope !== 'admin' && own.includes(scope))
    const chosen = action === 'allow' ? scopes.filter((scope) => form!.getAll('scope').includes(scope)) : []
    if (chosen.length > 0) return gone(asked.approve(person, atMs, chosen))
    return decisionPage(asked, {
      token: this.#pages.tokenFor(ctx, purpose),
      name: person.name,
      scopes,
      problem: action === 'allow' ? 'Choose at least one permission, or deny.' : null,
    })
  }
}

interface DecisionForm {
  readonly token: string
  readonly name: string
  /** The requested scopes that this person can give. */
  readonly scopes: readonly Scope[]
  readonly problem: string | null
}

function decisionPage(asked: AskedAccess, { token, name, scopes, problem }: DecisionForm): SignInPage {
  const { uri, thumbprint, isBearer, finishUri } = asked
  const choices = scopes.map(
    (scope) =>
      html`<label class="choice"><input type="checkbox" name="scope" value="${scope}" checked> <span>${WORDS[scope]} <small><code>${scope}</code></small></span></label>`,
  )
  const others = asked.scopes.filter((scope) => !scopes.includes(scope))
  const content = html`<h1>Allow access?</h1>
<p>A program that claims to be ${nameOf(asked)} requests access to your account${uri === null ? '' : html`. Its claimed website is <code>${plain(uri)}</code>`}.</p>
<p class="problem"><b>Its key is unknown, and its name and website are not verified.</b> Allow it only if you started this request yourself in that program.</p>
${problemBox(problem)}
<form method="post">
${hidden(token)}
${scopes.length === 0 ? '' : html`<fieldset><legend>It may</legend>${choices}</fieldset>`}
${others.length === 0 ? '' : html`<p>It also requests permissions that you cannot grant: ${others.map((scope) => html`<code>${scope}</code> `)}</p>`}
${isBearer ? html`<p>It requests a bearer token: <b>any client with the token can use it</b>.</p>` : ''}
${scopes.length > 0 ? html`<p>It keeps access for a day, <b>also while you are away</b>. You (at <code>/account</code>) or an administrator can revoke it.</p>` : ''}
<p class="buttons">${scopes.length === 0 ? '' : html`<button name="action" value="allow">Allow</button> `}<button name="action" value="deny">Deny</button></p>
</form>
<p><small>Key: <code>${thumbprint}</code></small></p>
<p><small>You are signed in as <bdi>${plain(name)}</bdi>.${finishUri === null ? '' : html` Both choices take you to <b>${hostOf(finishUri)}</b>.`}</small></p>`
  const leadsTo = finishUri === null ? {} : { leadsTo: finishUri }
  return { title: 'Allow access?', content, ...leadsTo, status: problem === null ? 200 : 400 }
}

function nameOf({ name }: AskedAccess): Html {
  return html`<b>“<bdi>${plain(name)}</bdi>”</b>`
}

import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import { ALL_APPS, appScopeOf, isWithin } from '../../../apps/app-scope.ts'
import { Fault } from '../../../shared/fault.ts'
import type { Log } from '../../../shared/log.ts'
import { digestOf } from '../../../store/engine/sealed.ts'
import type { Store } from '../../../store/store.ts'
import type { UserRecord } from '../../../store/people/users.ts'
import { type Actor, changed } from '../../http/audit.ts'
import type { Sealer } from '../sealer.ts'
import { type BrowserContext, type HowSignedIn, signedInFrom } from '../oauth/people.ts'
import { OPENID_CALLBACK } from '../oauth/routes.ts'
import { isFromHere } from './form.ts'
import { changeUser, makeUser, setOpenid } from './make-user.ts'
import { OpenidFault, type OpenidFlow, type OpenidPerson, type OpenidProvider } from './openid-provider.ts'
import type { RoleAccess } from './outside-roles.ts'
import { leadTo } from './page.ts'
import type { PasswordHasher } from './password-hash.ts'
import { SignInThrottle } from './sign-in-throttle.ts'

interface OutsideParts {
  readonly publicUrl: string
  readonly store: Store
  readonly sealer: Sealer
  readonly log: Log
  readonly passwords: PasswordHasher
  nowMs(): number
}

/** A sign-in requested by one of our pages. */
interface SignInRequest {
  /** Whether the person must authenticate again, even if the provider has a session. */
  readonly isAnew?: boolean
  signedIn(userId: string, how: HowSignedIn): Promise<void>
}

/** The link on our page to sign in elsewhere. */
export interface OutsideOffer {
  readonly name: string
  readonly url: string
  /** The result of the last attempt. */
  readonly problem: { readonly text: string; readonly status: number } | null
}

/**
 * Signs people in through an external OpenID provider. The flow begins on one of our pages and ends there.
 * Its state is in a sealed cookie for that page, so an abandoned sign-in leaves nothing on this server.
 */
export class OutsideSignIn {
  readonly #provider: OpenidProvider
  readonly #parts: OutsideParts
  readonly #throttle: SignInThrottle
  readonly #isHttps: boolean
  readonly #cookie: string
  #told = ''

  constructor(provider: OpenidProvider, parts: OutsideParts) {
    this.#provider = provider
    this.#parts = parts
    this.#throttle = new SignInThrottle(parts.store.rateLimits, parts.nowMs)
    this.#isHttps = parts.publicUrl.startsWith('https:')
    // The cookie has a path, so it cannot use `__Host-`.
    this.#cookie = `${this.#isHttps ? '__Secure-' : ''}gatehouse_openid`
  }

  /** Begins or completes an external sign-in on a page view. `false`: the request is neither. */
  async answer(ctx: BrowserContext, asked: SignInRequest): Promise<boolean> {
    const query = queryOf(ctx)
    if (query.has('state')) await this.#end(ctx, asked, query)
    else if (query.get(STEP) === BEGIN && isFromHere(ctx)) await this.#begin(ctx, asked)
    else return false
    return true
  }

  /** The link for this page. */
  offer(ctx: BrowserContext): OutsideOffer {
    const problem = PROBLEMS.get(queryOf(ctx).get(STEP) ?? '') ?? null
    return { name: this.#provider.name, url: `${this.#urlOf(pathOf(ctx))}?${STEP}=${BEGIN}`, problem }
  }

  /** Redirects a browser from the provider to the page where it began. `false`: the state is invalid. */
  async cameBack(ctx: BrowserContext): Promise<boolean> {
    const query = queryOf(ctx)
    const path = await this.#opened(query.get('state') ?? '', STATE)
    if (path === null) return false
    const kept = [...query].filter(([name]) => SENT_BACK.has(name))
    leadTo(ctx, `${this.#urlOf(path)}?${new URLSearchParams(kept)}`)
    return true
  }

  async #begin(ctx: BrowserContext, { isAnew = false }: SignInRequest): Promise<void> {
    const { sealer, nowMs } = this.#parts
    const path = pathOf(ctx)
    const state = await sealer.seal(path, STATE)
    const words = { state, nonce: newWord(), verifier: newWord() }
    const begun = { ...words, beganAtMs: nowMs(), isAnew }
    try {
      const url = await this.#provider.addressFor(flowOf(begun), this.#callback)
      const { nonce, verifier, beganAtMs } = begun
      const kept = JSON.stringify({ stateDigest: digestOfState(state), nonce, verifier, beganAtMs, isAnew })
      this.#setCookie(ctx, path, await sealer.seal(kept, sealedFor(path)), LASTS_S)
      leadTo(ctx, url.href)
    } catch (error) {
      if (!(error instanceof OpenidFault)) throw error
      this.#warn(error)
      this.#back(ctx, error.reason)
    }
  }

  async #end(ctx: BrowserContext, asked: SignInRequest, query: URLSearchParams): Promise<void> {
    const { store, nowMs } = this.#parts
    const atMs = nowMs()
    const begun = await this.#begun(ctx, query.getAll('state').join())
    this.#setCookie(ctx, pathOf(ctx), '', 0)
    if (begun === null) return this.#back(ctx, 'over')
    const { address } = ctx.state
    const may = await this.#throttle.beginOutside(address)
    if (may.kind === 'throttled') {
      if (may.isFirst) await this.#tell(ctx, 'throttleSignIn', null, {})
      return this.#back(ctx, 'throttled')
    }
    // Each state can be used once, also with a copied cookie.
    const endsAtMs = begun.beganAtMs + LASTS_S * 1000
    if (!(await store.replays.isFirst(`openid ${digestOfState(begun.state)}`, endsAtMs)))
      return this.#back(ctx, 'over')
    const found = await this.#find(ctx, query, begun)
    if ('refused' in found) {
      await this.#tell(ctx, 'failSignIn', null, { reason: found.refused, ...found.detail })
      return this.#back(ctx, found.shown)
    }
    this.#told = ''
    const { issuer } = this.#provider
    await this.#tell(ctx, 'signIn', found.user, { issuer })
    await this.#throttle.succeededOutside(address)
    // The session ends with the browser, no matter how long the provider's session lasts.
    const fromMs = found.sinceMs ?? signedInFrom(atMs, found.user)
    await asked.signedIn(found.user.id, { atMs: fromMs, stays: false })
  }

  async #find(ctx: BrowserContext, query: URLSearchParams, begun: BegunSignIn): Promise<FoundPerson> {
    const cameBack = new URL(this.#callback)
    cameBack.search = query.toString()
    try {
      const person = await this.#provider.personOf(cameBack, flowOf(begun))
      const { issuer, subject } = person
      const known = await this.#parts.store.users.byOpenid(person)
      const { roles } = this.#provider
      const access = roles === null ? 'unchanged' : await person.access(roles)
      const bound =
        known === null ? await this.#byEmail(ctx, person, access) : known.isDisabled ? 'disabled' : known
      const found = typeof bound === 'string' ? bound : await this.#withAccess(ctx, bound, access)
      if (typeof found !== 'string') return found
      return { refused: found, shown: 'unknown', detail: { issuer, subject } }
    } catch (error) {
      if (!(error instanceof OpenidFault)) throw error
      this.#warn(error)
      return { refused: error.reason, shown: error.reason, detail: { issuer: this.#provider.issuer } }
    }
  }

  /**
   * Binds the account with this verified address permanently, even if either address changes later. Otherwise
   * returns the reason.
   */
  async #byEmail(
    ctx: BrowserContext,
    person: OpenidPerson,
    access: AccessByRole,
  ): Promise<UserRecord | WhyNobody> {
    if (access === null) return 'no-role'
    const { store, nowMs } = this.#parts
    const email = await person.verifiedEmail()
    if (email === null) return 'unverified'
    const known = await store.users.byEmail(email)
    const user = known ?? (await this.#made(ctx, email, access))
    if (user === null) return 'unknown'
    if (user.isDisabled) return 'disabled'
    if (user.openid !== null) return 'another'
    const { issuer, subject } = person
    const actor = actorOf(ctx, user.id)
    return (await setOpenid(store, user, { issuer, subject }, actor, nowMs())) ? user : 'another'
  }

  /** Creates an account for a person with a role. `null`: no account. */
  async #made(ctx: BrowserContext, email: string, access: AccessByRole): Promise<UserRecord | null> {
    if (access === 'unchanged' || access === null) return null
    const { store, passwords, nowMs } = this.#parts
    const wanted = { email, password: null, ...access }
    return makeUser(store, passwords, wanted, actorOf(ctx, OURSELVES), nowMs())
  }

  /**
   * Gives the account what the provider's roles give the person now. Without a role: nothing. An administrator of some
   * apps may have set the password of an account that gets access to more, so it can then be used only through the
   * provider.
   */
  async #withAccess(
    ctx: BrowserContext,
    user: UserRecord,
    access: AccessByRole,
  ): Promise<SignedInPerson | WhyNobody> {
    if (access === 'unchanged' || isSame(user, access)) return { user, sinceMs: null }
    const given = access ?? NO_ACCESS
    const { store, passwords, nowMs } = this.#parts
    const isMore = access !== null && !isWithin(given.apps, appScopeOf(user.apps))
    const without = { withoutPassword: true, withoutCodes: true, withoutPasskeys: true }
    const changes = isMore ? { ...given, ...without } : given
    const atMs = nowMs()
    if (!(await changeUser({ store, hasher: passwords }, user, changes, actorOf(ctx, OURSELVES), atMs)))
      return 'unknown'
    if (access === null) return 'no-role'
    return { user, sinceMs: isMore ? signedInFrom(atMs, { signedInSinceMs: atMs }) : null }
  }

  /** The sign-in that this browser began on this page with this state, if it has not expired. */
  async #begun(ctx: BrowserContext, state: string): Promise<BegunSignIn | null> {
    const text = ctx.cookies.get(this.#cookie, { signed: false }) ?? ''
    const opened = await this.#opened(text, sealedFor(pathOf(ctx)))
    if (opened === null) return null
    const { stateDigest, ...begun } = begunSchema.parse(JSON.parse(opened))
    const ageMs = this.#parts.nowMs() - begun.beganAtMs
    if (stateDigest !== digestOfState(state) || ageMs >= LASTS_S * 1000) return null
    return { ...begun, state }
  }

  /** `null`: not sealed here, or for another purpose. */
  async #opened(text: string, what: string): Promise<string | null> {
    if (text === '' || text.length > SEALED_LENGTH_MAX) return null
    try {
      return (await this.#parts.sealer.open(text, what)).reveal()
    } catch (error) {
      if (error instanceof Fault && error.code.startsWith('SEAL_')) return null
      throw error
    }
  }

  get #callback(): string {
    return this.#urlOf(OPENID_CALLBACK)
  }

  #urlOf(path: string): string {
    return `${this.#parts.publicUrl}${path}`
  }

  /** Redirects to the page without its query. */
  #back(ctx: BrowserContext, problem: Problem): void {
    leadTo(ctx, `${this.#urlOf(pathOf(ctx))}?${STEP}=${problem}`)
  }

  #setCookie(ctx: BrowserContext, path: string, value: string, lastsS: number): void {
    const { pathname } = new URL(this.#urlOf(path))
    const attributes = `Path=${pathname}; Max-Age=${lastsS}; HttpOnly; SameSite=Lax`
    ctx.append('Set-Cookie', `${this.#cookie}=${value}; ${attributes}${this.#isHttps ? '; Secure' : ''}`)
  }

  /** Logs a repeated message once, until a sign-in succeeds. */
  #warn({ reason, message }: OpenidFault): void {
    if (reason === 'denied' || this.#told === message) return
    this.#told = message
    this.#parts.log.warn('sign-in through the OpenID provider failed', {
      issuer: this.#provider.issuer,
      reason: message,
    })
  }

  async #tell(
    ctx: BrowserContext,
    action: string,
    user: UserRecord | null,
    detail: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const { store, nowMs } = this.#parts
    const change = { action, subject: user?.id ?? null, apps: user?.apps ?? ALL_APPS, detail }
    await changed(store, actorOf(ctx, user?.id ?? 'anonymous'), change, nowMs(), async () => undefined)
  }
}

type BegunSignIn = Omit<z.infer<typeof begunSchema>, 'stateDigest'> & { readonly state: string }
/** `sinceMs`: when the session starts, if all earlier ones were ended just now. */
interface SignedInPerson {
  readonly user: UserRecord
  readonly sinceMs: number | null
}
type FoundPerson =
  | SignedInPerson
  | {
      readonly refused: string
      readonly shown: Problem
      readonly detail: Readonly<Record<string, string>>
    }
/** `another`: the account with this address is bound to another person at the provider. */
type WhyNobody = 'unverified' | 'unknown' | 'disabled' | 'another' | 'no-role'
/** By the provider's roles. `null`: none. `unchanged`: administrators decide it here. */
type AccessByRole = RoleAccess | null | 'unchanged'
type Problem = 'denied' | 'away' | 'wrong' | 'over' | 'unknown' | 'throttled'

function isSame({ scopes, apps }: UserRecord, access: RoleAccess | null): boolean {
  return access !== null && isDeepStrictEqual({ scopes, apps }, { ...access })
}

function flowOf({ state, nonce, verifier, beganAtMs, isAnew }: BegunSignIn): OpenidFlow {
  return { state, nonce, verifier, freshSinceMs: isAnew ? beganAtMs : null }
}

function newWord(): string {
  return randomBytes(WORD_BYTES).toString('base64url')
}

function digestOfState(state: string): string {
  return digestOf('state of an outside sign-in', state)
}

/** The cookie of one page is invalid on another. */
function sealedFor(path: string): string {
  return `outside sign-in at ${path}`
}

function actorOf(ctx: BrowserContext, id: string): Actor {
  return { id, address: ctx.state.address, requestId: ctx.state.requestId }
}

function pathOf(ctx: BrowserContext): string {
  return ctx.url.split('?', 1)[0]!
}

function queryOf(ctx: BrowserContext): URLSearchParams {
  return new URLSearchParams(ctx.url.slice(pathOf(ctx).length))
}

const begunSchema = z.object({
  stateDigest: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  beganAtMs: z.number(),
  isAnew: z.boolean(),
})
/** The author of changes that no person made, in the audit log. */
const OURSELVES = 'gatehouse'
const NO_ACCESS: RoleAccess = { scopes: [], apps: [] }
const STEP = 'sign-in'
const BEGIN = 'elsewhere'
const STATE = 'page of an outside sign-in'
/** The parameters a provider sends back (RFC 6749 §4.1.2, RFC 9207), without the free text. */
const SENT_BACK: ReadonlySet<string> = new Set(['state', 'code', 'iss', 'error'])
const LASTS_S = 600
const WORD_BYTES = 32
const SEALED_LENGTH_MAX = 4_096
const PROBLEMS: ReadonlyMap<string, { readonly text: string; readonly status: number }> = new Map<
  Problem,
  { readonly text: string; readonly status: number }
>([
  ['denied', { text: 'You did not allow the sign-in.', status: 403 }],
  ['away', { text: 'It is not responding. Sign in here, or try again later.', status: 503 }],
  [
    'wrong',
    { text: 'It sent an invalid response. An administrator can find details in the log.', status: 502 },
  ],
  ['over', { text: 'That sign-in has expired or began in another browser. Start again.', status: 403 }],
  [
    'unknown',
    {
      text: 'No account here matches yours, or your email address is not verified there. Ask an administrator for access.',
      status: 403,
    },
  ],
  ['throttled', { text: 'Too many attempts. Try again in 10 min.', status: 429 }],
])

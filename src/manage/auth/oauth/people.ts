import type { AppScope } from '../../../apps/app-scope.ts'
import type Koa from 'koa'
import type { UserRecord } from '../../../store/people/users.ts'
import type { Plan, Scope } from '../../http/access/principal.ts'

/** A request for a page. */
export type BrowserContext = Koa.ParameterizedContext<{
  requestId: string
  address: string
  isSecret?: boolean
}>

/** A person with an account, who can sign in and consent. */
export interface Person {
  /** `usr_…`. */
  readonly id: string
  readonly name: string
  /** The upper limit for the scopes of any client that acts for them. */
  readonly scopes: ReadonlySet<Scope>
  /** The same for apps. */
  readonly apps: AppScope
  readonly plan: Plan
  /** Sign-ins before this time are no longer valid. */
  readonly signedInSinceMs: number
}

/** The accounts, and the pages to sign in and consent. */
export interface People {
  /**
   * `null`: deleted, or may no longer sign in. Called up to twice a second for each of the person's tokens;
   * must not cache for longer than that.
   */
  find(id: string): Promise<Person | null>
  /** Whether any account exists that could consent. */
  isAnybody(): Promise<boolean>
  /**
   * Answers a request to `/oauth/interaction/{uid}`; at the end calls one of the three callbacks of
   * `Interaction`.
   */
  interact(ctx: BrowserContext, interaction: Interaction): Promise<void>
  /** Answers a request to `/account` or a page below it. */
  account(ctx: BrowserContext, session: BrowserSession, given: GivenAccess): Promise<void>
  /** Answers the page on which a person decides about a program; at the end calls `approve` or `deny`. */
  decide(ctx: BrowserContext, session: BrowserSession, asked: AskedAccess): Promise<void>
  /** Answers a request to `/oauth/sign-out`. */
  signOut(ctx: BrowserContext, session: BrowserSession): Promise<void>
  /** Answers `/oauth/openid/callback`, to which an external OpenID provider redirects browsers. */
  cameBack(ctx: BrowserContext): Promise<void>
  /** Shows an error page. */
  refused(ctx: BrowserContext, status: number, text: string): void
}

/** The session of this browser. */
export interface BrowserSession {
  /** `null`: signed out. */
  readonly personId: string | null
  /** The time of the sign-in, in whole seconds. */
  readonly signedInAtMs: number
  /** Starts a new session; nothing of an earlier session passes to it. */
  signIn(personId: string, how: HowSignedIn): Promise<void>
  end(): Promise<void>
}

/** Whether a sign-in at `atMs` is still valid, and with it the approvals given since. */
export function isSignedIn(atMs: number, { signedInSinceMs }: Pick<Person, 'signedInSinceMs'>): boolean {
  // Sessions store whole seconds.
  return Math.floor(atMs / 1000) >= Math.ceil(signedInSinceMs / 1000)
}

/** Whether a sign-in at this moment was ended by a change of password or by signing out everywhere. */
export function signedInBefore(atMs: number, { signedInSinceMs }: Pick<Person, 'signedInSinceMs'>): boolean {
  return atMs < signedInSinceMs
}

/**
 * The start time of a session for a sign-in at `atMs`. Sessions store whole seconds: without rounding up, a
 * sign-in in the same second that ended all other sessions would end too.
 */
export function signedInFrom(atMs: number, { signedInSinceMs }: Pick<Person, 'signedInSinceMs'>): number {
  const firstMs = Math.ceil(signedInSinceMs / 1000) * 1000
  return firstMs - atMs <= 1000 ? Math.max(atMs, firstMs) : atMs
}

/** The access that people have given to programs. */
export interface GivenAccess {
  of(personId: string): Promise<readonly ProgramAccess[]>
  /** `false`: this person has given no access to this id. */
  takeBack(person: Pick<UserRecord, 'id' | 'apps'>, id: string, from: From): Promise<boolean>
}

/** A program that acts for a person. */
export interface ProgramAccess {
  /** The program's id. */
  readonly id: string
  readonly name: string
  /** How the program identifies itself. */
  readonly how: 'client' | 'document' | 'key'
  readonly scopes: readonly string[]
  /** Whether it has access while the person is away. */
  readonly isOffline: boolean
  readonly untilMs: number
}

/** The origin of a request, for the audit log. */
export interface From {
  readonly address: string
  readonly requestId: string
}

/** An unknown program that waits for a decision. Both callbacks redirect the browser. */
export interface AskedAccess {
  readonly id: string
  /** The name the program gives itself. Unverified. */
  readonly name: string
  readonly uri: string | null
  readonly thumbprint: string
  readonly scopes: readonly Scope[]
  /** Whether its tokens work without a key. */
  readonly isBearer: boolean
  /** Where the browser goes afterwards. `null`: nowhere. */
  readonly finishUri: string | null
  /** `atMs`: when the person signed in. */
  approve(person: Person, atMs: number, scopes: readonly Scope[]): Promise<void>
  deny(person: Person, atMs: number): Promise<void>
}

/** How a person has signed in. */
export interface HowSignedIn {
  /** When the credential was looked up. */
  readonly atMs: number
  /** Whether the session survives closing the browser. */
  readonly stays: boolean
}

/** A login or consent that a client waits for. All three callbacks redirect the browser. */
export interface Interaction {
  /** In the path and in a cookie of this browser. */
  readonly uid: string
  /** Sign in, or consent to the access. */
  readonly asks: 'login' | 'consent'
  /** Whether the client wants a new sign-in, even if the person is signed in. */
  readonly isAnew: boolean
  /** `isRegistered`: it registered itself, and no administrator has checked its name. */
  readonly client: { readonly id: string; readonly name: string; readonly isRegistered: boolean }
  /** Where the authorization response goes. */
  readonly redirectUri: string
  /** The scopes the client requests and may have. Scopes that the person lacks are dropped at consent. */
  readonly scopes: readonly Scope[]
  /** Whether the client wants access while the person is away. */
  readonly isOffline: boolean
  /** The person already signed in in this browser. */
  readonly personId: string | null
  signedIn(personId: string, how: HowSignedIn): Promise<void>
  /** To these of the requested scopes, as far as the person has them. */
  consented(scopes: readonly Scope[]): Promise<void>
  denied(): Promise<void>
}

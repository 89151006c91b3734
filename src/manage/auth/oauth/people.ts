import type Koa from 'koa'
import type { Plan, Scope } from '../../http/access/principal.ts'

/** A request for a page. */
export type BrowserContext = Koa.ParameterizedContext<{
  requestId: string
  address: string
  isSecret?: boolean
}>

/** Somebody who signs in and consents. */
export interface Person {
  /** `usr_…`. */
  readonly id: string
  readonly name: string
  /** No client gets more than these from them. */
  readonly scopes: ReadonlySet<Scope>
  readonly plan: Plan
  /** In a browser in which they signed in before, they are not signed in any more. */
  readonly signedInSinceMs: number
}

/** The people there are, and the pages on which they sign in and consent. */
export interface People {
  /**
   * `null`: gone, or may not sign in any more. It is asked for every token of theirs twice a second, and remembers for
   * no longer itself.
   */
  find(id: string): Promise<Person | null>
  /** Whether there is somebody who could be asked. */
  isAnybody(): Promise<boolean>
  /** Answers a request to `/oauth/interaction/{uid}`, and ends with one of the three things that can be done. */
  interact(ctx: BrowserContext, interaction: Interaction): Promise<void>
  /** Answers a request to `/account` or a page below it. */
  account(ctx: BrowserContext, session: BrowserSession, given: GivenAccess): Promise<void>
  /** Answers a request for the page on which somebody decides about a program; it ends with one of the two. */
  decide(ctx: BrowserContext, session: BrowserSession, asked: AskedAccess): Promise<void>
  /** Answers a request to `/oauth/sign-out`. */
  signOut(ctx: BrowserContext, session: BrowserSession): Promise<void>
  /** Answers a request to `/oauth/openid/callback`: of a browser that an OpenID provider elsewhere sends back. */
  cameBack(ctx: BrowserContext): Promise<void>
  /** Says in a browser why something cannot be done. */
  refused(ctx: BrowserContext, status: number, text: string): void
}

/** Who is signed in in this browser. */
export interface BrowserSession {
  /** `null`: nobody. */
  readonly personId: string | null
  /** When they have; a whole second. */
  readonly signedInAtMs: number
  /** In a new session: nothing of who was signed in before goes over. */
  signIn(personId: string, how: HowSignedIn): Promise<void>
  end(): Promise<void>
}

/** Whether who has signed in then is signed in still, and what they have let others do since is good. */
export function isSignedIn(atMs: number, { signedInSinceMs }: Pick<Person, 'signedInSinceMs'>): boolean {
  // Sessions know whole seconds.
  return Math.floor(atMs / 1000) >= Math.ceil(signedInSinceMs / 1000)
}

/** Whether a sign-in at this moment was ended by a change of password or by signing out everywhere. */
export function signedInBefore(atMs: number, { signedInSinceMs }: Pick<Person, 'signedInSinceMs'>): boolean {
  return atMs < signedInSinceMs
}

/**
 * From when somebody is signed in who has shown at `atMs` who they are, as they are known since. Sessions know whole
 * seconds: who signs in within the second that has ended all others would be signed out with those.
 */
export function signedInFrom(atMs: number, { signedInSinceMs }: Pick<Person, 'signedInSinceMs'>): number {
  const firstMs = Math.ceil(signedInSinceMs / 1000) * 1000
  return firstMs - atMs <= 1000 ? Math.max(atMs, firstMs) : atMs
}

/** What somebody has let programs do in their name. */
export interface GivenAccess {
  of(personId: string): Promise<readonly Given[]>
  /** `false`: there is none of this id. */
  takeBack(person: Pick<Person, 'id'>, id: string, from: From): Promise<boolean>
}

/** One program that goes on in somebody's name. */
export interface Given {
  /** Of the program. */
  readonly id: string
  readonly name: string
  /** How it shows who it is. */
  readonly how: 'client' | 'document' | 'key'
  readonly scopes: readonly string[]
  /** Also while nobody is there. */
  readonly isOffline: boolean
  readonly untilMs: number
}

/** Where a request has come from, for the audit log. */
export interface From {
  readonly address: string
  readonly requestId: string
}

/** A program that nobody knows, which waits until somebody has decided. Each of the two leads the browser on. */
export interface AskedAccess {
  readonly id: string
  /** What it says about itself. */
  readonly name: string
  readonly uri: string | null
  readonly thumbprint: string
  readonly scopes: readonly Scope[]
  /** Whether its tokens are good for whoever has them. */
  readonly isBearer: boolean
  /** Where the browser goes afterwards; `null`: nowhere. */
  readonly finishUri: string | null
  /** `atMs`: when they have signed in. */
  approve(person: Person, atMs: number, scopes: readonly Scope[]): Promise<void>
  deny(person: Person, atMs: number): Promise<void>
}

/** How somebody has signed in. */
export interface HowSignedIn {
  /** When what they proved it with was looked up. */
  readonly atMs: number
  /** Also when the browser was closed. */
  readonly stays: boolean
}

/** What a client waits for in somebody's browser. Each of the three leads that browser on. */
export interface Interaction {
  /** In the path, and in a cookie of this browser, or there would be no interaction. */
  readonly uid: string
  /** Who is it, or may it? */
  readonly asks: 'login' | 'consent'
  /** Whether the client wants them to say it anew, whoever knows them already. */
  readonly isAnew: boolean
  /** `isRegistered`: it came by itself, and nobody has looked at its name. */
  readonly client: { readonly id: string; readonly name: string; readonly isRegistered: boolean }
  /** Where the answer goes. */
  readonly redirectUri: string
  /** What the client asks for and may have. What the person does not have is left out when they consent. */
  readonly scopes: readonly Scope[]
  /** Whether it wants to go on while nobody is there. */
  readonly isOffline: boolean
  /** Who has signed in before in this browser. */
  readonly personId: string | null
  signedIn(personId: string, how: HowSignedIn): Promise<void>
  /** To these scopes of those asked for, as far as the person has them. */
  consented(scopes: readonly Scope[]): Promise<void>
  denied(): Promise<void>
}

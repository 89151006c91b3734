import { ALL_APPS } from '../../../apps/app-scope.ts'
import { Fault } from '../../../shared/fault.ts'
import type { Log } from '../../../shared/log.ts'
import type { Store } from '../../../store/store.ts'
import type { UserProofs, UserRecord } from '../../../store/people/users.ts'
import { type Actor, type Change, changed } from '../../http/audit.ts'
import type { Sealer } from '../sealer.ts'
import { type From, signedInFrom } from '../oauth/people.ts'
import { emailIn, sealedAs } from './make-user.ts'
import { hashOfRecoveryCode, stepOfCode } from './one-time-codes.ts'
import { isOutdated, type PasswordHasher } from './password-hash.ts'
import { SignInThrottle, type Throttled } from './sign-in-throttle.ts'

/** One sign-in attempt with a password. */
export interface Attempt extends From {
  readonly email: string
  readonly password: string
  /** A one-time code or a recovery code; empty if none. */
  readonly code: string
  /** The id of this browser (see known-devices.ts). `null`: the account has not signed in there before. */
  readonly device: string | null
}

export type SignedIn =
  /** `atMs`: when the attempt began. A password change after that ends this sign-in. */
  | { readonly kind: 'signed-in'; readonly userId: string; readonly atMs: number }
  /** Does not tell which part is wrong. */
  | { readonly kind: 'refused' }
  | SignInThrottled

/** Whether a signed-in person has confirmed their password. */
type Proven = { readonly kind: 'right' | 'refused' } | SignInThrottled

interface SignInThrottled {
  readonly kind: 'throttled'
  readonly retryAfterS: number
}

export interface SignInParts {
  readonly store: Store
  readonly sealer: Sealer
  readonly log: Log
  readonly passwords: PasswordHasher
  nowMs(): number
}

/** Signs people in by password. Neither the answer nor its timing reveals whether an account exists. */
export class SignIn {
  readonly #parts: SignInParts
  readonly #throttle: SignInThrottle

  constructor(parts: SignInParts) {
    this.#parts = parts
    this.#throttle = new SignInThrottle(parts.store.rateLimits, parts.nowMs)
  }

  /** Throws a Fault if the database cannot be used or too many attempts run at once. */
  async attempt(attempt: Attempt): Promise<SignedIn> {
    const { store, passwords, nowMs } = this.#parts
    const atMs = nowMs()
    const email = emailIn(attempt.email)
    const { address, device } = attempt
    const attempted = { account: email ?? 'none', address, device }
    const may = await this.#throttle.begin(attempted)
    if (may.kind === 'throttled') return this.#throttled(may, attempt)
    const user = email === null ? null : await store.users.byEmail(email)
    // A password that is too long takes the same time.
    const isRight = await passwords.isRight(cut(attempt.password), user?.password ?? null)
    if (user === null || user.isDisabled || !isRight || !(await this.#hasCode(user, attempt.code))) {
      if (may.isFirst) await tellOfSignIn(this.#parts, attempt, 'failSignIn', user)
      return { kind: 'refused' }
    }
    await tellOfSignIn(this.#parts, attempt, 'signIn', user)
    await this.#throttle.succeeded(attempted)
    await this.#rehash(user, attempt.password)
    return { kind: 'signed-in', userId: user.id, atMs: signedInFrom(atMs, user) }
  }

  /**
   * Confirms the password of a signed-in person, with limits like those for sign-in. Throws the same Faults.
   */
  async prove({ email }: UserRecord, password: string, from: From): Promise<Proven> {
    const { store, passwords } = this.#parts
    const may = await this.#throttle.beginConfirming(email, from.address)
    if (may.kind === 'throttled') return this.#throttled(may, from)
    const user = await store.users.byEmail(email)
    if (!(await passwords.isRight(cut(password), user?.password ?? null))) {
      if (may.isFirst) await tellOfSignIn(this.#parts, from, 'failSignIn', user)
      return { kind: 'refused' }
    }
    await this.#throttle.confirmed(email, from.address)
    return { kind: 'right' }
  }

  async #throttled({ retryAfterS, isFirst }: Throttled, from: From): Promise<SignInThrottled> {
    if (isFirst) await tellOfSignIn(this.#parts, from, 'throttleSignIn', null)
    return { kind: 'throttled', retryAfterS }
  }

  async #hasCode({ id, codes }: UserRecord & UserProofs, code: string): Promise<boolean> {
    if (codes === null) return true
    const { store, sealer, nowMs } = this.#parts
    const secret = await sealer.open(codes, sealedAs(id))
    const step = stepOfCode(code.replaceAll(/\s/g, ''), secret.reveal(), nowMs())
    if (step !== null) return store.users.useCode(id, step)
    const hash = hashOfRecoveryCode(code)
    return hash !== null && store.users.useRecoveryCode(id, hash)
  }

  /** If the parameters were raised, hashes the password again: it is available only now. */
  async #rehash({ id, password: stored }: UserProofs & UserRecord, password: string): Promise<void> {
    if (stored === null || !isOutdated(stored)) return
    const { store, passwords, log } = this.#parts
    try {
      await store.users.rehash(id, stored, await passwords.hash(password))
    } catch (error) {
      log.warn('could not rehash a password', { user: id, error: error as Error })
    }
  }
}

/** Never logs the typed text: people type passwords into the wrong field. */
export async function tellOfSignIn(
  { store, nowMs }: Pick<SignInParts, 'store' | 'nowMs'>,
  { address, requestId }: From,
  action: 'signIn' | 'failSignIn' | 'throttleSignIn' | 'suspectPasskey',
  user: UserRecord | null,
  detail: Change['detail'] = {},
): Promise<void> {
  const isIn = action === 'signIn'
  const actor: Actor = { id: isIn ? user!.id : 'anonymous', address, requestId }
  const change = { action, subject: user?.id ?? null, apps: user?.apps ?? ALL_APPS, detail }
  await changed(store, actor, change, nowMs(), async () => undefined)
}

/** Whether the error means too many concurrent attempts, not a failed one. */
export function isBusy(error: unknown): boolean {
  return error instanceof Fault && error.code === 'PASSWORDS_TOO_MANY'
}

function cut(password: string): string {
  return password.slice(0, PASSWORD_LENGTH_MAX)
}

/** Longer than any accepted password. */
const PASSWORD_LENGTH_MAX = 2_000

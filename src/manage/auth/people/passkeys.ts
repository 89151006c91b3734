import { randomBytes } from 'node:crypto'
import * as z from 'zod'
import { Fault } from '../../../shared/fault.ts'
import type { PasskeyRecord } from '../../../store/people/passkeys.ts'
import type { UserRecord } from '../../../store/people/users.ts'
import { type From, signedInFrom } from '../oauth/people.ts'
import { type SignedIn, type SignInParts, tellOfSignIn } from './sign-in.ts'
import { SignInThrottle } from './sign-in-throttle.ts'

export interface PasskeyParts extends SignInParts {
  readonly publicUrl: string
}

/** What a page has for the script on it, and brings back with what the authenticator says. */
export interface Ceremony {
  /** JSON: what the browser is asked. */
  readonly options: string
  /** The challenge, as only this server can read it. */
  readonly sealed: string
}

/** What came back from a page. */
export interface Performed {
  readonly sealed: string
  /** JSON, from a script: it may be anything. */
  readonly response: string
}

/**
 * Passkeys (WebAuthn Level 3): made and used for the host of `manage.public_url` only, and always with what unlocks the
 * authenticator, so that one is as good as a password and a code. A challenge is for one page in one browser, once.
 */
export class Passkeys {
  readonly #parts: PasskeyParts
  readonly #throttle: SignInThrottle
  readonly #origin: string
  readonly #host: string

  constructor(parts: PasskeyParts) {
    this.#parts = parts
    this.#throttle = new SignInThrottle(parts.store.rateLimits, parts.nowMs)
    const { origin, hostname } = new URL(parts.publicUrl)
    this.#origin = origin
    this.#host = hostname
  }

  /** A browser has none for an address in numbers, nor over plain http but to `localhost`. */
  get isOffered(): boolean {
    if (ADDRESS.test(this.#host)) return false
    return this.#origin.startsWith('https:') || this.#host === 'localhost'
  }

  /** To make one. `token`: of the form that brings it back. */
  beginMaking({ id, email }: UserRecord, known: readonly PasskeyRecord[], token: string): Promise<Ceremony> {
    return this.#begin('make', token, {
      rp: { id: this.#host, name: 'Gatehouse' },
      user: { id: handleOf(id), name: email, displayName: email },
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
      attestation: 'none',
      authenticatorSelection: {
        ...{ residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      },
      excludeCredentials: known.map((passkey) => ({ type: 'public-key', id: passkey.id })),
    })
  }

  /** To sign in with any. */
  beginUsing(token: string): Promise<Ceremony> {
    return this.#begin('use', token, { rpId: this.#host, userVerification: 'required' })
  }

  /** What was made; `null`: nothing that can be taken. */
  async made(
    { sealed, response }: Performed,
    token: string,
  ): Promise<Pick<PasskeyRecord, 'id' | 'publicKey' | 'counter'> | null> {
    const read = readJson(MADE, response)
    const challenge = await this.#challenge('make', token, sealed)
    if (read === null || challenge === null) return null
    const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
    if (!(await hasNoCertificate(read.response.attestationObject))) return null
    const found = await orNull(
      verifyRegistrationResponse({
        response: { ...read, clientExtensionResults: {} },
        ...this.#expected(challenge),
        supportedAlgorithmIDs: [...ALGORITHMS],
      }),
    )
    if (found === null || !found.verified) return null
    const { id, publicKey, counter } = found.registrationInfo.credential
    return { id, publicKey: Buffer.from(publicKey).toString('base64url'), counter }
  }

  /** A good passkey is taken whatever else is throttled. Throws a Fault if the database cannot be used. */
  async signIn({ sealed, response }: Performed, token: string, from: From): Promise<SignedIn> {
    const { store, nowMs } = this.#parts
    const atMs = nowMs()
    const passkey = await this.#used(sealed, response, token)
    const user = passkey === null ? null : await store.users.byId(passkey.userId)
    if (passkey === null || user === null || user.isDisabled) return this.#refused(from)
    if (!(await store.passkeys.use(passkey.id, passkey.counter, atMs))) {
      // It is right, and was further before: there are two of it.
      await tellOfSignIn(this.#parts, from, 'suspectPasskey', user, { passkey: passkey.id })
      return this.#refused(from)
    }
    await tellOfSignIn(this.#parts, from, 'signIn', user, { passkey: passkey.id })
    return { kind: 'signed-in', userId: user.id, atMs: signedInFrom(atMs, user) }
  }

  async #refused(from: From): Promise<SignedIn> {
    const may = await this.#throttle.failedPasskey(from.address)
    if (may.kind === 'may') return { kind: 'refused' }
    if (may.isFirst) await tellOfSignIn(this.#parts, from, 'throttleSignIn', null)
    return { kind: 'throttled', retryAfterS: may.retryAfterS }
  }

  /** With what it has counted up to now; `null`: not signed by one that is known. */
  async #used(sealed: string, response: string, token: string): Promise<PasskeyRecord | null> {
    const read = readJson(USED, response)
    const challenge = await this.#challenge('use', token, sealed)
    if (read === null || challenge === null) return null
    const passkey = await this.#parts.store.passkeys.byId(read.id)
    if (passkey === null || read.response.userHandle !== handleOf(passkey.userId)) return null
    const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
    const found = await orNull(
      verifyAuthenticationResponse({
        response: { ...read, clientExtensionResults: {} },
        ...this.#expected(challenge),
        // Whether it counts on is found out by the database, so that of two at once one is in.
        credential: { id: passkey.id, publicKey: Buffer.from(passkey.publicKey, 'base64url'), counter: 0 },
      }),
    )
    return found?.verified === true ? { ...passkey, counter: found.authenticationInfo.newCounter } : null
  }

  #expected(expectedChallenge: string) {
    const { origin: expectedOrigin, host: expectedRPID } = { origin: this.#origin, host: this.#host }
    return { expectedChallenge, expectedOrigin, expectedRPID, requireUserVerification: true }
  }

  async #begin(kind: Kind, token: string, options: object): Promise<Ceremony> {
    const challenge = randomBytes(CHALLENGE_BYTES).toString('base64url')
    const text = JSON.stringify({ challenge, expiresAtMs: this.#parts.nowMs() + LIFE_MS })
    return {
      options: JSON.stringify({ challenge, timeout: LIFE_MS, ...options }),
      sealed: await this.#parts.sealer.seal(text, sealedAs(kind, token)),
    }
  }

  /** Once; `null`: it was used before, is too old, or is of another page or browser. */
  async #challenge(kind: Kind, token: string, sealed: string): Promise<string | null> {
    const { store, sealer, nowMs } = this.#parts
    const opened = await sealer.open(sealed, sealedAs(kind, token)).catch((error: unknown) => {
      if (error instanceof Fault && FOREIGN.has(error.code)) return null
      throw error
    })
    if (opened === null) return null
    const { challenge, expiresAtMs } = JSON.parse(opened.reveal()) as {
      challenge: string
      expiresAtMs: number
    }
    if (expiresAtMs <= nowMs()) return null
    return (await store.replays.isFirst(`passkey ${challenge}`, expiresAtMs)) ? challenge : null
  }
}

type Kind = 'make' | 'use'

function sealedAs(kind: Kind, token: string): string {
  return `challenge to ${kind} a passkey ${token}`
}

/** What an authenticator knows somebody by. */
function handleOf(userId: string): string {
  return Buffer.from(userId).toString('base64url')
}

/** None is asked for; to check one, addresses in it would be fetched. */
async function hasNoCertificate(attestationObject: string): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  try {
    const decoded = decodeAttestationObject(Buffer.from(attestationObject, 'base64url'))
    const [format, statement] = [decoded.get('fmt'), decoded.get('attStmt')]
    return format === 'none' || (format === 'packed' && statement.get('x5c') === undefined)
  } catch {
    return false
  }
}

/** The library throws at what cannot be read, as at what is not right. */
async function orNull<Result>(result: Promise<Result>): Promise<Result | null> {
  try {
    return await result
  } catch {
    return null
  }
}

function readJson<Read extends z.ZodType>(schema: Read, text: string): z.output<Read> | null {
  try {
    return schema.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}

const bytes = (lengthMax: number) =>
  z
    .string()
    .min(1)
    .max(lengthMax)
    .regex(/^[\w-]+$/)
const credential = { id: bytes(1_400), rawId: bytes(1_400), type: z.literal('public-key') }
const MADE = z.object({
  ...credential,
  response: z.object({ clientDataJSON: bytes(8_192), attestationObject: bytes(16_384) }),
})
const USED = z.object({
  ...credential,
  response: z.object({
    ...{ clientDataJSON: bytes(8_192), authenticatorData: bytes(8_192), signature: bytes(4_096) },
    userHandle: bytes(128),
  }),
})
/** EdDSA, ES256, RS256: what there is. */
const ALGORITHMS = [-8, -7, -257] as const
const CHALLENGE_BYTES = 32
const LIFE_MS = 300_000
const FOREIGN: ReadonlySet<string> = new Set(['SEAL_BROKEN', 'SEAL_KEY_WRONG'])
/** Of IPv4, or of IPv6. */
const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[.*\])$/

import { randomBytes } from 'node:crypto'
import * as z from 'zod'
import { Fault } from '../../../shared/fault.ts'
import type { PasskeyRecord } from '../../../store/people/passkeys.ts'
import type { UserRecord } from '../../../store/people/users.ts'
import { type From, signedInFrom } from '../oauth/people.ts'
import { type SignedIn, type SignInParts, tellOfSignIn } from './sign-in.ts'
import { SignInThrottle } from './sign-in-throttle.ts'

interface PasskeyParts extends SignInParts {
  readonly publicUrl: string
}

/** The data for the script on a page; `sealed` comes back with the authenticator's response. */
export interface Ceremony {
  /** JSON: the options for the browser's WebAuthn call. */
  readonly options: string
  /** The challenge, sealed so that only this server can read it. */
  readonly sealed: string
}

/** The result that a page sends. */
interface Performed {
  readonly sealed: string
  /** JSON from a script; untrusted. */
  readonly response: string
}

/**
 * Passkeys (WebAuthn Level 3). They work only for the host of `manage.public_url` and always with user
 * verification, so that a passkey replaces password and code. A challenge is for one page in one browser,
 * once.
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

  /** Browsers refuse passkeys for IP addresses, and over plain http except for `localhost`. */
  get isOffered(): boolean {
    if (ADDRESS.test(this.#host)) return false
    return this.#origin.startsWith('https:') || this.#host === 'localhost'
  }

  /** Begins the creation of a passkey. `token`: of the form that sends the result. */
  beginMaking({ id, email }: UserRecord, known: readonly PasskeyRecord[], token: string): Promise<Ceremony> {
    return this.#begin('make', token, {
      rp: { id: this.#host, name: 'Gatehouse' },
      user: { id: handleOf(id), name: email, displayName: email },
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
      attestation: 'none',
      authenticatorSelection: {
        residentKey: 'required',
        requireResidentKey: true,
        userVerification: 'required',
      },
      excludeCredentials: known.map((passkey) => ({ type: 'public-key', id: passkey.id })),
    })
  }

  /** Begins a sign-in with any passkey. */
  beginUsing(token: string): Promise<Ceremony> {
    return this.#begin('use', token, { rpId: this.#host, userVerification: 'required' })
  }

  /** The new passkey. `null`: the response is not acceptable. */
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

  /** A valid passkey is never throttled. Throws a Fault if the database cannot be used. */
  async signIn({ sealed, response }: Performed, token: string, from: From): Promise<SignedIn> {
    const { store, nowMs } = this.#parts
    const atMs = nowMs()
    const passkey = await this.#used(sealed, response, token)
    const user = passkey === null ? null : await store.users.byId(passkey.userId)
    if (passkey === null || user === null || user.isDisabled) return this.#refused(from)
    if (!(await store.passkeys.use(passkey.id, passkey.counter, atMs))) {
      // A valid signature with an old counter: the passkey may have been cloned.
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

  /** The passkey with its new counter. `null`: not signed by a known passkey. */
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
        // The database compares the counter, so that only one of two concurrent uses succeeds.
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

  /** Each challenge works once. `null`: already used, expired, or from another page or browser. */
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

/** The WebAuthn user handle. */
function handleOf(userId: string): string {
  return Buffer.from(userId).toString('base64url')
}

/** Certificates are not requested, and checking one would fetch URLs in it. */
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

/** The library throws on malformed input as on a failed verification. */
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
    clientDataJSON: bytes(8_192),
    authenticatorData: bytes(8_192),
    signature: bytes(4_096),
    userHandle: bytes(128),
  }),
})
/** EdDSA, ES256 and RS256. */
const ALGORITHMS = [-8, -7, -257] as const
const CHALLENGE_BYTES = 32
const LIFE_MS = 300_000
const FOREIGN: ReadonlySet<string> = new Set(['SEAL_BROKEN', 'SEAL_KEY_WRONG'])
/** An IPv4 or IPv6 address. */
const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[.*\])$/

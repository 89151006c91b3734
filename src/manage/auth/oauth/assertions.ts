import { createLocalJWKSet, decodeJwt, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose'
import { DocumentUnusable } from '../../../identity/fetch/document-fetch.ts'
import { Fault } from '../../../shared/fault.ts'

/** Which assertions of the identity provider count. */
export interface AssertionSettings {
  /** The ids of the clients that may bring them. Empty: all. */
  readonly clients: readonly string[]
  readonly algorithms: readonly string[]
}

/** The identity provider that makes them. */
interface AssertionIssuer {
  readonly issuer: string
  /** Its key set is fetched like its metadata. Throws a DocumentUnusable. */
  keys(ageMaxMs?: number): Promise<JSONWebKeySet>
}

/** What an identity provider says: this client may act for this account of it. */
export interface Assertion {
  readonly issuer: string
  readonly subject: string
  readonly id: string
  readonly expiresAtMs: number
  /** The scopes it names. `null`: it names no scopes, so the client and the user set the limit. */
  readonly scopes: readonly string[] | null
  /** The URLs it is for. `null`: it names no URL, so it is for each protected resource of this server. */
  readonly resources: readonly string[] | null
}

/** An assertion that is not accepted. The message goes to the client. */
export class AssertionFault extends Fault {
  constructor(why: string, options?: ErrorOptions) {
    super('ASSERTION_REFUSED', why, options)
  }
}

/**
 * Checks identity assertion grants (ID-JAG, draft-ietf-oauth-identity-assertion-authz-grant): JWTs in which the trusted
 * identity provider lets a client act for one of its accounts.
 */
export class Assertions {
  readonly #settings: AssertionSettings
  readonly #issuer: AssertionIssuer
  readonly #publicUrl: string
  readonly #nowMs: () => number

  constructor(settings: AssertionSettings, issuer: AssertionIssuer, publicUrl: string, nowMs: () => number) {
    this.#settings = settings
    this.#issuer = issuer
    this.#publicUrl = publicUrl
    this.#nowMs = nowMs
  }

  /** `clientId`: the client that has authenticated. Throws an AssertionFault. */
  async read(text: string, clientId: string): Promise<Assertion> {
    if (issuerIn(text) !== this.#issuer.issuer)
      throw new AssertionFault('the issuer of the assertion is not trusted')
    const { clients } = this.#settings
    if (clients.length > 0 && !clients.includes(clientId))
      throw new AssertionFault('this client may not bring assertions')
    return assertionIn(await this.#verified(text), clientId, this.#publicUrl)
  }

  async #verified(text: string): Promise<JWTPayload> {
    try {
      return await this.#verifiedWith(await this.#issuer.keys(), text).catch(async (error) => {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        // The provider may have begun to sign with a new key.
        return this.#verifiedWith(await this.#issuer.keys(0), text)
      })
    } catch (error) {
      if (error instanceof DocumentUnusable)
        throw new AssertionFault('the keys of its issuer cannot be fetched, try again', { cause: error })
      if (error instanceof errors.JWTExpired) throw new AssertionFault('the assertion has expired')
      if (error instanceof errors.JWTClaimValidationFailed)
        throw new AssertionFault(`the claim ${error.claim} of the assertion is missing or wrong`)
      if (error instanceof errors.JOSEError || error instanceof TypeError)
        throw new AssertionFault('the assertion is not signed correctly by its issuer')
      throw error
    }
  }

  async #verifiedWith(keys: JSONWebKeySet, text: string): Promise<JWTPayload> {
    const { payload } = await jwtVerify(text, createLocalJWKSet(keys), {
      ...{ issuer: this.#issuer.issuer, audience: this.#publicUrl, typ: TYPE },
      algorithms: [...this.#settings.algorithms],
      requiredClaims: ['sub', 'jti', 'iat', 'exp', 'client_id'],
      clockTolerance: SKEW_S,
      currentDate: new Date(this.#nowMs()),
    })
    if (payload.iat! * 1000 > this.#nowMs() + SKEW_S * 1000)
      throw new AssertionFault('the assertion is from the future (iat)')
    return payload
  }
}

/** Not verified yet. */
function issuerIn(text: string): string {
  if (text.length > LENGTH_MAX) throw new AssertionFault('the assertion is too long')
  try {
    return String(decodeJwt(text).iss)
  } catch {
    throw new AssertionFault('the assertion is not a JWT')
  }
}

function assertionIn(claims: JWTPayload, clientId: string, publicUrl: string): Assertion {
  const { iss, sub, aud, jti, iat, exp, scope, resource } = claims
  if (claims['client_id'] !== clientId) throw new AssertionFault('the assertion is for another client')
  // One that is for others, too, could be used here by them.
  if ([aud].flat().length !== 1) throw new AssertionFault(`the audience must be ${publicUrl} alone`)
  if (typeof sub !== 'string' || sub === '' || sub.length > TEXT_MAX)
    throw new AssertionFault('the claim sub of the assertion is missing or wrong')
  if (typeof jti !== 'string' || jti === '' || jti.length > TEXT_MAX)
    throw new AssertionFault('the claim jti of the assertion is missing or wrong')
  if (exp! - iat! > LIFETIME_MAX_S)
    throw new AssertionFault(`the assertion is valid for more than ${LIFETIME_MAX_S} seconds`)
  if (claims['cnf'] !== undefined) throw new AssertionFault('assertions bound to a key are not supported')
  if (scope !== undefined && typeof scope !== 'string')
    throw new AssertionFault('the claim scope of the assertion is missing or wrong')
  const resources = resource === undefined ? null : [resource].flat()
  if (resources?.some((each) => typeof each !== 'string'))
    throw new AssertionFault('the claim resource of the assertion is missing or wrong')
  return {
    issuer: iss!,
    subject: sub,
    id: jti,
    expiresAtMs: (exp! + SKEW_S) * 1000,
    scopes: scope === undefined ? null : scope.split(' '),
    resources: resources as readonly string[] | null,
  }
}

/** Only public keys count: a secret would let each of its holders sign. */
export function parseKeys(value: unknown): JSONWebKeySet {
  const { keys } = Object(value) as { keys?: unknown }
  if (!Array.isArray(keys) || keys.length > KEYS_MAX)
    throw new Fault('KEYS_INVALID', `keys must be a list of at most ${KEYS_MAX} keys`)
  return { keys: keys.filter((key) => typeof key === 'object' && key !== null && PUBLIC.has(key.kty)) }
}

const PUBLIC: ReadonlySet<unknown> = new Set(['RSA', 'EC', 'OKP'])
const TYPE = 'oauth-id-jag+jwt'
const KEYS_MAX = 32
const LENGTH_MAX = 8_192
const TEXT_MAX = 255
const LIFETIME_MAX_S = 600
const SKEW_S = 15

import type { RequestContext } from '../../http/router.ts'
import type { AuthContext } from '../context.ts'
import { Refusal } from '../../http/refusal.ts'
import type { Principal } from '../../http/access/principal.ts'
import { grantEndpoint } from './gnap.ts'
import { ACCESS_PREFIX, type KnownToken } from './gnap-tokens.ts'
import { expectSignedBody, proofFault } from './proof.ts'

/** A GNAP access token in an API request. */
interface PresentedToken {
  readonly token: string
  readonly isBearer: boolean
}

/** `null`: this `Authorization` header has no GNAP token. */
export function presentedToken(header: string): PresentedToken | null {
  const [, scheme, token = ''] = CREDENTIAL.exec(header) ?? []
  if (scheme === undefined) return null
  const isBearer = scheme.length === BEARER_LENGTH
  return isBearer && !token.startsWith(ACCESS_PREFIX) ? null : { token, isBearer }
}

/** The token after the GNAP scheme, or an empty string. */
export function gnapTokenIn(header: string): string {
  const presented = presentedToken(header)
  return presented === null || presented.isBearer ? '' : presented.token
}

/** Authenticates the caller. A token bound to a key needs a signature on every request (RFC 9635 §7.2). */
export async function principalWithGnap(
  ctx: RequestContext,
  presented: PresentedToken,
  management: AuthContext,
): Promise<Principal> {
  const { key, principal } = await goodGnapToken(presented, management)
  if (presented.isBearer) return principal
  const refuse = refusing(management)
  const fault =
    expectSignedBody(ctx, (detail) => refuse('invalid_token', detail)) ??
    (await proofFault(ctx, key, management))
  if (fault !== null) throw refuse('invalid_token', fault)
  return principal
}

/** Checks the token itself, without the signature of a token bound to a key. Throws a Refusal. */
export async function goodGnapToken(
  { token, isBearer }: PresentedToken,
  management: AuthContext,
): Promise<KnownToken> {
  const { gnap, nowMs } = management
  const refuse = refusing(management)
  const known = await gnap.tokens.find(token)
  if (known === null || known.isRevoked) throw refuse('invalid_token', 'invalid token')
  const { record } = known
  if (record.isBearer !== isBearer)
    throw refuse(
      'invalid_token',
      record.isBearer
        ? 'this token is a bearer token: send Authorization: Bearer'
        : 'this token is bound to a key: send Authorization: GNAP and sign the request',
    )
  if (record.expiresAtMs <= nowMs()) throw refuse('expired_token', 'this token has expired')
  return known
}

function refusing({ publicUrl }: AuthContext) {
  const headers = {
    'WWW-Authenticate': `GNAP as_uri="${grantEndpoint(publicUrl)}", error="invalid_token"`,
  }
  return (code: 'invalid_token' | 'expired_token', detail: string) => new Refusal(code, detail, { headers })
}

/** The scheme is case-insensitive (RFC 9110 §11.1); the token is a token68 (RFC 9110 §11.2). */
const CREDENTIAL = /^(gnap|bearer) +([\w.~+/=-]+)$/i
const BEARER_LENGTH = 'bearer'.length

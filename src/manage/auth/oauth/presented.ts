import { type ProblemCode, Refusal } from '../../http/refusal.ts'
import type { Store } from '../../../store/store.ts'
import { challenge, dpopChallenge } from '../../http/access/challenge.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { AccessToken, AccessTokens } from './access-tokens.ts'
import { dpopProblem, NONCE_MISSING } from './dpop.ts'
import type { DpopNonces } from './dpop-nonces.ts'
import { SIGNATURES } from './routes.ts'
import { audiencesOf, type Resource } from '../../http/access/resources.ts'

/** An access token as it came in a request. */
interface Presented {
  readonly scheme: 'bearer' | 'dpop'
  readonly token: string
  /** The `DPoP` header; empty if missing. */
  readonly proof: string
  readonly method: string
  /** The path, without the query. */
  readonly path: string
  readonly resource: Resource
}

/** The parts of the management plane that token checks need. */
interface TokenTaking {
  readonly publicUrl: string
  readonly store: Store
  readonly oauth: { readonly tokens: AccessTokens; readonly nonces: DpopNonces | null }
  nowMs(): number
}

/** Authenticates the caller by its token. Throws a Refusal if the token is not accepted. */
export async function principalWithToken(presented: Presented, taking: TokenTaking): Promise<Principal> {
  const token = await goodToken(presented, taking)
  if (token.jkt !== null) await checkProof(token.jkt, presented, taking)
  return token.principal
}

/** Checks the token itself, without the proof of a token bound to a key. Throws a Refusal. */
export async function goodToken(
  { scheme, token: text, resource }: Pick<Presented, 'scheme' | 'token' | 'resource'>,
  { publicUrl, oauth, nowMs }: TokenTaking,
): Promise<AccessToken> {
  const refuse = (code: ProblemCode, detail: string) => {
    const header =
      scheme === 'dpop'
        ? dpopChallenge(publicUrl, 'invalid_token', SIGNATURES, resource)
        : challenge(publicUrl, 'invalid_token', resource)
    return new Refusal(code, detail, { headers: { 'WWW-Authenticate': header } })
  }
  const checked = oauth.tokens.known(text, nowMs()) ?? (await oauth.tokens.check(text, nowMs()))
  if (checked.kind === 'expired') throw refuse('expired_token', 'this token has expired')
  if (checked.kind === 'bad') throw refuse('invalid_token', 'invalid token')
  const { token } = checked
  if (!audiencesOf(publicUrl, resource).includes(token.audience))
    throw refuse('invalid_token', `this token is for ${token.audience}`)
  if (token.jkt === null && scheme === 'dpop')
    throw refuse('invalid_token', 'this token is not bound to a key: send it as Bearer')
  return token
}

async function checkProof(
  jkt: string,
  { scheme, proof, method, path, resource, token: accessToken }: Presented,
  { publicUrl, store, oauth: { nonces }, nowMs }: TokenTaking,
): Promise<void> {
  const isGoodNonce = nonces === null ? null : (nonce: unknown) => nonces.isGood(nonce)
  const request = { method, url: `${publicUrl}${path}`, accessToken, jkt, isGoodNonce }
  const problem =
    scheme === 'bearer'
      ? 'this token is bound to a key: send it as DPoP with a proof'
      : proof === ''
        ? 'the DPoP header with the proof is missing'
        : await dpopProblem(proof, request, store, nowMs())
  if (problem === null) return
  if (problem === NONCE_MISSING)
    throw new Refusal('use_dpop_nonce', problem, {
      headers: { 'WWW-Authenticate': dpopChallenge(publicUrl, 'use_dpop_nonce', SIGNATURES, resource) },
    })
  const error = scheme === 'bearer' ? 'invalid_token' : 'invalid_dpop_proof'
  throw new Refusal('invalid_token', problem, {
    headers: { 'WWW-Authenticate': dpopChallenge(publicUrl, error, SIGNATURES, resource) },
  })
}

import type { GnapGrantRecord } from '../../../store/people/gnap-grants.ts'
import type { RequestContext } from '../../http/router.ts'
import type { AuthContext } from '../context.ts'
import { hashOfKey, looksLikeSecret, newSecret } from '../api-keys.ts'
import { GnapError } from './gnap-error.ts'
import { CONTINUE_PREFIX, isWorth, keyKept } from './gnap-tokens.ts'
import { continueAnswer, type GnapAnswer, giveOut, nameOf, tokensFor, WAIT_S } from './grants.ts'
import { gnapTokenIn } from './presented.ts'
import { readOptionalBody, signedBy } from './signed-request.ts'

/** RFC 9635 §5: the client polls for the decision, or withdraws its request. `null`: withdrawn. */
export async function continueGrant(
  ctx: RequestContext,
  id: string,
  management: AuthContext,
): Promise<GnapAnswer | null> {
  const { store, nowMs } = management
  const secret = gnapTokenIn(ctx.get('Authorization'))
  const hash = hashOfKey(secret)
  const grant = looksLikeSecret(secret, CONTINUE_PREFIX) ? await store.gnapGrants.continued(id, hash) : null
  if (grant === null || grant.state === 'finished' || grant.expiresAtMs <= nowMs()) throw nothingToContinue()
  const body = await signedBy(ctx, keyKept(grant.jwk), management, () => readOptionalBody(ctx))
  if (ctx.method === 'DELETE') {
    if (!(await store.gnapGrants.finish(id, hash))) throw nothingToContinue()
    return null
  }
  const reference = referenceIn(body)
  if (reference === null && nowMs() < grant.nextAtMs) throw tooFast(grant.nextAtMs - nowMs())
  if (reference !== null) checkReference(grant, reference)
  return continued(grant, hash, reference !== null, management)
}

async function continued(
  grant: GnapGrantRecord,
  hash: string,
  hasReference: boolean,
  management: AuthContext,
): Promise<GnapAnswer> {
  const { store, publicUrl, nowMs } = management
  const { id, state, wanted, scopes, thumbprint, jwk, finish, decided } = grant
  if (state === 'denied') return denied(id, hash, management)
  // If the request has a finish URI, the client must send its interact_ref, which links the browser to it.
  if (state === 'approved' && (finish === null || hasReference)) {
    const worth = await management.gnap.tokens.worthOf(decided)
    const facts = { thumbprint, jwk, name: nameOf(grant), isApproved: true, approved: decided }
    const isGiven = (action: string) => scopes.includes(action) && isWorth(worth, action)
    const tokens = tokensFor(wanted, isGiven, facts, management)
    if (tokens.length === 0) return denied(id, hash, management)
    return giveOut(tokens, wanted, management, async (queries) => {
      if (!(await store.gnapGrants.finish(id, hash, queries))) throw nothingToContinue()
    })
  }
  const next = newSecret(CONTINUE_PREFIX)
  const isRenewed = await store.gnapGrants.renew(id, hash, hashOfKey(next), nowMs() + WAIT_S * 1000)
  if (!isRenewed) throw nothingToContinue()
  return { continue: continueAnswer(id, next, publicUrl) }
}

/** Also used if the approver has lost all the access that was approved. */
async function denied(id: string, hash: string, { store }: AuthContext): Promise<never> {
  if (!(await store.gnapGrants.finish(id, hash))) throw nothingToContinue()
  throw new GnapError('user_denied', 'the request was denied')
}

/** `null`: the body has no interact_ref. */
function referenceIn(body: unknown): string | null {
  if (body === null) return null
  const isObject = typeof body === 'object' && !Array.isArray(body)
  const reference = isObject ? (body as { readonly interact_ref?: unknown }).interact_ref : null
  if (reference === undefined) return null
  if (typeof reference === 'string' && reference.length <= REFERENCE_LENGTH_MAX) return reference
  throw new GnapError('invalid_request', 'interact_ref in the body must be a string')
}

function checkReference({ state, referenceHash }: GnapGrantRecord, reference: string): void {
  if (state === 'waiting' || referenceHash === null || hashOfKey(reference) !== referenceHash)
    throw new GnapError('invalid_interaction', 'wrong interact_ref for this request')
}

function nothingToContinue(): GnapError {
  return new GnapError('invalid_continuation', 'no request to continue with this token')
}

function tooFast(waitMs: number): GnapError {
  const seconds = String(Math.ceil(waitMs / 1000))
  return new GnapError('too_fast', `wait another ${seconds} s`, { headers: { 'Retry-After': seconds } })
}

const REFERENCE_LENGTH_MAX = 256

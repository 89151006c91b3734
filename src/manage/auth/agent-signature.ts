import { NO_APPS } from '../../apps/app-scope.ts'
import { DocumentUnusable } from '../../identity/fetch/document-fetch.ts'
import { isInTime } from '../../identity/keys/agent-key.ts'
import { isCovered, replayIdOf, verifySignature } from '../../identity/verify/http-signature.ts'
import { type BotFault, type BotSignature, readBotSignature } from '../../identity/verify/web-bot-auth.ts'
import { Fault } from '../../shared/fault.ts'
import type { RequestContext } from '../http/router.ts'
import type { AuthContext } from './context.ts'
import { Refusal } from '../http/refusal.ts'
import type { KnownAgent } from './agent-identity.ts'
import { expectSignedBody, SIGNATURE_FAULTS } from './gnap/proof.ts'
import type { Principal } from '../http/access/principal.ts'

/** Whether the request claims to be signed by an agent and carries no other credential. */
export function isSignedByAgent({ req }: RequestContext): boolean {
  const { authorization, 'signature-input': input, 'signature-agent': agent } = req.headers
  return !authorization && input !== undefined && agent !== undefined
}

/**
 * Authenticates an agent by its request signature (Web Bot Auth), with a key of its Agent Identity Document.
 * Only an administrator can give the agent access. Throws the result of `refuse` if authentication fails.
 */
export async function agentBehind(
  ctx: RequestContext,
  management: AuthContext,
  refuse: (detail: string) => Refusal,
): Promise<Principal> {
  const { agents, publicUrl: base, store, nowMs } = management
  const request = { method: ctx.method, base, target: ctx.url, rawHeaders: ctx.req.rawHeaders }
  const read = readBotSignature(request, agents.rules, nowMs(), 'url')
  if (read.kind === 'refused') throw refuse(FAULTS[read.fault])
  const { signature } = read
  if (!signature.nonce) throw refuse('the signature needs a nonce: each signature is valid for one request')
  const agent = await known(read, management, refuse)
  const key = agent.keys.find(({ thumbprint }) => thumbprint === read.thumbprint)
  if (key === undefined || !key.signsRequests)
    throw refuse(`the document of ${agent.id} has no request-signing key with the thumbprint in keyid`)
  if (!isInTime(key, nowMs()))
    throw refuse(`the document of ${agent.id} lists this key as not yet valid or expired (nbf, exp)`)
  const fault = verifySignature(signature, key)
  if (fault !== null) throw refuse(FAULTS[fault])
  // Only trusted agents use up a nonce: a request without access must not write to the database.
  if (
    agent.trusted !== null &&
    !(await store.replays.isFirst(replayIdOf(signature, key), signature.goodUntilMs))
  )
    throw refuse('this nonce was already used')
  const otherBody = isCovered(signature, 'content-digest') ? expectSignedBody(ctx, refuse) : null
  if (otherBody !== null) throw refuse(otherBody)
  return principalOf(agent)
}

/** The current access of an agent that has already proven its id. */
export async function agentNow({ id, name }: Principal, { trust }: AuthContext): Promise<Principal> {
  return principalOf({ id, name, trusted: await trust.scopesOfAgent(id) })
}

async function known(
  { agentId, thumbprint }: BotSignature,
  { agents }: AuthContext,
  refuse: (detail: string) => Refusal,
): Promise<KnownAgent> {
  try {
    return await agents.find(agentId, thumbprint)
  } catch (error) {
    if (!(error instanceof Fault) || error.code.startsWith('STORE_')) throw error
    if (error instanceof DocumentUnusable && error.kind === 'busy')
      throw new Refusal('unavailable', 'too many documents are being fetched', {
        headers: { 'Retry-After': '5' },
      })
    throw refuse(`unknown signer: ${error.message}`)
  }
}

function principalOf({ id, name, trusted }: Pick<KnownAgent, 'id' | 'name' | 'trusted'>): Principal {
  return {
    id,
    name: name ?? id,
    scopes: trusted?.scopes ?? NOTHING,
    apps: trusted?.apps ?? NO_APPS,
    plan: trusted?.plan ?? 'free',
    expiresAtMs: null,
  }
}

const NOTHING: Principal['scopes'] = new Set()
const FAULTS: Readonly<Record<BotFault, string>> = {
  ...SIGNATURE_FAULTS,
  'other-tag': 'no signature has tag="web-bot-auth"',
  'lives-too-long': 'the signature is valid for more than 24 hours',
  'not-covered': 'the signature must cover @authority or @target-uri',
  'no-agent': 'the signature must cover a Signature-Agent that names one agent',
  'other-agent': 'Signature-Agent must be the normalized https:// URL of an agent',
  'ignored-agent':
    'the type in Signature-Agent must be directory, for an origin, or cimd or jwks_uri, for the URL of a document',
  'payment-tag': 'no signature has tag="web-bot-auth"',
  'no-thumbprint': 'keyid must be the RFC 7638 thumbprint of the key',
  several: 'more than one signature has tag="web-bot-auth"',
}

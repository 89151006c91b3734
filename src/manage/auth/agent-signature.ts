import { DocumentUnusable } from '../../identity/document-fetch.ts'
import { replayIdOf, verifySignature } from '../../identity/http-signature.ts'
import { type BotFault, type BotSignature, readBotSignature } from '../../identity/web-bot-auth.ts'
import { Fault } from '../../fault.ts'
import type { RequestContext } from '../api/router.ts'
import type { Management } from '../management.ts'
import { Refusal } from '../refusal.ts'
import type { KnownAgent } from './agent-identity.ts'
import { expectSignedBody } from './gnap/proof.ts'
import type { Principal } from './principal.ts'

/** Whether an agent says to have signed it, and there is no other credential. */
export function isSignedByAgent({ req }: RequestContext): boolean {
  const { authorization, 'signature-input': input, 'signature-agent': agent } = req.headers
  return !authorization && input !== undefined && agent !== undefined
}

/**
 * The agent that has signed a request (Web Bot Auth), by a key of its Agent Identity Document; as a text, why it is not
 * known. What it may do, an administrator says, and nobody else.
 */
export async function agentBehind(ctx: RequestContext, management: Management): Promise<Principal | string> {
  const { agents, publicUrl: base, store, nowMs } = management
  const request = { method: ctx.method, base, target: ctx.url, rawHeaders: ctx.req.rawHeaders }
  const read = readBotSignature(request, agents.rules, nowMs())
  if (read.kind === 'refused') return FAULTS[read.fault]
  const { signature } = read
  if (signature.nonce === null || signature.nonce === '')
    return 'the signature has no nonce: it is good for one request'
  const agent = await known(read, management)
  if (typeof agent === 'string') return agent
  const key = agent.keys.find(({ thumbprint }) => thumbprint === read.thumbprint)
  if (key === undefined || !key.signsRequests)
    return `the document of ${agent.id} has no key for requests with the thumbprint that keyid says`
  const fault = verifySignature(signature, key)
  if (fault !== null) return FAULTS[fault]
  // Who may do nothing anyway leaves nothing behind.
  if (
    agent.trusted !== null &&
    !(await store.replays.isFirst(replayIdOf(signature, key), signature.goodUntilMs))
  )
    return 'this nonce was used before'
  const isBodyCovered = signature.components.some(
    ({ name, part }) => name === 'content-digest' && part === null,
  )
  return (isBodyCovered ? expectSignedBody(ctx) : null) ?? principalOf(agent)
}

async function known(
  { agentId, thumbprint }: BotSignature,
  { agents }: Management,
): Promise<KnownAgent | string> {
  try {
    return await agents.find(agentId, thumbprint)
  } catch (error) {
    if (!(error instanceof Fault) || error.code.startsWith('STORE_')) throw error
    if (error instanceof DocumentUnusable && error.kind === 'busy')
      throw new Refusal('unavailable', 'too many documents are fetched at the moment', {
        headers: { 'Retry-After': '5' },
      })
    return `who signed is not known: ${error.message}`
  }
}

function principalOf({ id, name, trusted }: KnownAgent): Principal {
  return {
    id,
    name: name ?? id,
    scopes: trusted?.scopes ?? NOTHING,
    plan: trusted?.plan ?? 'free',
    expiresAtMs: null,
  }
}

const NOTHING: Principal['scopes'] = new Set()
const FAULTS: Readonly<Record<BotFault, string>> = {
  unsigned: 'the request is not signed (RFC 9421)',
  malformed: 'Signature-Input and Signature do not make a signature',
  'too-large': 'there are more, or larger, signatures than are read',
  'other-tag': 'no signature has tag="web-bot-auth"',
  'no-created': 'the signature does not say when it was created',
  'no-expires': 'the signature does not say when it expires',
  'created-in-future': 'the signature was created in the future',
  'too-old': 'the signature was created too long ago',
  expired: 'the signature has expired',
  'lives-too-long': 'the signature is good for more than 24 hours',
  'not-covered': 'the signature has to cover @authority, or @target-uri',
  'no-component': 'the signature covers something that is not in the request, or not known here',
  'other-key': 'the signature is of another key',
  'other-algorithm': 'the signature says that it was made with another algorithm than that of the key',
  wrong: 'the signature is not right for this request and the key that keyid says',
  'no-agent': 'the signature has to cover a Signature-Agent that says one agent',
  'other-agent': 'Signature-Agent takes the https:// URL of an agent, in its usual form',
  'no-thumbprint': 'keyid takes the RFC 7638 thumbprint of the key',
  several: 'more than one signature has tag="web-bot-auth"',
}

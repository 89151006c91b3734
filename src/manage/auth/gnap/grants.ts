import type { AppList } from '../../../apps/app-scope.ts'
import { readSignatureKey, type SignatureKey } from '../../../identity/signature/signature-key.ts'
import type {
  GnapGrantRecord,
  GrantFinish,
  WantedToken,
  WantedTokens,
} from '../../../store/people/gnap-grants.ts'
import type { GnapTokenRecord } from '../../../store/people/gnap-tokens.ts'
import type { Store } from '../../../store/store.ts'
import { type Actor, changed } from '../../http/audit.ts'
import { newId } from '../../http/ids.ts'
import type { AuthContext } from '../context.ts'
import { hashOfKey, newSecret } from '../api-keys.ts'
import type { Scope } from '../../http/access/principal.ts'
import type { Trusted } from '../trust.ts'
import { GnapError } from './gnap-error.ts'
import {
  CONTINUE_PREFIX,
  INSTANCE_PREFIX,
  INTERACT_PREFIX,
  instanceIdOf,
  keptJwk,
  mayHave,
} from './gnap-tokens.ts'
import type { Display, GrantClient, GrantRequest } from './grant-request.ts'
import { hashesOf, newTokenSecrets, tokenAnswer } from './token-answer.ts'

export type GnapAnswer = Readonly<Record<string, unknown>>

/** The client behind a grant request. The request must be signed with this key. */
export interface GrantApplicant {
  readonly key: SignatureKey
  readonly trusted: Trusted | null
  readonly display: Display
}

/** Finds the client and the key that must have signed the request. */
export async function askingClient(client: GrantClient, { trust }: AuthContext): Promise<GrantApplicant> {
  if (client.kind === 'key') {
    const trusted = await trust.scopesOfKey(client.key.thumbprint)
    return { key: client.key, trusted, display: client.display }
  }
  const trusted = client.id.startsWith(INSTANCE_PREFIX)
    ? await trust.scopesOfKey(client.id.slice(INSTANCE_PREFIX.length))
    : null
  if (trusted === null || trusted.document === null)
    throw new GnapError('invalid_client', 'unknown client id')
  const read = readSignatureKey(trusted.document)
  if (read.kind === 'refused') throw new GnapError('invalid_client', 'the key of this client is unusable')
  return { key: read.key, trusted, display: { name: trusted.name, uri: null } }
}

/** Throws a GnapError if the request cannot succeed. */
export function checkAsking(
  { wanted, interact }: GrantRequest,
  { trusted }: GrantApplicant,
  address: string,
  { gnap, nowMs }: AuthContext,
): void {
  if (!gnap.settings.allowsBearer && wanted.tokens.some(({ isBearer }) => isBearer))
    throw new GnapError('invalid_flag', 'bearer tokens are disabled on this server')
  if (trusted !== null) return
  if (interact === null)
    throw new GnapError(
      'request_denied',
      'this key is not approved, and the request allows no interaction to approve it',
    )
  if (scopesIn(wanted.tokens).length === 0) throw nothingToGive()
  const throttled = gnap.asking.count(address, nowMs())
  if (throttled.kind === 'throttled')
    throw new GnapError('too_many_attempts', 'too many requests from this address', {
      headers: { 'Retry-After': String(throttled.retryAfterS) },
    })
}

/** The response to a checked request (RFC 9635 §3). */
export function answerTo(
  { wanted, interact }: GrantRequest,
  asking: GrantApplicant,
  management: AuthContext,
): Promise<GnapAnswer> {
  return asking.trusted === null
    ? askSomebody(wanted, interact?.finish ?? null, asking, management)
    : grantAtOnce(wanted, asking, asking.trusted, management)
}

/** Builds tokens for the requested actions that are approved. Empty if no action is approved. */
export function tokensFor(
  wanted: WantedTokens,
  isGiven: (action: string) => boolean,
  facts: Pick<GnapTokenRecord, 'thumbprint' | 'jwk' | 'name' | 'isApproved' | 'approved'>,
  { gnap, nowMs }: AuthContext,
): readonly GnapTokenRecord[] {
  const expiresAtMs = nowMs() + gnap.settings.tokenTtlS * 1000
  const endsAtMs = expiresAtMs + (facts.isApproved ? APPROVED_MS : RENEWABLE_MS)
  const times = { expiresAtMs, endsAtMs, revokedAtMs: null }
  return wanted.tokens
    .map(({ label, actions, isBearer }) => ({ label, isBearer, scopes: actions.filter(isGiven) }))
    .filter(({ scopes }) => scopes.length > 0)
    .map((token) => ({ id: newId('gtk'), ...facts, ...token, ...times }))
}

/** An approver's decision on a waiting request. */
interface GrantDecision {
  readonly decision: 'approve' | 'deny'
  /** A subset of the requested scopes. */
  readonly scopes: readonly Scope[]
  /** Those of the approver, and so of the tokens. */
  readonly apps: AppList
  /** Since when the approver has been authenticated. */
  readonly atMs: number
}

/** `false`: the request is already decided. */
export async function decideGrant(
  store: Store,
  { id, thumbprint }: GnapGrantRecord,
  { decision, scopes, apps, atMs }: GrantDecision,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'decideGrant', subject: id, apps, detail: { decision, scopes, thumbprint } }
  try {
    await changed(store, actor, change, nowMs, async (queries) => {
      const state = decision === 'approve' ? 'approved' : 'denied'
      if (!(await store.gnapGrants.decide(id, state, scopes, { by: actor.id, atMs }, queries))) throw DECIDED
    })
    return true
  } catch (error) {
    if (error === DECIDED) return false
    throw error
  }
}

/** Stores the tokens in one transaction. `when` runs first and can throw to prevent it. */
export async function giveOut(
  tokens: readonly GnapTokenRecord[],
  { isList }: WantedTokens,
  { store, publicUrl, nowMs }: AuthContext,
  when: Parameters<Store['transaction']>[0] = async () => undefined,
): Promise<GnapAnswer> {
  const given = tokens.map((record) => ({ record, secrets: newTokenSecrets() }))
  await store.transaction(async (queries) => {
    await when(queries)
    for (const { record, secrets } of given) await store.gnapTokens.add(record, hashesOf(secrets), queries)
  })
  const answers = given.map(({ record, secrets }) => tokenAnswer(record, secrets, publicUrl, nowMs()))
  return { access_token: isList ? answers : answers[0] }
}

/** Tells the client where to poll, with which token, and how long to wait first (RFC 9635 §3.1). */
export function continueAnswer(id: string, secret: string, publicUrl: string): GnapAnswer {
  return { uri: `${publicUrl}/gnap/continue/${id}`, wait: WAIT_S, access_token: { value: secret } }
}

/** The client's display name, or else its instance id. */
export function nameOf({ display, thumbprint }: Pick<GnapGrantRecord, 'display' | 'thumbprint'>): string {
  return display.name ?? instanceIdOf(thumbprint)
}

async function grantAtOnce(
  wanted: WantedTokens,
  { key, display }: GrantApplicant,
  trusted: Trusted,
  management: AuthContext,
): Promise<GnapAnswer> {
  const { thumbprint } = key
  const name = nameOf({ display, thumbprint })
  const facts = { thumbprint, jwk: keptJwk(key), name, isApproved: false, approved: null }
  const tokens = tokensFor(wanted, (action) => mayHave(trusted, action), facts, management)
  if (tokens.length === 0) throw nothingToGive()
  if (await management.store.gnapTokens.hasMany(thumbprint, TOKENS_PER_KEY_MAX))
    throw new GnapError(
      'too_many_attempts',
      'this key already has too many tokens: reuse one until it expires',
    )
  return { ...(await giveOut(tokens, wanted, management)), instance_id: instanceIdOf(thumbprint) }
}

async function askSomebody(
  wanted: WantedTokens,
  finish: Omit<GrantFinish, 'serverNonce'> | null,
  { key, display }: GrantApplicant,
  { store, publicUrl, nowMs }: AuthContext,
): Promise<GnapAnswer> {
  const scopes = scopesIn(wanted.tokens)
  const [id, interact, next] = [newId('grt'), newSecret(INTERACT_PREFIX), newSecret(CONTINUE_PREFIX)]
  const serverNonce = newSecret('')
  const createdAtMs = nowMs()
  const times = { createdAtMs, nextAtMs: createdAtMs + WAIT_S * 1000, expiresAtMs: createdAtMs + WAITING_MS }
  const isAdded = await store.gnapGrants.add(
    {
      id,
      display,
      wanted,
      scopes,
      ...times,
      thumbprint: key.thumbprint,
      jwk: keptJwk(key),
      finish: finish === null ? null : { ...finish, serverNonce },
      interactHash: hashOfKey(interact),
      continueHash: hashOfKey(next),
    },
    GRANTS_MAX,
  )
  if (!isAdded) throw new GnapError('too_many_attempts', 'too many requests are waiting for approval')
  return {
    interact: {
      redirect: `${publicUrl}/gnap/interact/${interact}`,
      ...(finish === null ? {} : { finish: serverNonce }),
      expires_in: WAITING_MS / 1000,
    },
    continue: continueAnswer(id, next, publicUrl),
  }
}

function scopesIn(tokens: readonly WantedToken[]): readonly string[] {
  return [...new Set(tokens.flatMap(({ actions }) => actions))]
}

function nothingToGive(): GnapError {
  return new GnapError('request_denied', 'none of the requested access can be granted to this key')
}

const DECIDED = new Error('decided already')
/** The minimum in RFC 9635 §3.1. */
export const WAIT_S = 5
/** Time for a person to decide. */
const WAITING_MS = 3_600_000
/** How long an expired token can be renewed. A trusted client can also request a new one. */
export const RENEWABLE_MS = 3_600_000
/** How long an approved token can be renewed; after that it needs a new approval. */
const APPROVED_MS = 86_400_000
/** More than one token every half second, for as long as a token can be renewed. */
const TOKENS_PER_KEY_MAX = 10_000
const GRANTS_MAX = 10_000

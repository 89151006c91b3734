import type { AppList } from '../../apps/app-scope.ts'
import {
  type AgentDocument,
  AgentDocumentFault,
  type DocumentRules,
  readAgentDocument,
  readAgentId,
} from '../../identity/keys/agent-document.ts'
import { readAgentKey } from '../../identity/keys/agent-key.ts'
import type { Store } from '../../store/store.ts'
import type { TrustRecord } from '../../store/people/trust.ts'
import { type Actor, changed } from '../http/audit.ts'
import { newId } from '../http/ids.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import type { Plan, Scope } from '../http/access/principal.ts'

/** The subject to trust: an agent (by its id, its document, or both) or a key. */
export interface TrustSubject {
  readonly agent_id?: string | undefined
  readonly document?: Readonly<Record<string, unknown>> | undefined
  readonly jwk?: Readonly<Record<string, unknown>> | undefined
}

export interface TrustTerms {
  readonly name: string | null
  readonly scopes: readonly Scope[]
  readonly apps: AppList
  readonly plan: Plan
}

interface NewTrust {
  readonly subject: TrustSubject
  readonly terms: TrustTerms
  /** For the agent's document. */
  readonly rules: DocumentRules
}

/** Gives access to an agent or a key, for the API and the command line. Throws a Refusal. */
export async function makeTrust(
  store: Store,
  { subject, terms, rules }: NewTrust,
  actor: Actor,
  nowMs: number,
): Promise<TrustRecord> {
  const record = { ...terms, ...readSubject(subject, rules), id: newId('trs'), createdAtMs: nowMs }
  const change = { action: 'createTrust', subject: record.id, apps: record.apps, detail: toldOf(record) }
  await changed(store, actor, change, nowMs, async (queries) => {
    if ((await store.trust.count(queries)) >= TRUST_MAX)
      throw new Refusal('conflict', `${TRUST_MAX} agents and keys are trusted already, the maximum`)
    if (!(await store.trust.add(record, queries)))
      throw new Refusal('conflict', `this ${record.kind} is already trusted: delete that entry first`)
  })
  return record
}

/** `false`: another request has removed it already. */
export async function removeTrust(
  store: Store,
  record: TrustRecord,
  actor: Actor,
  nowMs: number,
): Promise<boolean> {
  const change = { action: 'deleteTrust', subject: record.id, apps: record.apps, detail: toldOf(record) }
  try {
    await changed(store, actor, change, nowMs, async (queries) => {
      if (!(await store.trust.remove(record.id, queries))) throw GONE
    })
    return true
  } catch (error) {
    if (error === GONE) return false
    throw error
  }
}

function readSubject(
  subject: TrustSubject,
  rules: DocumentRules,
): Pick<TrustRecord, 'kind' | 'subject' | 'document'> {
  const { agent_id, document, jwk } = subject
  if ((jwk === undefined) === (agent_id === undefined && document === undefined))
    throw invalid([
      {
        pointer: '/agent_id',
        detail: 'is for agents and jwk is for keys: send exactly one of them',
      },
    ])
  if (jwk !== undefined) return readKey(jwk, rules)
  const id = agent_id === undefined ? null : idIn(agent_id, rules)
  if (document === undefined) return { kind: 'agent', subject: id!, document: null }
  const read = documentIn(document, id, rules)
  const own = id ?? read.id!
  return { kind: 'agent', subject: own, document: keptOf(read, own) }
}

function readKey(
  jwk: unknown,
  { allowPrivate }: DocumentRules,
): Pick<TrustRecord, 'kind' | 'subject' | 'document'> {
  const read = readAgentKey(jwk, allowPrivate)
  if (read.kind === 'refused')
    throw invalid([{ pointer: `/jwk${read.member === '' ? '' : `/${read.member}`}`, detail: read.detail }])
  const { thumbprint, signsRequests, jwk: kept } = read.key
  if (!signsRequests)
    throw invalid([
      { pointer: '/jwk/alg', detail: 'is an algorithm for tokens only, not for request signatures' },
    ])
  return { kind: 'key', subject: thumbprint, document: kept }
}

function idIn(text: string, rules: DocumentRules): string {
  const read = readAgentId(text, rules)
  if ('refused' in read) throw invalid([{ pointer: '/agent_id', detail: read.refused }])
  return read.id
}

function documentIn(value: unknown, id: string | null, rules: DocumentRules): AgentDocument {
  try {
    return readAgentDocument(value, id, rules)
  } catch (error) {
    if (!(error instanceof AgentDocumentFault)) throw error
    throw invalid([{ pointer: `/document${error.pointer}`, detail: error.detail }])
  }
}

/** Keeps only the members that are public and in use. */
function keptOf({ name, keys, redirectUris }: AgentDocument, id: string): Readonly<Record<string, unknown>> {
  return {
    client_id: id,
    ...(name !== null && { client_name: name }),
    ...(redirectUris.length > 0 && { redirect_uris: redirectUris }),
    ...('jwksUri' in keys
      ? { jwks_uri: keys.jwksUri }
      : keys.length > 0 && { jwks: { keys: keys.map(({ jwk }) => jwk) } }),
  }
}

/** For the audit log. */
function toldOf({
  kind,
  subject,
  name,
  scopes,
  apps,
  plan,
  document,
}: TrustRecord): Readonly<Record<string, unknown>> {
  const target = kind === 'key' ? { thumbprint: subject } : { agent_id: subject, document: document !== null }
  return { ...target, name, scopes, apps, plan }
}

const GONE = new Error('gone')
const TRUST_MAX = 10_000

import type { Queries } from '../../store/engine/database.ts'
import type { Store } from '../../store/store.ts'
import { newId } from './ids.ts'

/** Who changes something, and how it came here. */
export interface Actor {
  /** The id of a principal; `command-line`. */
  readonly id: string
  readonly address: string | null
  readonly requestId: string | null
}

export interface Change {
  /** What is done: the id of an operation. */
  readonly action: string
  /** The id of what it is done to. */
  readonly subject: string | null
  /** What of it a reader wants to know later. No secret. */
  readonly detail: Readonly<Record<string, unknown>>
}

/** An administrative change and its entry in the audit log: both, or neither. */
export function changed<Result>(
  store: Store,
  actor: Actor,
  { action, subject, detail }: Change,
  atMs: number,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  return store.transaction(async (queries) => {
    const result = await work(queries)
    await addAudit(store, actor, { action, subject, detail }, atMs, queries)
    return result
  })
}

/** The entry alone, for who has a transaction. */
export async function addAudit(
  store: Store,
  { id: principal, address, requestId }: Actor,
  change: Change,
  atMs: number,
  queries: Queries,
): Promise<void> {
  await store.audit.add({ id: newId('aud'), atMs, principal, ...change, address, requestId }, queries)
}

export const COMMAND_LINE: Actor = { id: 'command-line', address: null, requestId: null }

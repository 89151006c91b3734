import type { AppList } from '../../apps/app-scope.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { Store } from '../../store/store.ts'
import { newId } from './ids.ts'

/** The author of an administrative change, and the request that it came with. */
export interface Actor {
  /** A principal id, or `command-line`. */
  readonly id: string
  readonly address: string | null
  readonly requestId: string | null
}

export interface Change {
  /** The id of the operation. */
  readonly action: string
  /** The id of the changed resource. */
  readonly subject: string | null
  /** The apps of the changed resource: callers with these apps see the entry. `*`: it is about the whole installation. */
  readonly apps: AppList
  /** Details for a later reader of the log. Must not contain secrets. */
  readonly detail: Readonly<Record<string, unknown>>
}

/**
 * Runs an administrative change and writes its audit entry in one transaction: both succeed or neither does.
 */
export function changed<Result>(
  store: Store,
  actor: Actor,
  change: Change,
  atMs: number,
  work: (queries: Queries) => Promise<Result>,
): Promise<Result> {
  return store.transaction(async (queries) => {
    const result = await work(queries)
    await addAudit(store, actor, change, atMs, queries)
    return result
  })
}

/** Writes only the audit entry, for a caller that already has a transaction. */
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

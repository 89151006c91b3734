import type { AppList } from '../../apps/app-scope.ts'
import { type Actor, changed } from '../http/audit.ts'
import { newId } from '../http/ids.ts'
import type { KeyRecord } from '../../store/people/keys.ts'
import type { Store } from '../../store/store.ts'
import { hashOfKey, newKey } from './api-keys.ts'
import type { Plan, Scope } from '../http/access/principal.ts'

export interface WantedKey {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly apps: AppList
  readonly plan: Plan
  /** `null`: never expires. */
  readonly expiresAtMs: number | null
}

/** Creates an API key, for the API and the command line. Only this answer contains the key itself. */
export async function makeKey(
  store: Store,
  wanted: WantedKey,
  actor: Actor,
  nowMs: number,
): Promise<{ key: string; record: KeyRecord }> {
  const key = newKey()
  const record: KeyRecord = {
    ...wanted,
    id: newId('key'),
    createdAtMs: nowMs,
    revokedAtMs: null,
    lastUsedAtMs: null,
  }
  const { id: subject, name, scopes, apps, plan } = record
  await changed(
    store,
    actor,
    { action: 'createKey', subject, apps, detail: { name, scopes, apps, plan } },
    nowMs,
    (queries) => store.keys.add({ ...record, hash: hashOfKey(key) }, queries),
  )
  return { key, record }
}

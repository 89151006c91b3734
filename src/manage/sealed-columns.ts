import type { SealedColumn } from '../store/engine/sealed-values.ts'
import { NONCE_KIND, NONCE_SECRET } from './auth/oauth/dpop-nonces.ts'
import { sealedAs as recordSealedAs } from './auth/oauth/sealed-records.ts'
import { sealedAs as keySealedAs } from './auth/oauth/signing-keys.ts'
import { sealedAs as codesSealedAs } from './auth/people/make-user.ts'
import { whatOf as callbackSealedAs } from './jobs/task-callbacks.ts'
import { secretOf } from './jobs/signing.ts'

/** A column and the context that its values are sealed with: see Sealer. Messages name a record by it. */
export interface SealedPlace extends SealedColumn {
  sealedAs(row: Readonly<Record<string, string>>): string
}

/** Every column with output of `Sealer.seal`. A test compares this list with the code and with a database. */
export const SEALED_COLUMNS: readonly SealedPlace[] = [
  {
    table: 'oauth_keys',
    column: 'sealed',
    key: ['number'],
    names: ['kid'],
    sealedAs: ({ kid }) => keySealedAs(kid!),
  },
  {
    table: 'oauth_records',
    column: 'sealed',
    key: ['id'],
    names: ['kind'],
    sealedAs: ({ kind, id }) => (kind === NONCE_KIND ? NONCE_SECRET : recordSealedAs(kind!, id!)),
  },
  {
    table: 'task_callbacks',
    column: 'sealed',
    key: ['task_id', 'id'],
    names: [],
    sealedAs: ({ task_id, id }) => callbackSealedAs(task_id!, id!),
  },
  { table: 'users', column: 'totp', key: ['id'], names: [], sealedAs: ({ id }) => codesSealedAs(id!) },
  {
    table: 'webhook_secrets',
    column: 'sealed',
    key: ['id'],
    names: ['webhook_id'],
    sealedAs: ({ webhook_id, id }) => secretOf(webhook_id!, id!),
  },
]

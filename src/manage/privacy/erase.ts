import { ALL_APPS } from '../../apps/app-scope.ts'
import type { AddressHasher } from '../../plane/privacy/address-form.ts'
import { Fault } from '../../shared/fault.ts'
import type { Store } from '../../store/store.ts'
import { type Actor, changed } from '../http/audit.ts'
import { type EraseOptions, eraseClient, erasedClient } from './erase-address.ts'
import { eraseAccounts, erasedAccounts } from './erase-user.ts'
import type { ErasureReport } from './erasure-report.ts'

/** Whose data is erased: a client by its address, or an account by its e-mail address or id. */
export type Erased = { readonly address: string } | { readonly user: string }

export interface ErasureContext {
  readonly store: Store
  /** Of every key of `privacy.keys`. */
  readonly addressHashers: readonly AddressHasher[]
}

/**
 * Erases one person's data in every store, for the API and the command line. The entry of the audit log says what was erased
 * and where, and not whose data it was. Throws a Fault if the text can be no client, or no account.
 */
export async function erase(
  { store, addressHashers }: ErasureContext,
  erased: Erased,
  actor: Actor,
  options: EraseOptions,
): Promise<ErasureReport> {
  const isClient = 'address' in erased
  const report = isClient
    ? await eraseClient(store, clientIn(erased.address, addressHashers), options)
    : await eraseUser(store, erased.user, options)
  if (options.isDry) return report
  const rows = Object.fromEntries(report.tables.map(({ table, rows: count }) => [table, count]))
  const detail = { of: isClient ? 'address' : 'user', rows }
  const change = { action: 'erasePerson', subject: null, apps: ALL_APPS, detail } as const
  await changed(store, actor, change, options.nowMs, async () => undefined)
  return report
}

function clientIn(text: string, hashers: readonly AddressHasher[]) {
  const client = erasedClient(text, hashers)
  if (client === null) throw new Fault(UNREADABLE, NO_CLIENT)
  return client
}

async function eraseUser(store: Store, text: string, options: EraseOptions): Promise<ErasureReport> {
  const accounts = await erasedAccounts(store, text)
  if (accounts === null) throw new Fault(UNREADABLE, NO_USER)
  return eraseAccounts(store, accounts, options)
}

/** The code of a Fault: the text can be no client, or no account. */
export const UNREADABLE = 'ERASE_UNREADABLE'
const NO_CLIENT =
  'an address must be one client: 203.0.113.7, 2001:db8::1, the /64 of an IPv6 address, or a stored hash:…'
const NO_USER = 'a user must be an e-mail address, or the id of an account (usr_…)'

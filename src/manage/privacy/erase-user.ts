import type { Store } from '../../store/store.ts'
import type { ErasedAccount } from '../../store/erasure/account-erasure.ts'
import { emailIn, signOutEverywhere } from '../auth/people/make-user.ts'
import type { EraseOptions } from './erase-address.ts'
import { ErasureReport } from './erasure-report.ts'

/**
 * The accounts that an e-mail address or an id means. An account that is deleted already is found by its id, and by its
 * e-mail address as long as the audit log has it. `null`: the text is neither.
 */
export async function erasedAccounts(store: Store, text: string): Promise<readonly ErasedAccount[] | null> {
  if (ACCOUNT_ID.test(text)) {
    const user = await store.users.byId(text)
    return [{ id: text, email: user?.email ?? null }]
  }
  const email = emailIn(text)
  if (email === null) return null
  const user = await store.users.byEmail(email)
  const ids = new Set([...(user === null ? [] : [user.id]), ...(await store.accountErasure.idsOf(email))])
  // The audit log may have an e-mail address that never had an account.
  return ids.size === 0 ? [{ id: null, email }] : [...ids].map((id) => ({ id, email }))
}

/** Erases accounts in every store, and signs them out everywhere. A repetition after a failure does the rest. */
export async function eraseAccounts(
  store: Store,
  accounts: readonly ErasedAccount[],
  { isDry, nowMs, progress = () => undefined }: EraseOptions,
): Promise<ErasureReport> {
  const report = new ErasureReport(isDry)
  for (const account of accounts) {
    const { id } = account
    if (id === null) report.add('users', 0)
    else
      await store.transaction(async (queries) => {
        for (const [table, rows] of await store.accountErasure.count(id, queries)) report.add(table, rows)
        if (isDry) return
        await signOutEverywhere(store, id, nowMs, queries)
        await store.accountErasure.remove(id, queries)
      })
    // Last: it has the e-mail address, by which a repetition finds the account.
    for await (const rows of store.accountErasure.audit(account, isDry)) {
      report.add('audit', rows)
      progress()
    }
  }
  return report
}

const ACCOUNT_ID = /^usr_[\w-]{1,60}$/

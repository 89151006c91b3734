import type { Management } from './management.ts'
import type { PeriodicJob } from './periodic.ts'
import { TASK_KEPT_MS } from './task-runner.ts'

/** What is done on the side. */
export function periodicJobs(
  { apiKeys, oauth, rateLimits, store }: Management,
  auditRetentionMs: number,
): readonly PeriodicJob[] {
  const more = (rows: number) => (rows < SLICE_ROWS ? 'done' : 'more')
  return [
    {
      name: 'write down when keys were used',
      everyMs: 10_000,
      run: () => apiKeys.writeUsed(),
    },
    {
      name: 'write down counts of requests',
      everyMs: 1_000,
      run: async () => {
        await rateLimits.write()
        return 'done'
      },
    },
    {
      name: 'forget old counts of requests',
      everyMs: 3_600_000,
      run: async (nowMs) => {
        await store.rateLimits.sweep(nowMs)
        return 'done'
      },
    },
    {
      name: 'forget old entries of the audit log',
      everyMs: 3_600_000,
      run: async (nowMs) => more(await store.audit.forget(nowMs - auditRetentionMs, SLICE_ROWS)),
    },
    {
      name: 'forget old idempotency keys',
      everyMs: 600_000,
      run: async (nowMs) => more(await store.idempotency.forget(nowMs, SLICE_ROWS)),
    },
    {
      name: 'forget signatures that are too old to be used again',
      everyMs: 60_000,
      run: async (nowMs) => more(await store.replays.forget(nowMs, SLICE_ROWS)),
    },
    {
      name: 'forget old grants of GNAP',
      everyMs: 60_000,
      run: async (nowMs) => more(await store.gnapGrants.forget(nowMs, SLICE_ROWS)),
    },
    {
      name: 'forget old tokens of GNAP',
      everyMs: 600_000,
      run: async (nowMs) => more(await store.gnapTokens.forget(nowMs, SLICE_ROWS)),
    },
    {
      name: 'forget old records of the authorization server',
      everyMs: 60_000,
      run: async (nowMs) => more(await store.oauthRecords.forget(nowMs, SLICE_ROWS)),
    },
    {
      name: 'forget clients that came by themselves and are not used',
      everyMs: 3_600_000,
      run: async (nowMs) =>
        more(await store.oauthClients.forgetUnused(nowMs - REGISTERED_KEPT_MS, SLICE_ROWS)),
    },
    {
      name: 'forget what denied tokens that have expired',
      everyMs: 60_000,
      run: async (nowMs) => more(await store.oauthDenials.forget(nowMs, SLICE_ROWS)),
    },
    {
      name: 'keep the keys of access tokens',
      everyMs: 60_000,
      run: async () => {
        await oauth.keys.keep()
        return 'done'
      },
    },
    {
      name: 'forget old tasks',
      everyMs: 600_000,
      run: async (nowMs) =>
        (await store.tasks.forget(nowMs - TASK_KEPT_MS, SLICE_TASKS)) < SLICE_TASKS ? 'done' : 'more',
    },
  ]
}

/** For somebody to consent. */
const REGISTERED_KEPT_MS = 86_400_000
/** Some milliseconds of SQLite. */
const SLICE_ROWS = 500
/** Each may have some megabytes. */
const SLICE_TASKS = 5

import { KEPT_MIN, WRITTEN_EVERY_MS } from './judging/detections.ts'
import type { ApiContext } from './api/context.ts'
import type { RateLimits } from './limits/rate-limits.ts'
import { forgetting, type PeriodicJob } from './jobs/periodic.ts'

export interface EventRetention {
  readonly retentionMs: number
  readonly rowsMax: number
}

interface KeptTimes {
  readonly auditRetentionMs: number
  readonly taskRetentionMs: number
  /** `null`: whatever its age. */
  readonly feedbackRetentionMs: number | null
  readonly events: EventRetention
}

/** The background jobs of the management plane. */
export function periodicJobs(
  { apiKeys, detections, failureThrottle, gnap, oauth, store, nowMs: now }: ApiContext,
  rateLimits: RateLimits,
  { auditRetentionMs, taskRetentionMs, feedbackRetentionMs, events }: KeptTimes,
): readonly PeriodicJob[] {
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
      name: 'count with other processes what addresses do',
      everyMs: 1_000,
      run: async () => {
        // Only one process opens a SQLite file.
        if (store.kind === 'sqlite') return 'done'
        const nowMs = now()
        await failureThrottle.share(store.rateLimits, 'failures from', nowMs)
        await gnap.asking.share(store.rateLimits, 'gnap from', nowMs)
        await oauth.beginnings.share(store.rateLimits, nowMs)
        return 'done'
      },
    },
    {
      name: 'write down answers of /detect',
      everyMs: WRITTEN_EVERY_MS,
      run: async () => {
        await detections.write()
        return 'done'
      },
    },
    {
      name: 'keep the keys of access tokens',
      everyMs: MINUTE_MS,
      run: async () => {
        await oauth.keys.keep()
        return 'done'
      },
    },
    {
      name: 'forget old counts of requests',
      everyMs: HOUR_MS,
      isOnce: true,
      run: async (nowMs) => {
        await store.rateLimits.sweep(nowMs)
        return 'done'
      },
    },
    forgetting('old entries of the audit log', HOUR_MS, (nowMs, rows) =>
      store.audit.forget(nowMs - auditRetentionMs, rows),
    ),
    forgetting('old events', MINUTE_MS, (nowMs, rows) =>
      store.events.forget(nowMs - events.retentionMs, events.rowsMax, rows),
    ),
    forgetting('old cases', MINUTE_MS, (nowMs, rows) =>
      store.cases.forget(nowMs - events.retentionMs, CASES_MAX, rows),
    ),
    forgetting('old campaigns', TEN_MINUTES_MS, (nowMs, rows) =>
      store.campaigns.forget(nowMs - events.retentionMs, rows),
    ),
    forgetting('requests that no manager compared', MINUTE_MS, (nowMs, rows) =>
      store.campaigns.forgetLeft(nowMs - TEN_MINUTES_MS, rows),
    ),
    forgetting('old answers of /detect', MINUTE_MS, (_, rows) => store.detections.forget(KEPT_MIN, rows)),
    {
      name: 'forget the traffic of processes that are gone',
      everyMs: HOUR_MS,
      isOnce: true,
      run: async (nowMs) => {
        await store.traffic.forget(nowMs - HOUR_MS)
        return 'done'
      },
    },
    forgetting('old idempotency keys', TEN_MINUTES_MS, (nowMs, rows) =>
      store.idempotency.forget(nowMs, rows),
    ),
    forgetting('signatures that are too old to be used again', MINUTE_MS, (nowMs, rows) =>
      store.replays.forget(nowMs, rows),
    ),
    forgetting('old grants of GNAP', MINUTE_MS, (nowMs, rows) => store.gnapGrants.forget(nowMs, rows)),
    forgetting('old tokens of GNAP', TEN_MINUTES_MS, (nowMs, rows) => store.gnapTokens.forget(nowMs, rows)),
    forgetting('old records of the authorization server', MINUTE_MS, (nowMs, rows) =>
      store.oauthRecords.forget(nowMs, rows),
    ),
    forgetting('clients that came by themselves and are not used', HOUR_MS, (nowMs, rows) =>
      store.oauthClients.forgetUnused(nowMs - REGISTERED_KEPT_MS, rows),
    ),
    forgetting('what denied tokens that have expired', MINUTE_MS, (nowMs, rows) =>
      store.oauthDenials.forget(nowMs, rows),
    ),
    ...(feedbackRetentionMs === null
      ? []
      : [
          forgetting('old feedback', HOUR_MS, (nowMs, rows) =>
            store.feedback.forget(nowMs - feedbackRetentionMs, rows),
          ),
        ]),
    forgetting(
      'old tasks',
      TEN_MINUTES_MS,
      (nowMs, rows) => store.tasks.forget(nowMs - taskRetentionMs, rows),
      SLICE_TASKS,
    ),
  ]
}

const MINUTE_MS = 60_000
const TEN_MINUTES_MS = 600_000
const HOUR_MS = 3_600_000
/** Leaves time for a person to consent. */
const REGISTERED_KEPT_MS = 86_400_000
/** Beyond this, those without an event for the longest time are deleted. */
const CASES_MAX = 10_000
/** Each task may take several MB. */
const SLICE_TASKS = 5

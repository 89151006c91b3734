import * as z from 'zod'
import { ALL_APPS, type AppScope, narrowed } from '../../apps/app-scope.ts'
import type { ReplayReport } from '../../plane/replay.ts'
import { POLICY_LAYERS, type PolicyLayer } from '../../policy/action.ts'
import type { Principal } from '../http/access/principal.ts'
import { Refusal } from '../http/refusal.ts'
import { time, timeOf } from '../http/schemas.ts'
import {
  type PolicyPreview,
  PREVIEW_MS_MAX,
  type ReadSightings,
  tryPolicy,
} from '../publish/policy-preview.ts'
import { checkApp, ofApp } from './app-access.ts'
import type { ApiContext } from './context.ts'
import { operation } from './operation.ts'
import { checkPolicy, compiledInForce, policiesWith, type PolicyOwner, warningsOf } from './policy-layer.ts'
import { appPolicyDocument, policyDocument, warnings } from './policy-schemas.ts'
import { spanOf } from './stats.ts'
import { BUCKETS, type StatsWindow, WINDOWS, window } from './stats-answer.ts'

const counted = (fields: z.ZodRawShape) => z.array(z.strictObject({ ...fields, count: z.int() }))
const change = { from: z.string(), to: z.string() }
const ruleKey = {
  rule: z.string(),
  layer: z.enum(POLICY_LAYERS),
  app: z.string().nullable().meta({ description: '`null`: a rule of the organisation.' }),
}
const policyPreview = z
  .strictObject({
    app: z.string().nullable().meta({
      description: 'The only app whose requests were examined. `null`: every app of the caller.',
    }),
    window,
    against: z.enum(['recorded', 'current']),
    from: time.nullable().meta({ description: 'When the first of the requests was seen.' }),
    to: time.nullable(),
    complete: z.boolean().meta({ description: '`false`: there was time only for the newest requests.' }),
    sightings: z.int().meta({ description: 'Requests that were examined.' }),
    counted: z.int().meta({
      description:
        'About how many requests there were in the window, as in `/stats`: also those that are not recorded, or no more.',
    }),
    unchanged: z.int(),
    changed: z.int(),
    unjudged: z.int().meta({
      description:
        'The result depends on values that are not recorded: see `open`. Also requests of apps for whose policies there was no room.',
    }),
    by_settings: z.int().meta({ description: 'Decided by settings of the proxy, regardless of the policy.' }),
    left_out: z.int().meta({ description: 'Corrupt records.' }),
    transitions: counted(change),
    rules: z.array(
      z.strictObject({
        ...ruleKey,
        before: z.int().nullable(),
        after: z.int().nullable(),
        on_trial: z.int(),
      }),
    ),
    verdicts: counted({ name: z.string(), ...change }).meta({
      description: 'The verdicts of the requests that changed. `human`: people.',
    }),
    agents: counted({ name: z.string(), ...change }),
    paths: counted({ name: z.string(), ...change }),
    warnings,
    open: z.array(
      z.strictObject({
        policy: z.enum(['new', 'old']),
        ...ruleKey,
        needs: z.array(z.string()),
        sightings: z.int(),
      }),
    ),
  })
  .meta({ id: 'PolicyPreview' })

const options = {
  window: window.default('24h').meta({ override: { default: '24h' } }),
  against: z.enum(['recorded', 'current']).default('recorded'),
  time_ms: z.int().min(50).max(PREVIEW_MS_MAX).default(PREVIEW_MS_MAX).meta({
    description:
      'How long to examine requests, from the newest on. A short time gives a first answer: `complete` and `from` say how far it got.',
  }),
}

export const previewPolicy = operation({
  id: 'previewPolicy',
  method: 'POST',
  path: '/policy/preview',
  tag: 'Administration',
  summary: 'Preview a policy on recorded requests',
  description:
    'Applies a policy to recorded requests, as far back as `sightings.retention` keeps them. Each request is judged with the rules of its app, too. Changes nothing. The same as `gatehouse check --replay`: compares with what was done (`recorded`) or with the policy in force (`current`). The only recorded header is User-Agent, and queries are not recorded. If a rule depends on them, the request counts as `unjudged`. Callers that are limited to some apps see the effect on their requests.',
  scopes: ['admin'],
  reach: 'filtered',
  body: z
    .strictObject({
      policy: policyDocument,
      app: z.string().max(63).optional().meta({
        description: 'Examine only requests of this app, by its id.',
        example: 'default',
      }),
      ...options,
    })
    .meta({ id: 'PolicyPreviewRequest' }),
  answer: policyPreview,
  problems: ['not_found'],
  run: async ({ body, principal }, management) => {
    const { app = null } = body
    if (app !== null) await checkApp(app, principal, management)
    return previewOf(null, { ...body, app }, principal, management)
  },
})

export const previewAppPolicy = operation({
  id: 'previewAppPolicy',
  method: 'POST',
  path: '/apps/{app_id}/policy/preview',
  tag: 'Apps',
  summary: 'Preview a policy of an app on its recorded requests',
  description:
    'Like `POST /policy/preview`, for requests of this app. `policy` takes the place of the policy of the app, between the `first` and `last` rules of the organisation.',
  scopes: ['admin'],
  reach: 'filtered',
  ...ofApp,
  body: z.strictObject({ policy: appPolicyDocument, ...options }).meta({ id: 'AppPolicyPreviewRequest' }),
  answer: policyPreview,
  run: ({ subject: app, body, principal }, management) =>
    previewOf(app, { ...body, app }, principal, management),
})

interface Previewed {
  readonly policy: unknown
  readonly window: z.output<typeof options.window>
  readonly against: z.output<typeof options.against>
  readonly time_ms: number
  /** The only app whose requests count; `null`: all of the principal. */
  readonly app: string | null
}

/** The effect of a policy, if it were the one of this owner. */
async function previewOf(
  owner: PolicyOwner,
  { policy, window, against, time_ms: timeMs, app }: Previewed,
  principal: Principal,
  management: ApiContext,
) {
  const { store } = management
  const nowMs = management.nowMs()
  const proposed = checkPolicy(owner, policy, management, '/policy')
  const after = policiesWith(owner, proposed, management)
  const before =
    against === 'current' ? policiesWith(owner, compiledInForce(owner, management), management) : null
  const apps = narrowed(principal.apps, app ?? undefined)
  if (previews === PREVIEWS_MAX)
    throw new Refusal('unavailable', 'too many policy previews are running: try again later', {
      headers: { 'Retry-After': '5' },
    })
  previews++
  try {
    const sinceMs = nowMs - WINDOWS[window].lengthMs
    const read: ReadSightings = async (before, limit) => {
      const { found, next } = await store.sightings.search({ apps, sinceMs }, () => true, before, limit)
      return { sightings: found, next }
    }
    const found = await tryPolicy(read, { after, before, app, sinceMs, nowMs }, { timeMs })
    const counted = await countedIn(window, apps, nowMs, store)
    const shown = principal.apps === ALL_APPS ? found.report : reportForTeam(found.report, owner)
    const warnings = warningsOf(owner, proposed, management)
    return { body: { app, window, against, ...previewed({ ...found, report: shown }), counted, warnings } }
  } finally {
    previews--
  }
}

async function countedIn(
  window: StatsWindow,
  apps: AppScope,
  nowMs: number,
  { appRollups }: ApiContext['store'],
): Promise<number> {
  const { usual } = WINDOWS[window]
  const totals = await appRollups.totals(apps, spanOf(window, usual, nowMs), BUCKETS[usual])
  return [...totals.values()].reduce((sum, { requests }) => sum + requests, 0)
}

/** Of the rules in force of the organisation, a team sees those that matter for its apps, without what they need. */
function reportForTeam({ rules, open, ...report }: ReplayReport, owner: PolicyOwner): ReplayReport {
  const isOwn = ({ layer }: { readonly layer: PolicyLayer }, isProposed: boolean) =>
    layer === 'app' || (isProposed && owner === null)
  return {
    ...report,
    rules: rules.filter((each) => {
      return isOwn(each, each.after !== null) || (each.before ?? 0) + (each.after ?? 0) + each.onTrial > 0
    }),
    open: open.flatMap((each) => {
      if (isOwn(each, each.policy === 'new')) return [each]
      return each.sightings > 0 ? [{ ...each, needs: [] }] : []
    }),
  }
}

function previewed({ report, oldestMs, newestMs, isComplete, leftOut }: PolicyPreview) {
  const { bySettings, rules, transitions, verdicts, agents, paths, open, ...counts } = report
  return {
    from: timeOf(oldestMs),
    to: timeOf(newestMs),
    complete: isComplete,
    ...counts,
    by_settings: bySettings,
    left_out: leftOut,
    transitions: [...transitions],
    rules: rules.map(({ onTrial, ...each }) => ({ ...each, on_trial: onTrial })),
    verdicts: [...verdicts],
    agents: [...agents],
    paths: [...paths],
    open: open.map((each) => ({ ...each, needs: [...each.needs] })),
  }
}

/** A preview works for a second at most, a hundredth of a second at a time. */
const PREVIEWS_MAX = 2
let previews = 0

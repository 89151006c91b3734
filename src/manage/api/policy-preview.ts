import * as z from 'zod'
import { type PolicyPreview, tryPolicy } from '../publish/policy-preview.ts'
import { Refusal } from '../http/refusal.ts'
import { operation } from './operation.ts'
import { checkPolicy, compiledInForce, policyDocument, warnings, warningsOf } from './policy.ts'
import { time, timeOf } from '../http/schemas.ts'
import { WINDOWS, window } from './stats.ts'

const counted = (fields: z.ZodRawShape) => z.array(z.strictObject({ ...fields, count: z.int() }))
const change = { from: z.string(), to: z.string() }
const policyPreview = z
  .strictObject({
    window,
    against: z.enum(['recorded', 'current']),
    from: time.nullable().meta({ description: 'When the first of the requests was seen.' }),
    to: time.nullable(),
    complete: z.boolean().meta({ description: '`false`: there was time only for the newest requests.' }),
    sightings: z.int().meta({ description: 'Requests that were examined.' }),
    unchanged: z.int(),
    changed: z.int(),
    unjudged: z
      .int()
      .meta({ description: 'The result depends on values that are not recorded: see `open`.' }),
    by_settings: z.int().meta({ description: 'Decided by settings of the proxy, regardless of the policy.' }),
    left_out: z.int().meta({ description: 'Corrupt records.' }),
    transitions: counted(change),
    rules: z.array(
      z.strictObject({
        rule: z.string(),
        before: z.int().nullable(),
        after: z.int().nullable(),
        on_trial: z.int(),
      }),
    ),
    agents: counted({ name: z.string(), ...change }),
    paths: counted({ name: z.string(), ...change }),
    warnings,
    open: z.array(
      z.strictObject({
        policy: z.enum(['new', 'old']),
        rule: z.string(),
        needs: z.array(z.string()),
        sightings: z.int(),
      }),
    ),
  })
  .meta({ id: 'PolicyPreview' })

export const previewPolicy = operation({
  id: 'previewPolicy',
  method: 'POST',
  path: '/policy/preview',
  tag: 'Administration',
  summary: 'Preview a policy on recorded requests',
  description:
    'Applies a policy to recorded requests, as far back as `sightings.retention` keeps them. Changes nothing. The same as `gatehouse check --replay`: compares with what was done (`recorded`) or with the policy in force (`current`). The only recorded header is User-Agent, and queries are not recorded. If a rule depends on them, the request counts as `unjudged`.',
  scopes: ['admin'],
  body: z
    .strictObject({
      policy: policyDocument,
      window: window.default('24h').meta({ override: { default: '24h' } }),
      against: z.enum(['recorded', 'current']).default('recorded'),
    })
    .meta({ id: 'PolicyPreviewRequest' }),
  answer: policyPreview,
  run: async ({ body }, management) => {
    const { store } = management
    const nowMs = management.nowMs()
    const after = checkPolicy(body.policy, management, '/policy')
    const before = body.against === 'current' ? compiledInForce(management) : null
    const sinceMs = nowMs - WINDOWS[body.window].lengthMs
    if (previews === PREVIEWS_MAX)
      throw new Refusal('unavailable', 'too many policy previews are running: try again later', {
        headers: { 'Retry-After': '5' },
      })
    previews++
    try {
      const read = (next: number | null, limit: number) => store.sightings.before(next, limit)
      const found = await tryPolicy(read, { after, before, sinceMs, nowMs })
      const said = { window: body.window, against: body.against }
      return { body: { ...previewed(found), ...said, warnings: warningsOf(after, management) } }
    } finally {
      previews--
    }
  },
})

function previewed({ report, oldestMs, newestMs, isComplete, leftOut }: PolicyPreview) {
  const { bySettings, rules, transitions, agents, paths, open, ...counts } = report
  return {
    from: timeOf(oldestMs),
    to: timeOf(newestMs),
    complete: isComplete,
    ...counts,
    by_settings: bySettings,
    left_out: leftOut,
    transitions: [...transitions],
    rules: rules.map(({ onTrial, ...each }) => ({ ...each, on_trial: onTrial })),
    agents: [...agents],
    paths: [...paths],
    open: open.map((each) => ({ ...each, needs: [...each.needs] })),
  }
}

/** A preview works for some seconds, a hundredth of a second at a time. */
const PREVIEWS_MAX = 2
let previews = 0

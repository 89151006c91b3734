import * as z from 'zod'
import { ALL_APPS, type AppList } from '../../apps/app-scope.ts'
import { CASE_STATUSES } from '../../store/engine/tables/cases.ts'
import { SEVERITIES } from '../../store/engine/tables/events.ts'
import type { CaseRecord } from '../../store/events/cases.ts'
import { REASONS, type ThreatReason } from '../events/threats/threat.ts'
import { changed } from '../http/audit.ts'
import { actorOf, type Addressed } from '../http/operation.ts'
import { checkMatch, etagOf, firstHalf, halvedTag } from '../http/precondition.ts'
import { Refusal } from '../http/refusal.ts'
import { severalInQuery, textInQuery, time, timeInQuery, timeOf } from '../http/schemas.ts'
import { type Sight, shownTo, sightOf } from '../intake/personal-data.ts'
import { filteredApps, TEAM_FILTER } from './app-filters.ts'
import { feedbackOnCase, verdictOf } from './case-feedback.ts'
import type { ApiContext } from './context.ts'
import { given, is, rules, when } from './member-rules.ts'
import { type ApiOffered, listing, operation } from './operation.ts'

const NOTE_MAX = 2_000

const threatCase = z
  .strictObject({
    id: z.string().meta({ example: 'cas_x7c1Jq0aT5b2Lw9k' }),
    status: z.enum(CASE_STATUSES).meta({
      description: '`open` until a person changes it. Later events do not open it again.',
    }),
    reason: z.enum(REASONS),
    severity: z.enum(SEVERITIES),
    app: z.string().nullable().meta({ description: 'The id of the app; `null`: it is not about one app.' }),
    campaign_id: z.string().nullable().meta({
      description:
        'The subject of the case: the first that is known of `campaign_id`, `agent_id`, `ja4` and `address`. All are `null` in a case that is about many clients.',
    }),
    agent_id: z.string().nullable().meta({ description: 'The agent that it is, or claims to be.' }),
    ja4: z.string().nullable(),
    address: z.string().nullable().meta({
      description: 'The network (IPv4 /24, IPv6 /48) of clients without a TLS fingerprint.',
    }),
    first_at: time.meta({ description: 'The time of the first event.' }),
    last_at: time.meta({ description: 'The time of the latest event.' }),
    events: z.int().meta({ description: 'The number of its events, also of those that were deleted.' }),
    requests: z.int().meta({ description: 'The number of requests that these events count.' }),
    changed_at: time.nullable().meta({ description: '`null`: no one has changed it.' }),
    changed_by: z.string().nullable().meta({ description: 'The id of the principal that changed it last.' }),
    note: z.string().nullable(),
    feedback: z.int().meta({
      description: 'The number of decisions that got feedback because it is a false alarm.',
    }),
  })
  .meta({ id: 'Case' })
type CaseView = z.output<typeof threatCase>

const caseChanges = z
  .strictObject({
    status: z.enum(CASE_STATUSES).optional(),
    note: z
      .string()
      .max(NOTE_MAX, `is longer than ${NOTE_MAX} characters`)
      .refine((text) => !text.includes('\0'), 'contains the character U+0000')
      .nullable()
      .optional(),
    verdict: z.enum(['human', 'agent']).nullable().optional().meta({
      description:
        'Only with `status: false_alarm`: the correct verdict on the requests of the case, which is given as feedback. `null`: no feedback. Default: `human` for `spoofed_browser`; `agent` for `foreign_address`, `proof_failed` and `proof_contradicted`; no feedback for other reasons, which say nothing about the verdict.',
    }),
  })
  .superRefine(({ status, verdict }, context) => {
    if (verdict !== undefined && status !== 'false_alarm')
      context.addIssue({
        code: 'custom',
        path: ['verdict'],
        message: 'is only allowed with the status false_alarm',
      })
  })
  .meta({
    id: 'CaseChanges',
    override: rules(when(given('verdict'), is('status', { const: 'false_alarm' }))),
  })

const filters = {
  status: z.enum(CASE_STATUSES).optional().meta({ description: 'Only cases of this status.' }),
  reason: severalInQuery(REASONS, 'Only cases of these reasons, separated by commas.'),
  app: textInQuery('Only cases about this app.').optional(),
  ...TEAM_FILTER,
  since: timeInQuery('Only cases with an event from this time on.'),
  until: timeInQuery('Only cases that began before this time.'),
}

const listCases = listing({
  id: 'listCases',
  path: '/cases',
  tag: 'Events',
  summary: 'List cases',
  description:
    'Threats that belong together, the one with the latest event first: a case has the threats of one reason at one app from one subject. A case that gets an event meanwhile moves to the front. `GET /v1/events?case_id=…` lists the events of one. Cases are kept as long as events (`events.retention`) after their last event, and at most 10,000.',
  scopes: ['read'],
  reach: 'filtered',
  name: 'cases',
  isPartFirst: true,
  filters,
  part: async ({ status, reason, since, until, ...apps }, part, management, { principal }) =>
    management.store.cases.list(part, {
      scope: await filteredApps(apps, principal, management),
      status: status ?? null,
      reasons: reason ?? null,
      sinceMs: since === undefined ? null : Date.parse(since),
      untilMs: until === undefined ? null : Date.parse(until),
    }),
  items: {
    schema: threatCase,
    show: (records, _, principal) => records.map((each) => shown(each, sightOf(principal))),
  },
})

const byId = {
  params: z.strictObject({ id: z.string().max(100).meta({ example: 'cas_x7c1Jq0aT5b2Lw9k' }) }),
  find: ({ params, principal }: Addressed<{ id: string }>, { store }: ApiContext) =>
    store.cases.byId(params.id, principal.apps),
}

const getCase = operation({
  id: 'getCase',
  method: 'GET',
  path: '/cases/{id}',
  tag: 'Events',
  summary: 'Get a case',
  scopes: ['read'],
  reach: 'filtered',
  ...byId,
  answer: threatCase,
  run: ({ subject, principal }) => answerWith(subject, sightOf(principal)),
})

const updateCase = operation({
  id: 'updateCase',
  method: 'PATCH',
  path: '/cases/{id}',
  tag: 'Events',
  summary: 'Change the status of a case',
  description:
    'Omitted fields are unchanged. `accepted`: the threat is known, and nothing more is to be done about it. `false_alarm`: it is not a threat. The decisions on the requests of its newest 20 events then get feedback as by `POST /v1/feedback`, as far as these requests are kept and the credentials are for all apps. `If-Match` is supported, and events in the meantime do not count as a change.',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  body: caseChanges,
  examples: { body: { status: 'accepted', note: 'our own load test' } },
  answer: threatCase,
  problems: ['precondition_failed', 'needs_all_apps'],
  run: async (call, management) => {
    const { store, nowMs } = management
    const { subject, principal, ifMatch } = call
    const { id, app, version } = subject
    checkMatch(firstHalf(ifMatch), tagOfChanges(subject))
    const { status, note, verdict: asked } = call.body
    const before = { status: subject.status, note: subject.note }
    const verdict = status === 'false_alarm' ? verdictOf(subject, asked, principal) : null
    // Before the change: if this process is killed in between, the case is still open, and a repetition gives the same feedback.
    const feedback = verdict === null ? 0 : await feedbackOnCase(subject, verdict, actorOf(call), management)
    const after = { ...(status !== undefined && { status, feedback }), ...(note !== undefined && { note }) }
    const apps: AppList = app === null ? ALL_APPS : [app]
    const detail = { before, after }
    const atMs = nowMs()
    await changed(
      store,
      actorOf(call),
      { action: 'updateCase', subject: id, apps, detail },
      atMs,
      async (queries) => {
        const wanted = ifMatch === null || ifMatch.trim() === '*' ? null : version
        const change = { ...after, by: principal.id, atMs }
        if (await store.cases.change(id, wanted, change, queries)) return
        throw wanted === null
          ? gone()
          : new Refusal('precondition_failed', 'the case was changed or deleted meanwhile: read it again')
      },
    )
    return answerWith((await store.cases.byId(id, principal.apps)) ?? refuseGone(), sightOf(principal))
  },
})

export const CASE_OPERATIONS: readonly ApiOffered[] = [listCases, getCase, updateCase]

function answerWith(record: CaseRecord, sight: Sight) {
  const body = shown(record, sight)
  return { body, headers: { ETag: halvedTag(tagOfChanges(record), body) } }
}

function tagOfChanges({ id, version }: CaseRecord): string {
  return etagOf([id, version])
}

function shown(record: CaseRecord, sight: Sight): CaseView {
  const { id, status, reason, severity, app, campaign, agent, ja4, address, events, requests } = record
  return shownTo(sight, {
    ...{ id, status, reason: reason as ThreatReason, severity, app },
    ...{ campaign_id: campaign, agent_id: agent, ja4, address },
    first_at: timeOf(record.firstAtMs),
    last_at: timeOf(record.lastAtMs),
    ...{ events, requests },
    changed_at: timeOf(record.changedAtMs),
    changed_by: record.changedBy,
    note: record.note,
    feedback: record.feedback,
  })
}

function gone(): Refusal {
  return new Refusal('not_found', 'case not found: it was deleted')
}

function refuseGone(): never {
  throw gone()
}

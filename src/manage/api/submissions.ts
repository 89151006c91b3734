import * as z from 'zod'
import { wrongInFingerprint } from '../../classify/known/fingerprint-form.ts'
import { wrongInName } from '../../classify/known/name-likeness.ts'
import type { ApiContext } from './context.ts'
import type { Submitted } from '../judging/submissions/analyse.ts'
import { review } from '../judging/submissions/review.ts'
import { LIST_MAX, submit, type Taken } from '../judging/submissions/submit.ts'
import { is, mayBe, rules } from './member-rules.ts'
import { actorOf, type Call } from '../http/operation.ts'
import { type ApiOffered, type ApiVersioned, listing, operation } from './operation.ts'
import { signature, signatureWithEvidence } from '../judging/signature-schemas.ts'
import {
  category,
  purposes,
  shown,
  shownAll,
  shownAtOnce,
  shownWithEvidence,
  status,
  submissionAnswer,
  submitAnswer,
  type,
} from './submission-views.ts'

/** Without the members that only an acceptance takes. */
const ONLY_DECISION = rules(mayBe('agent_id', { type: 'null' }), mayBe('despite_people', { const: false }))

const agentName = z
  .string()
  .max(100, 'is longer than 100 characters')
  .transform((name) => name.normalize('NFC'))
  .superRefine((name, context) => {
    const message = wrongInName(name)
    if (message !== null) context.addIssue({ code: 'custom', message })
  })

const submission = z
  .strictObject({
    fingerprint: z.string().max(200, 'is longer than 200 characters').meta({
      description: 'The whole fingerprint. No part of it may be `*`.',
      example: 't13d1312h2_f57a46bbacb6_ab7e3b40a677',
    }),
    type,
    agent_name: agentName
      .nullish()
      .meta({ description: 'The agent that has it: a known agent or a new one.' }),
    category: category.nullish().meta({ description: 'The category of a new agent.' }),
    purpose: purposes
      .refine((list) => new Set(list).size === list.length, 'contains a purpose twice')
      .nullish()
      .meta({ description: 'What a new agent is for.', uniqueItems: true }),
    user_agent: z
      .string()
      .max(1_024, 'is longer than 1,024 characters')
      .regex(/^[\x20-\x7e\x80-\xff]*$/, 'is not a valid header value')
      .nullish()
      .meta({ description: 'The User-Agent that was sent with it.' }),
    notes: z
      .string()
      .max(2_000, 'is longer than 2,000 characters')
      .refine((text) => !UNSEEN.test(text), 'contains an invisible character')
      .nullish()
      .meta({ description: 'A note for the reviewer, in plain text.' }),
  })
  .superRefine(({ fingerprint, type }, context) => {
    const message = wrongInFingerprint(type, fingerprint, false)
    if (message !== null) context.addIssue({ code: 'custom', path: ['fingerprint'], message })
  })
  .meta({ id: 'SubmissionRequest' })

const submissionList = z
  .strictObject({
    submissions: z
      .array(submission)
      .min(1, 'is empty')
      .max(LIST_MAX, `has more than ${LIST_MAX.toLocaleString('en')} submissions`),
  })
  .meta({ id: 'SubmissionsRequest' })

const submitting = {
  id: 'submitSignature',
  method: 'POST' as const,
  path: '/signatures/submit' as const,
  tag: 'Signatures' as const,
  summary: 'Submit fingerprints',
  description: `One, or a list of up to ${LIST_MAX.toLocaleString('en')}. If one of them is malformed, the whole list is rejected. Each is analysed at once: its format, whether it is possible, which software is known to have it or parts of it, and live traffic.

- \`pending\`: an administrator decides. Until then it is counted on live traffic and changes no verdict.
- \`accepted\`: the analysis found no objection, and \`submissions.auto_accept\` is on.
- \`duplicate\`: it is already known or pending.
- \`rejected\`: it is impossible, or accepting it would do harm, for example because browsers have it.`,
  scopes: ['write'] as const,
  reach: 'organisation' as const,
  body: z.union([submission, submissionList]),
  problems: ['conflict', 'unavailable'] as const,
  isIdempotent: true,
}

const submitSignature: ApiVersioned = {
  v1: operation({
    ...submitting,
    answer: submitAnswer(signature),
    run: async (call, management) => {
      const taken = await submitted(call, management)
      return { body: { submissions: taken.map(shownAtOnce) } }
    },
  }),
  v2: operation({
    ...submitting,
    answer: submitAnswer(signatureWithEvidence),
    run: async (call, management) => {
      const taken = await submitted(call, management)
      return { body: { submissions: await shownWithEvidence(taken, management) } }
    },
  }),
}

const listSubmissions = listing({
  id: 'listSubmissions',
  path: '/submissions',
  tag: 'Signatures',
  summary: 'List submissions',
  description: 'Newest first.',
  scopes: ['admin'],
  reach: 'organisation',
  name: 'submissions',
  isPartFirst: true,
  filters: {
    status: status.optional().meta({ description: 'Only submissions with this status.' }),
    type: type.optional().meta({ description: 'Only fingerprints of this type.' }),
    q: z
      .string()
      .max(200, 'is longer than 200 characters')
      .refine((text) => !UNSEEN.test(text), 'contains an invisible character')
      .optional()
      .meta({ description: 'A text in the fingerprint, or in the name or the id of the agent.' }),
  },
  part: ({ status = null, type = null, q }, part, { store }) => {
    const text = q === undefined || q === '' ? null : q
    return store.submissions.list({ status, type, text }, part)
  },
  items: { schema: submissionAnswer, show: shownAll },
})

const byId = {
  params: z.strictObject({ id: z.string().regex(/^[\w-]{1,64}$/) }),
  find: ({ params }: { readonly params: { readonly id: string } }, { store }: ApiContext) =>
    store.submissions.byId(params.id),
}

const getSubmission = operation({
  id: 'getSubmission',
  method: 'GET',
  path: '/submissions/{id}',
  tag: 'Signatures',
  summary: 'Get a submission',
  description: 'Includes what live traffic has shown about it since it was submitted.',
  scopes: ['admin'],
  reach: 'organisation',
  ...byId,
  answer: submissionAnswer,
  run: async ({ subject }, management) => ({ body: await shown(subject, management) }),
})

const reviewSubmission = operation({
  id: 'reviewSubmission',
  method: 'POST',
  path: '/submissions/{id}/review',
  tag: 'Signatures',
  summary: 'Decide on a submission',
  description: `- \`accept\`: the fingerprint is used in verdicts from now on. If the agent is unknown, it is created.
- \`reject\`: the fingerprint is not used.
- \`rollback\`: undoes an earlier \`accept\`. The signature is removed, and so is the agent if accepting created it and it has no other signature.

If two decisions are sent at once, the later one gets 409, which names the state.`,
  scopes: ['admin'],
  reach: 'organisation',
  ...byId,
  body: z
    .strictObject({
      decision: z.enum(['accept', 'reject', 'rollback']),
      agent_id: z.string().min(1, 'is empty').max(200, 'is longer than 200 characters').nullish().meta({
        description: 'The agent that has it, if it differs from the submitted one: its id or its name.',
      }),
      despite_people: z.boolean().optional().meta({
        description: 'Accepts the fingerprint even if live traffic shows that people have it.',
      }),
    })
    .superRefine(({ decision, agent_id, despite_people }, context) => {
      if (decision === 'accept') return
      const message = 'is only allowed with the decision accept'
      if (typeof agent_id === 'string') context.addIssue({ code: 'custom', path: ['agent_id'], message })
      if (despite_people === true) context.addIssue({ code: 'custom', path: ['despite_people'], message })
    })
    .meta({
      id: 'SubmissionReview',
      override: { anyOf: [is('decision', { const: 'accept' }), ONLY_DECISION] },
    }),
  answer: submissionAnswer,
  problems: ['conflict', 'unavailable'],
  run: async (call, management) => {
    const { decision, agent_id, despite_people } = call.body
    const wanted = { decision, agentId: agent_id ?? null, isDespitePeople: despite_people ?? false }
    await review(call.subject, wanted, actorOf(call), management)
    const decided = await management.store.submissions.byId(call.subject.id)
    return { body: await shown(decided ?? call.subject, management) }
  },
})

export const SUBMISSION_OPERATIONS: readonly ApiOffered[] = [
  submitSignature,
  listSubmissions,
  getSubmission,
  reviewSubmission,
]

type Submitting = Call<unknown, unknown, z.output<typeof submitting.body>, unknown>

function submitted(call: Submitting, management: ApiContext): Promise<readonly Taken[]> {
  const { body } = call
  const list = ('submissions' in body ? body.submissions : [body]).map(submittedOf)
  return submit(list, actorOf(call), management)
}

function submittedOf(given: z.output<typeof submission>): Submitted {
  return {
    type: given.type,
    value: given.fingerprint,
    agentName: given.agent_name ?? null,
    category: given.category ?? null,
    purposes: given.purpose ?? [],
    userAgent: given.user_agent ?? null,
    notes: given.notes ?? null,
  }
}

/** Characters that are invisible or change the direction of text, except line ends and tabs. */
const UNSEEN = /(?![\n\r\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

import * as z from 'zod'
import { wrongInFingerprint } from '../../classify/known/fingerprint-form.ts'
import { wrongInName } from '../../classify/known/name-likeness.ts'
import type { Management } from '../management.ts'
import type { Submitted } from '../judging/submissions/analyse.ts'
import { review } from '../judging/submissions/review.ts'
import { LIST_MAX, submit, type Taken } from '../judging/submissions/submit.ts'
import { listing } from '../http/listing.ts'
import { is, mayBe, rules } from './member-rules.ts'
import { actorOf, type Call, operation } from '../http/operation.ts'
import { signature, signatureWithEvidence } from '../judging/signature-schemas.ts'
import {
  category,
  shown,
  shownAll,
  shownAtOnce,
  shownWithEvidence,
  status,
  submissionAnswer,
  submitAnswer,
  type,
} from './submission-views.ts'
import type { Offered, Versioned } from '../http/version.ts'

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
      description: 'Whole: no part of it may be `*`.',
      example: 't13d1312h2_f57a46bbacb6_ab7e3b40a677',
    }),
    type,
    agent_name: agentName
      .nullish()
      .meta({ description: 'Whose it is: an agent that is known, or a new one.' }),
    category: category.nullish().meta({ description: 'Of an agent that is new.' }),
    user_agent: z
      .string()
      .max(1_024, 'is longer than 1,024 characters')
      .regex(/^[\x20-\x7e\x80-\xff]*$/, 'is no value of a header')
      .nullish()
      .meta({ description: 'The User-Agent that it comes with.' }),
    notes: z
      .string()
      .max(2_000, 'is longer than 2,000 characters')
      .refine((text) => !UNSEEN.test(text), 'has a character that nobody sees')
      .nullish()
      .meta({ description: 'For who reviews it: plain text.' }),
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
  description: `One, or a list of up to ${LIST_MAX.toLocaleString('en')}; if one of them is not well formed none is taken. Each is analysed at once: its form, whether anything can have it, who is known to have it or parts of it, and live traffic.

- \`pending\`: an administrator decides. Meanwhile it is counted on live traffic, and changes no verdict.
- \`accepted\`: nothing speaks against it, and the setting \`submissions.auto_accept\` is on.
- \`duplicate\`: it is known, or waits already.
- \`rejected\`: it cannot be, or accepting it would do harm, as with the fingerprints of browsers.`,
  scopes: ['write'] as const,
  body: z.union([submission, submissionList]),
  problems: ['conflict', 'unavailable'] as const,
  isIdempotent: true,
}

const submitSignature: Versioned = {
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
  name: 'submissions',
  isPartFirst: true,
  filters: {
    status: status.optional().meta({ description: 'Only those that have come so far.' }),
    type: type.optional().meta({ description: 'Only of this kind of fingerprint.' }),
    q: z
      .string()
      .max(200, 'is longer than 200 characters')
      .refine((text) => !UNSEEN.test(text), 'has a character that nobody sees')
      .optional()
      .meta({ description: 'Is in the fingerprint, or in the name or the id of the agent.' }),
  },
  part: ({ status = null, type = null, q }, part, { store }) => {
    const text = q === undefined || q === '' ? null : q
    return store.submissions.list({ status, type, text }, part)
  },
  items: { schema: submissionAnswer, show: shownAll },
})

const byId = {
  params: z.strictObject({ id: z.string().regex(/^[\w-]{1,64}$/) }),
  find: ({ params }: { readonly params: { readonly id: string } }, { store }: Management) =>
    store.submissions.byId(params.id),
}

const getSubmission = operation({
  id: 'getSubmission',
  method: 'GET',
  path: '/submissions/{id}',
  tag: 'Signatures',
  summary: 'Show a submission',
  description: 'With what live traffic has shown of it since it came.',
  scopes: ['admin'],
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
  description: `- \`accept\`: from now on requests are judged by it. An agent that is not known is made.
- \`reject\`: nothing comes of it.
- \`rollback\`: of one that was accepted; the signature is taken back, and the agent, too, if accepting it has made it and nothing else is known of it.

Of two who decide at once one gets 409, which names the state.`,
  scopes: ['admin'],
  ...byId,
  body: z
    .strictObject({
      decision: z.enum(['accept', 'reject', 'rollback']),
      agent_id: z.string().min(1, 'is empty').max(200, 'is longer than 200 characters').nullish().meta({
        description:
          'Whose it is, in the place of whom it was submitted for: the id or the name of an agent.',
      }),
      despite_people: z.boolean().optional().meta({
        description: 'Accepts what live traffic says that people have.',
      }),
    })
    .superRefine(({ decision, agent_id, despite_people }, context) => {
      if (decision === 'accept') return
      const message = 'is for the decision accept'
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

export const SUBMISSION_OPERATIONS: readonly Offered[] = [
  submitSignature,
  listSubmissions,
  getSubmission,
  reviewSubmission,
]

type Submitting = Call<unknown, unknown, z.output<typeof submitting.body>, unknown>

function submitted(call: Submitting, management: Management): Promise<readonly Taken[]> {
  const { body } = call
  const list = ('submissions' in body ? body.submissions : [body]).map(submittedOf)
  return submit(list, actorOf(call), management)
}

function submittedOf(given: z.output<typeof submission>): Submitted {
  return {
    ...{ type: given.type, value: given.fingerprint },
    agentName: given.agent_name ?? null,
    category: given.category ?? null,
    userAgent: given.user_agent ?? null,
    notes: given.notes ?? null,
  }
}

/** Characters that are invisible or change the direction of text, except line ends and tabs. */
const UNSEEN = /(?![\n\r\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

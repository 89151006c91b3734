import * as z from 'zod'
import { type Counted, giveFeedback, OUTCOMES } from '../judging/feedback.ts'
import { exactlyOne, given, is, rules, when } from './member-rules.ts'
import { actorOf } from '../http/operation.ts'
import { type ApiOperation, operation } from './operation.ts'
import { time, timeOf } from '../http/schemas.ts'

const id = z.string().regex(/^[\w.:=-]{1,128}$/, 'is not a valid id of a decision or a request')

const feedbackRequest = z
  .strictObject({
    request_id: id.optional().meta({ description: 'The `request_id` in an answer of `/detect`.' }),
    decision_id: id.optional().meta({ description: 'The decision on a proxied request.' }),
    verdict: z.enum(['agent', 'human']).meta({ description: 'The correct verdict.' }),
    agent: z.string().min(1, 'is empty').max(200, 'is longer than 200 characters').optional().meta({
      description: 'The correct agent: its id or its name.',
    }),
  })
  .superRefine((request, context) => {
    if ((request.request_id === undefined) === (request.decision_id === undefined)) {
      const message = 'give exactly one of request_id and decision_id'
      context.addIssue({ code: 'custom', path: ['decision_id'], message })
    }
    if (request.agent !== undefined && request.verdict === 'human')
      context.addIssue({ code: 'custom', path: ['agent'], message: 'is only allowed with the verdict agent' })
  })
  .meta({
    id: 'FeedbackRequest',
    override: rules(
      exactlyOne('request_id', 'decision_id'),
      when(given('agent'), is('verdict', { const: 'agent' })),
    ),
  })

const feedback = z
  .strictObject({
    id: z.string(),
    decision_id: z.string(),
    verdict: z.enum(['agent', 'human']),
    agent_id: z.string().nullable(),
    outcome: z.enum(OUTCOMES).meta({ description: 'How the decision compares with this feedback.' }),
    decided: z
      .strictObject({ verdict: z.string(), agent_id: z.string().nullable() })
      .meta({ description: 'The verdict at the time.' }),
    counted_for: z
      .array(z.strictObject({ type: z.string(), fingerprint: z.string() }))
      .meta({ description: 'The fingerprints of the request.' }),
    created_at: time,
  })
  .meta({ id: 'Feedback' })

const sendFeedback = operation({
  id: 'giveFeedback',
  method: 'POST',
  path: '/feedback',
  tag: 'Detection',
  summary: 'Give feedback on a decision',
  description:
    'A false positive or a false negative is counted for the fingerprints of the request, once for each decision. Later feedback on the same decision replaces the earlier one. Feedback is possible while the sighting of the request is kept, and on the newest 10,000 answers of `/detect`.',
  scopes: ['admin'],
  reach: 'organisation',
  body: feedbackRequest,
  examples: { body: { decision_id: '01995f0c-9f0e-7d1b-8c36-2d9a3f6a7b10', verdict: 'human' } },
  answer: feedback,
  problems: ['not_found'],
  run: async (call, management) => {
    const { request_id, decision_id, verdict, agent } = call.body
    const told = {
      requestId: request_id ?? null,
      decisionId: decision_id ?? null,
      verdict,
      agent: agent ?? null,
    }
    return { body: shown(await giveFeedback(told, actorOf(call), management)) }
  },
})

export const FEEDBACK_OPERATIONS: readonly ApiOperation[] = [sendFeedback]

function shown(counted: Counted): z.output<typeof feedback> {
  const { id, decisionId, told, toldSoftwareId, outcome, verdict, verdictSoftwareId, fingerprints } = counted
  return {
    id,
    decision_id: decisionId,
    verdict: told,
    agent_id: toldSoftwareId,
    outcome,
    decided: { verdict, agent_id: verdictSoftwareId },
    counted_for: fingerprints.map(({ type, value }) => ({ type, fingerprint: value })),
    created_at: timeOf(counted.atMs),
  }
}

import * as z from 'zod'
import { balanceOf } from '../judging/balance.ts'
import { knowledgeOf } from '../judging/detection.ts'
import type { ApiContext } from './context.ts'
import { operation } from './operation.ts'
import type { Principal } from '../http/access/principal.ts'
import { VERDICTS } from './request-views.ts'

const weight = z.number()
const requestEvidence = z
  .strictObject({
    request_id: z.string(),
    verdict: z.enum(VERDICTS),
    program: z.enum(['agent', 'automation']).meta({
      description:
        'What the evidence is weighed for against a person: the program of the verdict, or the likelier one.',
    }),
    start: weight.meta({ description: 'The weight before any evidence.' }),
    evidence: z.array(z.strictObject({ kind: z.string(), detail: z.string(), weight })).meta({
      description:
        'The strongest first. Weights are natural logarithms of odds: above zero for the program, below zero for a person. Proofs of identity have the weight 0: they decide by themselves.',
    }),
    sum: weight.meta({
      description:
        'Of `start` and all evidence. 0: even odds. A claimed browser needs evidence against the claim, too, to be classified as a program.',
    }),
  })
  .meta({ id: 'RequestEvidence' })

export const getRequestEvidence = operation({
  id: 'getRequestEvidence',
  method: 'GET',
  path: '/requests/{id}/evidence',
  tag: 'Statistics',
  summary: 'Weigh the evidence of a request',
  description:
    'How each piece of its evidence speaks for a person or for a program, by the weights of today. The proxy decided by those of its time.',
  scopes: ['read'],
  reach: 'filtered',
  params: z.strictObject({ id: z.string().max(100) }),
  answer: requestEvidence,
  find: (
    { params, principal }: { readonly params: { readonly id: string }; readonly principal: Principal },
    { store }: ApiContext,
  ) => store.sightings.byId(params.id, principal.apps),
  run: async ({ subject }, management) => {
    const verdict = VERDICTS.find((each) => each === subject.verdict) ?? 'unknown'
    const { program, start, evidence, sum } = balanceOf(knowledgeOf(management), subject.evidence, verdict)
    return {
      body: {
        ...{ request_id: subject.id, verdict, program, start, sum },
        evidence: evidence.map((each) => ({ ...each })),
      },
    }
  },
})

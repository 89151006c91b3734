import * as z from 'zod'
import { DEFAULT_APP } from '../../apps/app.ts'
import { ALL_APPS } from '../../apps/app-scope.ts'
import { POLICY_LAYERS } from '../../policy/action.ts'
import { compared, type Contradiction } from '../../terms/contradictions.ts'
import { Effort } from '../../terms/effort.ts'
import { publishedTerms } from '../../terms/published-terms.ts'
import { robotsForm } from '../../terms/robots-form.ts'
import { RobotsTxt } from '../../terms/robots-txt.ts'
import { rslForm } from '../../terms/rsl-form.ts'
import { usagesOf } from '../../terms/usage-form.ts'
import { knowledgeOf } from '../judging/detection.ts'
import type { Principal } from '../http/access/principal.ts'
import { checkApp, ofApp } from './app-access.ts'
import type { ApiContext } from './context.ts'
import { operation } from './operation.ts'
import { checkPolicy, compiledInForce, policyFor, type PolicyOwner } from './policy-layer.ts'
import { appPolicyDocument, policyDocument } from './policy-schemas.ts'

const options = {
  host: z.string().max(255).optional().meta({
    description: 'The site, if the policy tells hosts apart.',
    example: 'shop.example',
  }),
  robots: z.string().max(65_536).optional().meta({
    description: 'The robots.txt of the app. Its rules are kept, and compared with the policy.',
  }),
}

const terms = z
  .strictObject({
    robots: z.string().meta({ description: 'A robots.txt with Content-Usage and Content-Signal rules.' }),
    content_usage: z
      .array(z.strictObject({ path: z.string(), value: z.string() }))
      .meta({ description: 'The value of the header by path. Empty: the policy treats all uses alike.' }),
    rsl: z.string().meta({ description: 'An RSL 1.0 document.' }),
    unpublished: z
      .array(z.strictObject({ rule: z.string(), layer: z.enum(POLICY_LAYERS) }))
      .meta({ description: 'Rules in force whose paths stand in an expression, so that no form has them.' }),
    contradictions: z
      .array(
        z.strictObject({
          kind: z.enum(['refused', 'let_in']).meta({
            description:
              '`refused`: the file allows it, and the policy turns the crawler away. `let_in`: the other way round.',
          }),
          path: z.string().meta({ description: 'A pattern of robots.txt.' }),
          line: z.int().nullable().meta({ description: '`null`: no line is about it, so it is allowed.' }),
          rule: z.string().nullable(),
          user_agents: z.array(z.string()),
        }),
      )
      .nullable()
      .meta({ description: '`null`: without `robots`.' }),
    complete: z.boolean().meta({
      description:
        '`false`: there may be more contradictions, because comparing the patterns takes too long.',
    }),
  })
  .meta({ id: 'PolicyTerms' })

export const showTerms = operation({
  id: 'showTerms',
  method: 'POST',
  path: '/policy/terms',
  tag: 'Administration',
  summary: 'Show a policy in the forms that crawlers read',
  description:
    'robots.txt, Content-Usage and RSL, as `gatehouse publish` prints them, and where a robots.txt of the app contradicts the policy. Changes nothing. Default: the policies in force.',
  scopes: ['admin'],
  reach: 'filtered',
  body: z
    .strictObject({
      app: z.string().max(63).optional().meta({
        description: 'The id of the app whose rules are published, too. Default: `default`.',
        example: 'default',
      }),
      policy: policyDocument.optional(),
      ...options,
    })
    .meta({ id: 'PolicyTermsRequest' }),
  answer: terms,
  problems: ['not_found'],
  run: async ({ body, principal }, management) => {
    const { app = DEFAULT_APP } = body
    await checkApp(app, principal, management)
    return termsOf({ ...body, app, owner: null }, principal, management)
  },
})

export const showAppTerms = operation({
  id: 'showAppTerms',
  method: 'POST',
  path: '/apps/{app_id}/policy/terms',
  tag: 'Apps',
  summary: 'Show the policy of an app in the forms that crawlers read',
  description:
    'Like `POST /policy/terms`. `policy` takes the place of the policy of the app, between the `first` and `last` rules of the organisation.',
  scopes: ['admin'],
  reach: 'filtered',
  ...ofApp,
  body: z
    .strictObject({ policy: appPolicyDocument.optional(), ...options })
    .meta({ id: 'AppPolicyTermsRequest' }),
  answer: terms,
  run: ({ subject: app, body, principal }, management) =>
    termsOf({ ...body, app, owner: app }, principal, management),
})

interface Asked {
  readonly app: string
  /** `policy` is in place of the one of this owner; `undefined`: the policies in force. */
  readonly owner: PolicyOwner
  readonly policy?: unknown
  readonly host?: string | undefined
  readonly robots?: string | undefined
}

function termsOf({ app, owner, policy, host, robots }: Asked, { apps }: Principal, management: ApiContext) {
  const own =
    policy === undefined
      ? compiledInForce(owner, management)
      : checkPolicy(owner, policy, management, '/policy')
  const layered = policyFor(app, owner, own, management)
  const published = publishedTerms(layered, knowledgeOf(management), host ?? null, management.nowMs())
  const file = robots === undefined ? null : RobotsTxt.parse(robots)
  const comparison = file === null ? null : compared(published, file, new Effort())
  const form = { own: file, hasUsage: true, hasSignals: true, license: null }
  // What the rules of the organisation are called is for callers that may see them.
  const unpublished = published.unlisted.filter(
    ({ layer }) => layer === 'app' || apps === ALL_APPS || (owner === null && policy !== undefined),
  )
  return {
    body: {
      robots: Buffer.from(robotsForm(published, form), 'latin1').toString(),
      content_usage: usagesOf(published).map(({ pattern, value }) => ({ path: pattern, value })),
      rsl: rslForm(published),
      unpublished: unpublished.map(({ rule, layer }) => ({ rule, layer })),
      contradictions: comparison === null ? null : comparison.contradictions.map(shownContradiction),
      complete: comparison?.isComplete ?? true,
    },
  }
}

function shownContradiction({ kind, pattern, line, tokens }: Contradiction) {
  return {
    kind: kind === 'let-in' ? ('let_in' as const) : kind,
    path: pattern,
    line: line?.lineNumber ?? null,
    rule: line?.line ?? null,
    user_agents: [...tokens],
  }
}

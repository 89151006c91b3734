import * as z from 'zod'
import { DEFAULT_APP } from '../../apps/app.ts'
import { ALL_APPS } from '../../apps/app-scope.ts'
import { parseSoftware } from '../../classify/known/software.ts'
import { PAYMENT_SCHEMES } from '../../policy/charging/charge.ts'
import { type Action, POLICY_LAYERS } from '../../policy/action.ts'
import { honest } from '../../terms/published-terms.ts'
import { type TouchingRule, touchingRules } from '../../terms/touching-rules.ts'
import type { Principal } from '../http/access/principal.ts'
import { textInQuery, time, timeOf } from '../http/schemas.ts'
import { checkApp } from './app-access.ts'
import { type ApiOperation, operation } from './operation.ts'
import { compiledInForce, policyFor } from './policy-layer.ts'
import { softwareInPath } from './software-id.ts'

const action = z.enum(['pass', 'tag', 'block', 'rate_limit', 'tarpit', 'redirect', 'route', 'charge'])
const agentRules = z
  .strictObject({
    agent_id: z.string(),
    app: z.string().meta({ description: 'The app whose requests these rules are for.' }),
    rules: z
      .array(
        z.strictObject({
          rule: z.string(),
          layer: z.enum(POLICY_LAYERS).meta({
            description:
              'Where the rule stands: in the policy of the app, or in that of the organisation, before it (`first`) or after it (`last`).',
          }),
          action,
          dry_run: z.boolean(),
          expires_at: time.nullable(),
          limit: z
            .strictObject({
              requests: z.int(),
              window_ms: z.int(),
              per: z.enum(['agent', 'fingerprint', 'address']),
            })
            .nullable()
            .meta({ description: 'Of `rate_limit`.' }),
          price: z
            .strictObject({
              amount: z.string().meta({ example: '0.002' }),
              currency: z.string().meta({ example: 'USD' }),
              schemes: z.array(z.enum(PAYMENT_SCHEMES)),
              pass_ms: z.int().nullable().meta({
                description: 'How long one payment lets its payer in. `null`: for one request.',
              }),
            })
            .nullable()
            .meta({ description: 'Of `charge`.' }),
          depends_on: z.array(z.string()).meta({
            description:
              'The names of its conditions that only a request can answer, like `path` or `verified`. Empty: it holds for every request of the agent.',
          }),
        }),
      )
      .meta({
        description:
          'In the order in which they are tried, up to the first that holds for every request. Callers that are limited to some apps see, of the rules of the organisation, those that hold for every request.',
      }),
    otherwise: action.nullable().meta({
      description: 'What happens if none of the rules holds. `null`: the last one holds in any case.',
    }),
  })
  .meta({ id: 'AgentRules' })

const getAgentRules = operation({
  id: 'getAgentRules',
  method: 'GET',
  path: '/agents/{agent_id}/rules',
  tag: 'Administration',
  summary: 'List the rules that touch an agent',
  description:
    'The rules in force that can decide about requests of the agent to one app. What they ask of the agent itself is true of it; the rest depends on the request.',
  scopes: ['admin'],
  reach: 'filtered',
  params: z.strictObject({ agent_id: z.string() }),
  find: softwareInPath,
  query: z.strictObject({
    app: textInQuery(
      'The app, by its id. Default: `default`, or the first app of callers that are limited to some apps.',
      63,
    ).optional(),
  }),
  answer: agentRules,
  problems: ['not_found'],
  run: async ({ subject, query, principal }, management) => {
    const { apps } = principal
    const app = query.app ?? usualApp(principal)
    await checkApp(app, principal, management)
    const policy = policyFor(app, null, compiledInForce(null, management), management)
    const software = parseSoftware(JSON.parse(subject.document))
    const { rules, isSettled } = touchingRules(policy, verdictOn(software), management.nowMs())
    const shown = rules.filter(({ rule, dependsOn }) => {
      // Rules of the organisation may name hosts and paths of other apps.
      return apps === ALL_APPS || rule.decision.layer === 'app' || dependsOn.length === 0
    })
    return {
      body: {
        agent_id: subject.id,
        app,
        rules: shown.map(shownRule),
        otherwise: isSettled ? null : policy.otherwise.action.kind,
      },
    }
  },
})

export const AGENT_RULE_OPERATIONS: readonly ApiOperation[] = [getAgentRules]

function usualApp({ apps }: Principal): string {
  if (apps === ALL_APPS || apps.has(DEFAULT_APP)) return DEFAULT_APP
  return [...apps].toSorted()[0] ?? DEFAULT_APP
}

/** Tools are no agents: requests that name one are automation. */
function verdictOn(software: ReturnType<typeof parseSoftware>) {
  const verdict = honest(software)
  return software.kind === 'agent' ? verdict : { ...verdict, kind: 'automation' as const, agent: null }
}

function shownRule({ rule, dependsOn }: TouchingRule) {
  const { decision, isDryRun, expiresMs } = rule
  return {
    rule: decision.rule,
    layer: decision.layer,
    action: decision.action.kind,
    dry_run: isDryRun,
    expires_at: Number.isFinite(expiresMs) ? timeOf(expiresMs) : null,
    limit: limitOf(decision.action),
    price: priceOf(decision.action),
    depends_on: [...dependsOn],
  }
}

function limitOf(action: Action) {
  if (action.kind !== 'rate_limit') return null
  const { requests, windowMs, per } = action
  return { requests, window_ms: windowMs, per }
}

function priceOf(action: Action) {
  if (action.kind !== 'charge') return null
  const { price, currency, schemes, passMs } = action
  return { amount: price, currency, schemes: [...schemes], pass_ms: passMs === 0 ? null : passMs }
}

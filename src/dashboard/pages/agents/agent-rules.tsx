import type { AgentRules } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { useChosenApp, withApp, withQuery } from '../../parts/chosen/app.ts'
import { duration, whole } from '../../parts/format.ts'
import { Answered, Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { FullTime } from '../../parts/time.tsx'

type Rule = AgentRules['rules'][number]

/** The terms of an agent: the rules that can decide about its requests. For administrators only. */
export function AgentRulesSection({ id }: { readonly id: string }) {
  const { answer: me } = useAsked('getMe', {})
  if (me === null || !me.scopes.includes('admin')) return null
  return <Shown id={id} />
}

function Shown({ id }: { readonly id: string }) {
  const app = useChosenApp()
  const used = useAsked('getAgentRules', {
    path: { agent_id: id },
    query: app === null ? {} : { app },
  })
  return (
    <section class="card" aria-labelledby="terms">
      <h2 id="terms">Its terms</h2>
      <Answered used={used}>
        {({ app, rules, otherwise }) => (
          <>
            <p>
              The rules that can decide about its requests to the app {app}, in the order in which they are
              tried.
            </p>
            {rules.length === 0 ? (
              <Empty title="No rule is about this agent" />
            ) : (
              <Table
                label="Rules that touch this agent"
                rows={rules}
                keyOf={({ layer, rule }) => `${layer} ${rule}`}
                columns={columnsFor(id, app)}
              />
            )}
            <p>
              {otherwise === null ? (
                'The last rule decides about all requests that come to it.'
              ) : (
                <>
                  If no rule matches: <Badge of={otherwise} text={otherwise.replaceAll('_', ' ')} />
                </>
              )}
            </p>
          </>
        )}
      </Answered>
    </section>
  )
}

function columnsFor(id: string, app: string) {
  return [
    {
      title: 'Rule',
      cell: ({ rule, layer }: Rule) => <a href={ruleAt(app, layer, rule)}>{rule}</a>,
    },
    {
      title: 'Action',
      cell: ({ action, dry_run }: Rule) => (
        <>
          <Badge of={action} text={action.replaceAll('_', ' ')} />
          {dry_run && <Badge of="plain" text="dry run" />}
        </>
      ),
    },
    { title: 'Limit or price', cell: (rule: Rule) => termsText(rule) },
    {
      title: 'If',
      isExtra: true,
      cell: ({ depends_on }: Rule) =>
        depends_on.length === 0
          ? 'always'
          : `depends on ${depends_on.map((each) => each.replaceAll('_', ' ')).join(', ')}`,
    },
    {
      title: 'Stands',
      isExtra: true,
      cell: ({ layer }: Rule) => (layer === 'app' ? `app ${app}` : `organisation, ${layer}`),
    },
    {
      title: 'Until',
      isExtra: true,
      cell: ({ expires_at }: Rule) => (expires_at === null ? '' : <FullTime at={expires_at} />),
    },
    {
      title: 'Requests',
      isExtra: true,
      cell: ({ rule }: Rule) => (
        <a href={withQuery('/dashboard/traffic', { app, agent_id: id, rule })}>
          Show<span class="hidden"> requests of {rule}</span>
        </a>
      ),
    },
  ]
}

function termsText({ limit, price }: Rule): string {
  if (limit !== null) return `${whole(limit.requests)} in ${duration(limit.window_ms)} for each ${limit.per}`
  if (price === null) return ''
  const what = price.pass_ms === null ? 'a request' : `a pass of ${duration(price.pass_ms)}`
  return `${price.amount} ${price.currency} for ${what} (${price.schemes.join(', ')})`
}

/** The rule in the policy that has it. */
function ruleAt(app: string, layer: Rule['layer'], rule: string): string {
  return withApp('/dashboard/policy', layer === 'app' ? app : null, { show: rule })
}

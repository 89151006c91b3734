import { useAsked } from '../api/use-asked.ts'
import { withApp } from './chosen/app.ts'
import { type Conditions, conditionsOf } from './made-rule.ts'

interface Props {
  /** The app of whose policy it becomes a part; `null`: the organisation. */
  readonly app: string | null
  /** Filters of requests. */
  readonly filters: Readonly<Record<string, string>>
  readonly children?: string
  readonly isButton?: boolean
}

/** The way to the policy editor, with a rule for the requests of these filters. For administrators only. */
export function RuleLink({ app, filters, children = 'Make a rule', isButton = false }: Props) {
  const { answer: me } = useAsked('getMe', {})
  const when = conditionsOf(filters)
  if (when === null || me === null || !me.scopes.includes('admin')) return null
  return (
    <a class={isButton ? 'button' : undefined} href={madeRuleAt(app, when)}>
      {children}
    </a>
  )
}

/** The policy editor with a rule of these conditions. `app`: whose policy; `null`: of the organisation. */
export function madeRuleAt(app: string | null, when: Conditions): string {
  return withApp('/dashboard/policy', app, { rule: JSON.stringify(when) })
}

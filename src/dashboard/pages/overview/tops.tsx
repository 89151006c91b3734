import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import type { OperationAnswer } from '../../api/ask.ts'
import type { Statistics } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { withQuery } from '../../parts/chosen/app.ts'
import { sinceOf } from '../../parts/chosen/window.ts'
import { counted, percent, short } from '../../parts/format.ts'
import { Answered, Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { FullTime } from '../../parts/time.tsx'
import { categoryOf, CATEGORIES, PURPOSES, purposeOf } from '../live/names.ts'
import type { OverviewScope } from './overview.tsx'

interface Props {
  readonly detection: Statistics['detection']
  readonly shown: OverviewScope
}

export function TopAgents({ detection: { by_agent, agents }, shown: { to } }: Props) {
  return (
    <Top
      title="Agents with the most requests"
      of={agents}
      rows={by_agent.map(({ agent_id, agent_name, requests }) => ({
        ...{ key: agent_id, requests },
        name: <a href={`/dashboard/agents/${encodeURIComponent(agent_id)}`}>{agent_name}</a>,
        href: to({ agent_id }),
      }))}
      none="No named agents in this time range"
      why="Requests from agents without a name are counted as unnamed."
    />
  )
}

export function TopCategories({ detection: { by_category, agents }, shown: { to } }: Props) {
  return (
    <Top
      title="Categories of agents"
      of={agents}
      rows={mostFirst(by_category).map(([category, requests]) => ({
        ...{ key: category, requests, name: categoryOf(category) },
        href: isNamed(category) ? to({ category }) : null,
      }))}
      none="No agents in this time range"
      why="Requests of agents are counted here by the category of the agent."
    />
  )
}

/** A request of an agent with several purposes counts for each. */
export function TopPurposes({ detection: { by_purpose, agents }, shown: { to } }: Props) {
  return (
    <Top
      title="Purposes of agents"
      of={agents}
      rows={mostFirst(by_purpose).map(([purpose, requests]) => ({
        ...{ key: purpose, requests, name: purposeOf(purpose) },
        href: PURPOSES.some((each) => each.purpose === purpose) ? to({ purpose }) : null,
      }))}
      none="No agents in this time range"
      why="Requests of agents are counted here by the published purpose of the agent."
    />
  )
}

interface AppsProps {
  readonly apps: NonNullable<Statistics['by_app']>
  readonly of: number
  readonly shown: OverviewScope
}

export function TopApps({ apps, of, shown: { window, to } }: AppsProps) {
  return (
    <Top
      title="Apps with the most requests"
      of={of}
      rows={apps.map(({ app, requests }) => ({
        ...{ key: app, requests, href: to({ app }) },
        name: <a href={withQuery('/dashboard/', { app, window })}>{app}</a>,
      }))}
    />
  )
}

/** Of the recorded requests: paths are not counted where requests are judged. */
export function TopPaths({ shown: { window, chosen, to } }: Pick<Props, 'shown'>) {
  const since = useMemo(() => sinceOf(window), [window])
  const query = { facets: 'path', limit: TOP, since, ...chosen }
  const used = useAsked('getRequestFacets', { query }, { everyMs: 60_000 })
  return (
    <Answered used={used}>
      {(found) => (
        <Top
          title="Paths with the most requests"
          of={found.estimated}
          rows={found.facets[0]!.values.map(({ value, estimated }) => ({
            ...{ key: value ?? '', requests: estimated, href: to({ path: value ?? '' }) },
            name: <span class="mono break">{value}</span>,
          }))}
          none="No recorded requests in this time range"
          why="Single requests are kept for a shorter time than counts: see the setting “sightings.retention”."
        >
          <Basis found={found} />
        </Top>
      )}
    </Answered>
  )
}

/** How far the counts can be trusted. */
function Basis({ found }: { readonly found: OperationAnswer<'getRequestFacets'> }) {
  const { requests, estimated, stopped_at } = found
  if (requests === 0) return null
  return (
    <p class="hint">
      {estimated === requests ? 'Of ' : `Estimated: about ${short(estimated)} requests, of which a share of `}
      {counted(requests, 'recorded request')}
      {estimated === requests ? '' : ' is kept'}
      {stopped_at === null ? (
        '.'
      ) : (
        <>
          , the newest, back to <FullTime at={stopped_at} />.
        </>
      )}
    </p>
  )
}

interface TopRow {
  readonly key: string
  readonly name: ComponentChildren
  readonly requests: number
  /** Their requests; `null`: no filter finds them. */
  readonly href: string | null
}

interface TopProps {
  readonly title: string
  readonly rows: readonly TopRow[]
  /** What shares are of. */
  readonly of: number
  /** OverviewScope without rows. */
  readonly none?: string
  readonly why?: string
  readonly children?: ComponentChildren
}

/** The most frequent values, as a table. */
function Top({ title, rows, of, none = '', why, children }: TopProps) {
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {rows.length === 0 ? (
        <Empty title={none}>
          <p>{why}</p>
        </Empty>
      ) : (
        <Table
          label={title}
          rows={rows.slice(0, TOP)}
          keyOf={({ key }) => key}
          columns={[
            {
              title: 'Name',
              cell: ({ name, requests }) => (
                <>
                  {name}
                  <div class="bar" aria-hidden="true">
                    <span style={{ width: `${(100 * requests) / Math.max(of, 1)}%` }} />
                  </div>
                </>
              ),
            },
            {
              title: 'Requests',
              isNumber: true,
              cell: ({ requests, href }) =>
                href === null ? short(requests) : <a href={href}>{short(requests)}</a>,
            },
            {
              title: 'Share',
              isNumber: true,
              isExtra: true,
              cell: ({ requests }) => percent(requests / Math.max(of, 1)),
            },
          ]}
        />
      )}
      {children}
    </section>
  )
}

function mostFirst(counts: Readonly<Record<string, number>>): readonly (readonly [string, number])[] {
  return Object.entries(counts)
    .filter(([, requests]) => requests > 0)
    .sort(([, one], [, other]) => other - one)
}

/** No filter finds agents without a name. */
function isNamed(category: string): boolean {
  return category !== 'unnamed' && CATEGORIES.some((each) => each.category === category)
}

const TOP = 10

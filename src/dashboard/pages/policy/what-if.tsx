import type { ComponentChildren } from 'preact'
import type { PolicyPreview } from '../../api/operations.ts'
import { FullTime } from '../../parts/time.tsx'
import { percent, whole } from '../../parts/format.ts'
import { Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'

/** What a policy would have changed for recorded requests. */
export function WhatIf({ preview }: { readonly preview: PolicyPreview }) {
  const { sightings, changed, unchanged, unjudged, by_settings, left_out, from, to, complete } = preview
  if (sightings === 0)
    return (
      <Empty title="Nothing is recorded in this time.">
        <p>Requests are recorded as they come in, for as long as sightings.retention says.</p>
      </Empty>
    )
  return (
    <>
      <p>
        Of {whole(sightings)} recorded requests{' '}
        {from !== null && to !== null && (
          <>
            (<FullTime at={from} /> to <FullTime at={to} />)
          </>
        )}{' '}
        <strong>
          {whole(changed)} ({percent(changed / sightings)}) would have gone another way
        </strong>
        , {whole(unchanged)} the same way.
        {unjudged > 0 && ` Of ${whole(unjudged)} it cannot be said: it hangs on what is not recorded.`}
        {by_settings > 0 && ` ${whole(by_settings)} were decided by settings.`}
        {left_out > 0 && ` ${whole(left_out)} records are damaged.`}
        {!complete && ' There was time for the newest ones only.'}
      </p>
      <Rows
        title="What becomes of what"
        heads={['Before', 'After', 'Requests']}
        rows={preview.transitions.map(({ from, to, count }) => [from, to, whole(count)])}
      />
      <Rows
        title="Rules"
        heads={['Rule', 'Before', 'After', 'On trial']}
        rows={preview.rules.map(({ rule, before, after, on_trial }) => [
          ...[
            rule,
            before === null ? 'not there' : whole(before),
            after === null ? 'not there' : whole(after),
            whole(on_trial),
          ],
        ])}
      />
      <Rows
        title="Who would notice"
        heads={['Agent', 'Before', 'After', 'Requests']}
        rows={preview.agents.map(({ name, from, to, count }) => [name, from, to, whole(count)])}
      />
      <Rows
        title="Where"
        heads={['Path', 'Before', 'After', 'Requests']}
        rows={preview.paths.map(({ name, from, to, count }) => [name, from, to, whole(count)])}
      />
      <Rows
        title="Rules that cannot be judged by what is recorded"
        heads={['Rule', 'Of the policy', 'Asks for', 'Requests']}
        rows={preview.open.map(({ rule, policy, needs, sightings }) => [
          ...[rule, policy === 'new' ? 'new one' : 'one in force', needs.join(', '), whole(sightings)],
        ])}
      />
    </>
  )
}

interface RowsProps {
  readonly title: string
  readonly heads: readonly string[]
  readonly rows: readonly (readonly ComponentChildren[])[]
}

function Rows({ title, heads, rows }: RowsProps) {
  if (rows.length === 0) return null
  return (
    <>
      <h3>{title}</h3>
      <Table<RowsProps['rows'][number]>
        label={title}
        rows={rows}
        keyOf={(row) => row.join(' ')}
        columns={heads.map((title, at) => ({ title, cell: (row) => row[at] }))}
      />
    </>
  )
}

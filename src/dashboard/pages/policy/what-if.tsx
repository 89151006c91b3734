import type { ComponentChildren } from 'preact'
import type { PolicyPreview } from '../../api/operations.ts'
import { FullTime } from '../../parts/time.tsx'
import { percent, whole } from '../../parts/format.ts'
import { Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { verdictOf } from '../live/names.ts'
import { isLayered, layerText } from './owner.ts'

/** What a policy would have changed for recorded requests. */
export function WhatIf({
  preview,
  isReading,
}: {
  readonly preview: PolicyPreview
  /** More requests are being examined. */
  readonly isReading: boolean
}) {
  const { sightings, counted, changed, unchanged, unjudged, by_settings, left_out, from, to, complete } =
    preview
  const hasLayers = isLayered(preview.rules)
  const layerHead = hasLayers ? ['Layer'] : []
  const layerOf = (layer: string, app: string | null) => (hasLayers ? [layerText(layer, app)] : [])
  if (sightings === 0)
    return (
      <Empty title="No requests recorded in this time range">
        <p>Requests are recorded as they arrive and kept for the time in sightings.retention.</p>
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
          {whole(changed)} ({percent(changed / sightings)}) would have a different outcome
        </strong>
        , {whole(unchanged)} the same.
        {unjudged > 0 &&
          ` ${whole(unjudged)} cannot be judged: the outcome depends on data that is not recorded.`}
        {by_settings > 0 && ` ${whole(by_settings)} were decided by settings, not by rules.`}
        {left_out > 0 && ` ${whole(left_out)} records are damaged and were skipped.`}
      </p>
      {!complete && (
        <p class="note" role="status">
          {counted > sightings
            ? `Only the newest ${whole(sightings)} of about ${whole(counted)} requests of this time were tested.`
            : 'Only the newest requests of this time were tested.'}
          {isReading && ' Older requests are being tested…'}
        </p>
      )}
      <Rows
        title="Affected clients, people first"
        heads={['Verdict', 'Before', 'After', 'Requests']}
        rows={preview.verdicts
          .toSorted((one, other) => Number(other.name === 'human') - Number(one.name === 'human'))
          .map(({ name, from, to, count }) => [verdictOf(name), from, to, whole(count)])}
      />
      <Rows
        title="Actions before and after"
        heads={['Before', 'After', 'Requests']}
        rows={preview.transitions.map(({ from, to, count }) => [from, to, whole(count)])}
      />
      <Rows
        title="Rules"
        heads={['Rule', ...layerHead, 'Before', 'After', 'On trial']}
        rows={preview.rules.map(({ rule, layer, app, before, after, on_trial }) => [
          ...[
            rule,
            ...layerOf(layer, app),
            before === null ? 'no such rule' : whole(before),
            after === null ? 'no such rule' : whole(after),
            whole(on_trial),
          ],
        ])}
      />
      <Rows
        title="Affected agents"
        heads={['Agent', 'Before', 'After', 'Requests']}
        rows={preview.agents.map(({ name, from, to, count }) => [name, from, to, whole(count)])}
      />
      <Rows
        title="Affected paths"
        heads={['Path', 'Before', 'After', 'Requests']}
        rows={preview.paths.map(({ name, from, to, count }) => [name, from, to, whole(count)])}
      />
      <Rows
        title="Rules that need data that is not recorded"
        heads={['Rule', ...layerHead, 'Policy', 'Needs', 'Requests']}
        rows={preview.open.map(({ rule, layer, app, policy, needs, sightings }) => [
          ...[
            rule,
            ...layerOf(layer, app),
            policy === 'new' ? 'new' : 'in force',
            needs.join(', '),
            whole(sightings),
          ],
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

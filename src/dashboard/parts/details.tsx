import type { ComponentChildren } from 'preact'
import { Facts } from './facts.tsx'
import { type Plain, sectionsOf } from './sections.ts'
import { Table } from './table.tsx'
import { FullTime } from './time.tsx'

/** Any JSON object for people: names as words, times in their zone, objects in it as sections. */
export function Details({ of }: { readonly of: Readonly<Record<string, unknown>> }) {
  return (
    <>
      {sectionsOf(of).map(({ title, facts, tables }) => (
        <div key={title}>
          {title !== '' && <h3>{title}</h3>}
          <Facts of={facts.map(([name, values]) => [name, shown(values)] as const)} />
          {tables.map((table) => (
            <div key={table.title}>
              <h3>{title === '' ? table.title : `${title}: ${table.title}`}</h3>
              <Table
                label={table.title}
                rows={table.rows}
                keyOf={(_, at) => String(at)}
                columns={table.columns.map((column, at) => ({
                  title: column,
                  cell: (row: readonly (readonly Plain[])[]) => shown(row[at]!),
                }))}
              />
            </div>
          ))}
        </div>
      ))}
    </>
  )
}

function shown(values: readonly Plain[]): ComponentChildren {
  const [first] = values
  if (values.length === 1 && typeof first === 'string' && TIME.test(first)) return <FullTime at={first} />
  return values
    .map((value) => (typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value)))
    .join(', ')
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/

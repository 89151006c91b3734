import { ask } from '../../api/ask.ts'
import type { AuditEntry } from '../../api/operations.ts'
import { Download } from '../../parts/download.tsx'
import { Filters, TextFilter, TimeFilter, useFilters } from '../../parts/filters.tsx'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Empty } from '../../parts/states.tsx'
import { FullTime } from '../../parts/time.tsx'
import { appsText } from './apps-field.tsx'

/** The log of changes by users and programs. */
export function Audit() {
  const { values, set } = useFilters(['app', 'action', 'principal', 'since'])
  const at = new Date(values.since)
  const query = {
    ...(values.app !== '' && { app: values.app }),
    ...(values.action !== '' && { action: values.action }),
    ...(values.principal !== '' && { principal: values.principal }),
    ...(values.since !== '' && !Number.isNaN(at.getTime()) && { since: at.toISOString() }),
  }
  const load = async (page: number, signal: AbortSignal) => {
    const { audit, total } = await ask(
      'listAudit',
      { query: { ...query, page, limit: PART_LENGTH } },
      { signal },
    )
    return { rows: audit, total }
  }
  const exported = async () => (await ask('listAudit', { query: { ...query, limit: EXPORTED_MAX } })).audit
  return (
    <section aria-labelledby="list">
      <h2 id="list">Audit log</h2>
      <Filters>
        <TextFilter label="App" value={values.app} set={(value) => set('app', value)} />
        <TextFilter label="Action" value={values.action} set={(value) => set('action', value)} />
        <TextFilter label="By" value={values.principal} set={(value) => set('principal', value)} />
        <TimeFilter label="Since" value={values.since} set={(value) => set('since', value)} />
        <Download
          name="audit"
          columns={['at', 'principal', 'action', 'subject', 'apps', 'detail', 'address', 'request_id']}
          rows={async () =>
            (await exported()).map((entry) => [
              ...[entry.at, entry.principal, entry.action, entry.subject, appsText(entry.apps)],
              ...[JSON.stringify(entry.detail), entry.address, entry.request_id],
            ])
          }
          json={exported}
        />
      </Filters>
      <LongTable
        label="Audit log"
        columns={COLUMNS}
        listKey={JSON.stringify(query)}
        keyOf={({ id }) => id}
        load={load}
        empty={
          <Empty title="No matching changes">
            <p>Every administrative change is recorded here, with its author and address.</p>
          </Empty>
        }
      />
    </section>
  )
}

const COLUMNS: readonly LongColumn<AuditEntry>[] = [
  {
    title: 'Action',
    width: 'minmax(8rem, 2fr)',
    cell: ({ action, subject, detail }) => (
      <span title={JSON.stringify(detail)}>
        {subject === null ? action : `${action} ${subject}`}
        {typeof detail['comment'] === 'string' && <small> {detail['comment']}</small>}
      </span>
    ),
  },
  { title: 'By', width: 'minmax(6rem, 1fr)', cell: ({ principal }) => principal },
  { title: 'Apps', width: 'minmax(5rem, 1fr)', isExtra: true, cell: ({ apps }) => appsText(apps) },
  { title: 'From', width: '9rem', isExtra: true, cell: ({ address }) => address },
  { title: 'When', width: '15rem', isExtra: true, cell: ({ at }) => <FullTime at={at} /> },
]
const EXPORTED_MAX = 200

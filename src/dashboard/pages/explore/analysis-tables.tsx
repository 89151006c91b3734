import { Download } from '../../parts/download.tsx'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import type { ShownAnalysis, ShownFinding } from './analysis.ts'

/** Connections and requests of a capture. */
export function AnalysisTables({
  analysis,
  name,
}: {
  readonly analysis: ShownAnalysis
  readonly name: string
}) {
  const { findings, owners } = analysis
  const columns: readonly LongColumn<ShownFinding>[] = [
    {
      title: 'Fingerprint',
      width: 'minmax(9rem, 3fr)',
      cell: ({ fingerprint }) => <code>{fingerprint === '' ? 'none' : fingerprint}</code>,
    },
    {
      title: 'Software',
      width: 'minmax(6rem, 2fr)',
      cell: ({ fingerprint }) => owners.get(fingerprint) ?? '',
    },
    { title: 'Kind', width: '7rem', isExtra: true, cell: ({ kind }) => kind },
    { title: 'Host or path', width: 'minmax(6rem, 2fr)', isExtra: true, cell: ({ asked }) => asked },
    { title: 'From', width: '10rem', isExtra: true, cell: ({ from }) => from },
    { title: 'Frame', width: '4rem', isExtra: true, isNumber: true, cell: ({ frame }) => frame },
  ]
  return (
    <>
      <p class="actions">
        <Download
          name={`${name}-findings`}
          columns={['frame', 'kind', 'from', 'to', 'asked', 'type', 'fingerprint', 'software']}
          rows={() =>
            findings.map(({ frame, kind, from, to, asked, type, fingerprint }) => [
              ...[frame, kind, from, to, asked, type, fingerprint, owners.get(fingerprint) ?? ''],
            ])
          }
          json={() => findings}
        />
      </p>
      <LongTable
        label="Findings"
        columns={columns}
        listKey={name}
        keyOf={({ frame, type, fingerprint, from, asked }) =>
          [frame, type, fingerprint, from, asked].join(' ')
        }
        load={async (page) => ({
          rows: findings.slice((page - 1) * PART_LENGTH, page * PART_LENGTH),
          total: findings.length,
        })}
        hrefOf={({ type, fingerprint }) =>
          fingerprint === ''
            ? '/dashboard/explore'
            : `/dashboard/signatures/${type}/${encodeURIComponent(fingerprint)}`
        }
        empty=""
      />
    </>
  )
}

import { useState } from 'preact/hooks'
import type { Operations } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { whole } from '../../parts/format.ts'
import { Answered, Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'

/** The sums of the payments that fit the filters. */
export function PaymentSums({ query }: { readonly query: Operations['listPayments']['query'] }) {
  const [by, setBy] = useState<By>('agent')
  const used = useAsked('sumPayments', { query: { ...query, by } })
  return (
    <section class="card" aria-labelledby="sums">
      <div class="page-head">
        <h2 id="sums">Sums</h2>
        <span class="group">
          {KINDS.map((kind) => (
            <button key={kind} type="button" aria-pressed={kind === by} onClick={() => setBy(kind)}>
              By {kind}
            </button>
          ))}
        </span>
      </div>
      <Answered used={used}>
        {({ sums }) =>
          sums.length === 0 ? (
            <Empty title="Nothing paid or owed" />
          ) : (
            <Table
              label="Sums"
              rows={sums}
              keyOf={({ of, currency, state }) => [of, currency, state].join(' ')}
              columns={[
                { title: TITLES[by], cell: ({ of }) => of ?? 'no proven agent' },
                { title: 'State', cell: ({ state }) => state },
                { title: 'Payments', isNumber: true, cell: ({ payments }) => whole(payments) },
                {
                  title: 'Sum',
                  isNumber: true,
                  cell: ({ amount, currency }) => `${amount} ${currency}`,
                },
              ]}
            />
          )
        }
      </Answered>
    </section>
  )
}

const KINDS = ['agent', 'app', 'day'] as const
type By = (typeof KINDS)[number]
const TITLES: Readonly<Record<By, string>> = { agent: 'Agent', app: 'App', day: 'Day (UTC)' }

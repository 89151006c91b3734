import { useState } from 'preact/hooks'
import { addressOf } from '../../api/address.ts'
import { ask, send } from '../../api/ask.ts'
import { OPERATIONS, type Operations, type Payment } from '../../api/operations.ts'
import { unreachable } from '../../api/problem.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { useChosen } from '../../parts/chosen/app.ts'
import { useSince } from '../../parts/chosen/window.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { save } from '../../parts/download.tsx'
import { FilterFields, filterQuery, useFilters } from '../../parts/filters.tsx'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Empty, ProblemNote } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { PaymentSums } from './payment-sums.tsx'

type PaymentQuery = Operations['listPayments']['query']

/** The ledger. */
export function Payments() {
  const { answer: me } = useAsked('getMe', {})
  const { values, set } = useFilters(FIELDS.map(({ name }) => name))
  const query = { ...useSince(), ...filterQuery<PaymentQuery>(FIELDS, values), ...useChosen() }
  const [turn, setTurn] = useState(0)
  const [refunding, setRefunding] = useState<Payment | null>(null)
  const listKey = JSON.stringify([query, turn])
  const load = async (page: number, signal: AbortSignal) => {
    const { payments, total } = await ask(
      'listPayments',
      { query: { ...query, page, limit: PART_LENGTH } },
      { signal },
    )
    return { rows: payments, total }
  }
  const mayRefund = me?.scopes.includes('admin') === true
  return (
    <Page
      title="Payments"
      help="payments"
      about="What agents have paid and owe, by rules with the action charge."
      actions={<Export query={query} />}
    >
      <FilterFields fields={FIELDS} values={values} set={set} />
      <PaymentSums query={query} key={listKey} />
      <LongTable
        label="Payments"
        columns={mayRefund ? [...COLUMNS, refundColumn(setRefunding)] : COLUMNS}
        listKey={listKey}
        keyOf={({ id }) => id}
        load={load}
        empty={
          <Empty title="No matching payments">
            <p>Payments appear here as soon as a client pays. Rules with the action charge ask for them.</p>
          </Empty>
        }
      />
      {refunding !== null && (
        <Refund
          of={refunding}
          close={(isDone) => {
            setRefunding(null)
            if (isDone) setTurn(turn + 1)
          }}
        />
      )}
    </Page>
  )
}

function Export({ query }: { readonly query: PaymentQuery }) {
  const doing = useDoing()
  const get = (format: 'csv' | 'ndjson') =>
    doing.run(async () => {
      const response = await send(addressOf(OPERATIONS.exportPayments[1], {}, { ...query, format }), {})
      const file = await response.blob().catch(() => {
        throw unreachable()
      })
      save(`payments.${format}`, file)
    })
  return (
    <>
      <span class="group">
        <button type="button" disabled={doing.isDoing} onClick={() => void get('csv')}>
          CSV
        </button>
        <button type="button" disabled={doing.isDoing} onClick={() => void get('ndjson')}>
          NDJSON
        </button>
      </span>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
    </>
  )
}

function Refund({
  of: { id, price, currency, payer, agent_id },
  close,
}: {
  readonly of: Payment
  close(isDone: boolean): void
}) {
  const doing = useDoing()
  const [note, setNote] = useState('')
  return (
    <Confirm
      title="Mark as refunded?"
      doing="Mark as refunded"
      isBad
      cancel={() => close(false)}
      done={() =>
        void doing.run(async () => {
          await ask('refundPayment', { path: { id }, body: note === '' ? {} : { note } })
          close(true)
        })
      }
    >
      <p>
        {price} {currency}, paid by {agent_id ?? payer ?? 'an unknown client'}. This ends its pass, and moves
        no money: send it back yourself.
      </p>
      <label>
        Note
        <input value={note} maxLength={500} onInput={({ currentTarget }) => setNote(currentTarget.value)} />
      </label>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
    </Confirm>
  )
}

function refundColumn(choose: (payment: Payment) => void): LongColumn<Payment> {
  return {
    title: 'Refund',
    width: '7rem',
    cell: (payment) =>
      payment.state === 'paid' || payment.state === 'owed' ? (
        <button type="button" onClick={() => choose(payment)} aria-label={`Refund ${payment.id}`}>
          Refund
        </button>
      ) : (
        ''
      ),
  }
}

const COLUMNS: readonly LongColumn<Payment>[] = [
  { title: 'When', width: '9rem', cell: ({ created_at }) => <Time at={created_at} /> },
  {
    title: 'From',
    width: 'minmax(8rem, 2fr)',
    cell: ({ agent_id, payer }) =>
      agent_id === null ? (payer ?? 'unknown') : <a href={`/dashboard/agents/${agent_id}`}>{agent_id}</a>,
  },
  {
    title: 'Price',
    width: '8rem',
    isNumber: true,
    cell: ({ price, currency }) => `${price} ${currency}`,
  },
  { title: 'State', width: '6rem', cell: ({ state, why }) => (why === null ? state : `${state}: ${why}`) },
  { title: 'Paid with', width: '7rem', isExtra: true, cell: ({ scheme }) => scheme },
  { title: 'App', width: '7rem', isExtra: true, cell: ({ app }) => app },
  {
    title: 'Request',
    width: 'minmax(8rem, 3fr)',
    isExtra: true,
    cell: ({ host, path }) => `${host}${path}`,
  },
]
const FIELDS = [
  { name: 'state', label: 'State', choices: ['open', 'paid', 'owed', 'refused', 'refunded'] },
  { name: 'scheme', label: 'Paid with', choices: ['x402', 'crawler-price', 'license'] },
  { name: 'agent_id', label: 'Agent' },
  { name: 'since', label: 'Since', isTime: true },
  { name: 'until', label: 'Until', isTime: true },
] as const

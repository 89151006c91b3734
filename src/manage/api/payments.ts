import { setImmediate as nextTurn } from 'node:timers/promises'
import * as z from 'zod'
import { ALL_APPS, appListOf } from '../../apps/app-scope.ts'
import { priceOf } from '../../payment/money.ts'
import { PAYMENT_SCHEMES } from '../../policy/charging/charge.ts'
import { csv, type CsvCell } from '../../shared/csv.ts'
import type { Position } from '../../store/engine/page.ts'
import { PAYMENT_STATES, type PaymentFilter, type PaymentRecord } from '../../store/work/payments.ts'
import { addAudit } from '../http/audit.ts'
import { actorOf, type Addressed } from '../http/operation.ts'
import { Refusal } from '../http/refusal.ts'
import { sightOf, shownTo } from '../intake/personal-data.ts'
import { integerInQuery, textInQuery, timeInQuery } from '../http/schemas.ts'
import { payment, type ShownPayment, shownPayment } from '../payments/shown-payment.ts'
import { filteredApps, TEAM_FILTER } from './app-filters.ts'
import type { ApiContext } from './context.ts'
import { type ApiOffered, listing, operation } from './operation.ts'

const filters = {
  app: textInQuery('Only payments for this app.').optional(),
  ...TEAM_FILTER,
  agent_id: textInQuery('Only payments of this proven agent.').optional(),
  state: z.enum(PAYMENT_STATES).optional().meta({ description: 'Only payments in this state.' }),
  scheme: z.enum(PAYMENT_SCHEMES).optional().meta({ description: 'Only payments of this kind.' }),
  since: timeInQuery('Only payments from this time on.'),
  until: timeInQuery('Only payments before this time.'),
}
type PaymentFilters = {
  readonly [Name in keyof typeof filters]?: z.output<(typeof filters)[Name]> | undefined
}

const listPayments = listing({
  id: 'listPayments',
  path: '/payments',
  tag: 'Payments',
  summary: 'List payments',
  description:
    'The ledger of rules with the action `charge`, newest first. Callers that are limited to some apps see the payments for these. Payments older than `payments.retention` are deleted.',
  scopes: ['read'],
  reach: 'filtered',
  name: 'payments',
  isPartFirst: true,
  filters,
  part: async (wanted, part, management, { principal }) => {
    const apps = await filteredApps(wanted, principal, management)
    return management.store.payments.list(part, filterOf(wanted, apps))
  },
  items: {
    schema: payment,
    show: (records, _, principal) => shownTo(sightOf(principal), records.map(shownPayment)),
  },
})

const refundPayment = operation({
  id: 'refundPayment',
  method: 'POST',
  path: '/payments/{id}/refund',
  tag: 'Payments',
  summary: 'Mark a payment as refunded',
  description:
    'Marks it in the ledger, and ends its pass. It moves no money: send the money back yourself, before or after.',
  scopes: ['admin'],
  reach: 'filtered',
  params: z.strictObject({ id: z.string().max(100) }),
  find: async ({ params, principal: { apps } }: Addressed<{ id: string }>, { store }: ApiContext) => {
    const found = await store.payments.byId(params.id)
    return found !== null && (apps === ALL_APPS || apps.has(found.app)) ? found : null
  },
  body: z
    .strictObject({
      note: z.string().max(500, 'is longer than 500 characters').optional().meta({
        description: 'Why, or the transfer that sent it back.',
      }),
    })
    .meta({ id: 'PaymentRefund' }),
  answer: payment,
  problems: ['conflict'],
  examples: { body: { note: 'The page was empty' } },
  run: async (call, management) => {
    const { subject, body } = call
    const { store, paymentNews } = management
    const nowMs = management.nowMs()
    const note = body.note ?? null
    const detail = { note, price: priceOf(subject.amount), currency: subject.currency }
    const change = { action: 'refundPayment', subject: subject.id, apps: [subject.app], detail }
    const [refunded, afterCommit] = await store.transaction(async (queries) => {
      if (!(await store.payments.refund(subject.id, note, nowMs, queries)))
        throw new Refusal(
          'conflict',
          `payment "${subject.id}" is ${subject.state}; only paid and owed ones can be refunded`,
        )
      await addAudit(store, actorOf(call), change, nowMs, queries)
      const payment = (await store.payments.byId(subject.id, queries)) ?? subject
      return [payment, await paymentNews.changed(payment, queries)] as const
    })
    afterCommit()
    return { body: shownPayment(refunded) }
  },
})

const COLUMNS: readonly (readonly [name: string, cell: (payment: ShownPayment) => CsvCell])[] = [
  ...(
    [
      ...['id', 'created_at', 'state', 'scheme', 'app', 'rule', 'agent_id', 'key', 'payer', 'host', 'path'],
      ...['price', 'currency', 'network', 'asset', 'transaction', 'why'],
    ] as (keyof ShownPayment)[]
  ).map((name) => [name, (each: ShownPayment) => each[name] as CsvCell] as const),
  ['purpose', ({ purpose }) => purpose.join(' ')],
  ...(
    [
      ...['license', 'decision_id', 'settled_at', 'served_at', 'pass_until'],
      ...['refunded_at', 'refund_note'],
    ] as (keyof ShownPayment)[]
  ).map((name) => [name, (each: ShownPayment) => each[name] as CsvCell] as const),
]
const FORMATS = {
  ndjson: {
    type: 'application/x-ndjson',
    head: '',
    rows: (payments: readonly ShownPayment[]) => payments.map((each) => `${JSON.stringify(each)}\n`).join(''),
  },
  csv: {
    type: 'text/csv',
    head: csv([COLUMNS.map(([name]) => name)]),
    rows: (payments: readonly ShownPayment[]) =>
      csv(payments.map((each) => COLUMNS.map(([, cell]) => cell(each)))),
  },
}

const exportPayments = operation({
  id: 'exportPayments',
  method: 'GET',
  path: '/payments/export',
  tag: 'Payments',
  summary: 'Export payments as a file',
  description:
    'The payments that fit the filters, newest first, as a file that is sent while it is read. The columns of CSV are the members of a payment. An export shows what the list shows, and is noted in the audit log.',
  scopes: ['read'],
  reach: 'filtered',
  query: z.strictObject({
    ...filters,
    format: z
      .enum(Object.keys(FORMATS) as (keyof typeof FORMATS)[])
      .default('ndjson')
      .meta({ description: '`ndjson`: a JSON object on each line.', override: { default: 'ndjson' } }),
    limit: integerInQuery(1, 1_000_000, 100_000, 'The most payments.'),
  }),
  files: {
    [FORMATS.ndjson.type]: {
      description: 'On each line, an object as in the list of payments.',
      example: '{"id":"pay_x7c1Jq0aT5b2Lw9k","state":"paid","price":"0.01","currency":"USD"}\n',
    },
    [FORMATS.csv.type]: {
      description: 'RFC 4180, in UTF-8, with a head.',
      example: 'id,created_at,state\r\npay_x7c1Jq0aT5b2Lw9k,2026-11-21T09:30:00.000Z,paid\r\n',
    },
  },
  run: async (call, management) => {
    const { store, nowMs } = management
    const { format, limit, ...wanted } = call.query
    const { principal } = call
    const { type, head, rows } = FORMATS[format]
    const filter = filterOf(wanted, await filteredApps(wanted, principal, management))
    const detail = { format, limit, ...wanted }
    const change = { action: 'exportPayments', subject: null, apps: appListOf(principal.apps), detail }
    const parts = async function* (over: AbortSignal) {
      await store.transaction((queries) => addAudit(store, actorOf(call), change, nowMs(), queries))
      if (head !== '') yield head
      let after: Position | null = null
      let left = limit
      do {
        const page: { items: readonly PaymentRecord[]; next: Position | null } = await store.payments.list(
          { after, limit: Math.min(left, PAGE) },
          filter,
        )
        // Not a bug: the time is over, or the caller lost its access.
        if (over.aborted) throw Object.assign(new Error('the export has ended early'), { code: 'ECANCELED' })
        const text = rows(shownTo(sightOf(principal), page.items.map(shownPayment)))
        if (text !== '') yield text
        left -= page.items.length
        after = page.next
        await nextTurn()
      } while (after !== null && left > 0)
    }
    return { body: { name: `payments.${format}`, type, parts } }
  },
})

const sum = z
  .strictObject({
    of: z.string().nullable().meta({
      description: 'The agent, the app, or the day (UTC). `null`: payments without a proven agent.',
    }),
    currency: z.string(),
    state: z.enum(['paid', 'owed', 'refunded']),
    payments: z.int().min(0),
    amount: z.string().meta({ example: '12.34' }),
  })
  .meta({ id: 'PaymentSum' })

const sumPayments = operation({
  id: 'sumPayments',
  method: 'GET',
  path: '/payments/sums',
  tag: 'Payments',
  summary: 'Sum payments',
  description:
    'What was paid, is owed or was marked as refunded, by agent, app or day: the largest sums first, or the latest days. At most 200.',
  scopes: ['read'],
  reach: 'filtered',
  query: z.strictObject({
    ...filters,
    by: z.enum(['agent', 'app', 'day']).default('agent').meta({ description: 'What is summed together.' }),
  }),
  answer: z.strictObject({ sums: z.array(sum) }).meta({ id: 'PaymentSums' }),
  run: async ({ query, principal }, management) => {
    const { by, ...wanted } = query
    const filter = filterOf(wanted, await filteredApps(wanted, principal, management))
    const sums = await management.store.payments.sums(by, filter, SUMS_MAX)
    return {
      body: {
        sums: sums.map(({ of, currency, state, payments, amount }) => ({
          of: typeof of === 'number' ? new Date(of * DAY_MS).toISOString().slice(0, 10) : of,
          ...{ currency, payments, amount: priceOf(amount) },
          state: state as z.output<typeof sum>['state'],
        })),
      },
    }
  },
})

export const PAYMENT_OPERATIONS: readonly ApiOffered[] = [
  listPayments,
  exportPayments,
  sumPayments,
  refundPayment,
]

function filterOf(wanted: PaymentFilters, scope: PaymentFilter['scope']): PaymentFilter {
  const { app = null, agent_id: agent = null, state = null, scheme = null, since, until } = wanted
  const [sinceMs, untilMs] = [since, until].map((at) => (at === undefined ? null : Date.parse(at)))
  return { scope, app, agent, state, scheme, sinceMs: sinceMs!, untilMs: untilMs! }
}

const PAGE = 500
const SUMS_MAX = 200
const DAY_MS = 86_400_000

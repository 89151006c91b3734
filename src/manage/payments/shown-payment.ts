import * as z from 'zod'
import { priceOf } from '../../payment/money.ts'
import { PAYMENT_SCHEMES } from '../../policy/charging/charge.ts'
import { PAYMENT_STATES, type PaymentRecord } from '../../store/work/payments.ts'
import { time, timeOf } from '../http/schemas.ts'

/** A payment in the form that the API, webhooks and sinks use. */
export const payment = z
  .strictObject({
    id: z.string().meta({ example: 'pay_x7c1Jq0aT5b2Lw9k' }),
    state: z.enum(PAYMENT_STATES).meta({
      description:
        '`open`: not settled, as far as is known. `paid`: settled. `owed`: on account, to be billed. `refused`: nothing was paid. `refunded`: marked as paid back.',
    }),
    scheme: z.enum(PAYMENT_SCHEMES),
    app: z.string(),
    rule: z.string(),
    agent_id: z.string().nullable().meta({ description: 'The proven agent. `null`: none.' }),
    key: z.string().nullable().meta({ description: 'The thumbprint of the key that signed the request.' }),
    payer: z.string().nullable().meta({ description: 'The address that paid. `null`: on account.' }),
    host: z.string(),
    path: z.string(),
    price: z.string().meta({ example: '0.01' }),
    currency: z.string().meta({ example: 'USD' }),
    network: z.string().nullable(),
    asset: z.string().nullable(),
    transaction: z.string().nullable().meta({
      description:
        'The transfer, as the facilitator named it. `null`: none, or its name was lost when a process ended.',
    }),
    why: z.string().nullable().meta({ description: 'Why it was refused.' }),
    purpose: z.array(z.string()),
    license: z.string().nullable(),
    decision_id: z.string().meta({ description: 'Of the request that first brought it.' }),
    created_at: time,
    settled_at: time.nullable(),
    served_at: time
      .nullable()
      .meta({ description: '`null`: it can still be used, until its offer expires.' }),
    pass_until: time.nullable().meta({ description: '`null`: it paid for one request.' }),
    refunded_at: time.nullable(),
    refund_note: z.string().nullable(),
  })
  .meta({ id: 'Payment' })
export type ShownPayment = z.output<typeof payment>

export function shownPayment(record: PaymentRecord): ShownPayment {
  const { id, state, app, rule, agent, key, payer, host, path, currency, network, asset } = record
  const { transaction, why, purposes, license } = record
  return {
    ...{ id, state, app, rule, agent_id: agent, key, payer, host, path },
    scheme: record.scheme as ShownPayment['scheme'],
    price: priceOf(record.amount),
    ...{ currency, network, asset, transaction, why, purpose: [...purposes], license },
    decision_id: record.decisionId,
    created_at: timeOf(record.createdAtMs),
    settled_at: timeOf(record.settledAtMs),
    served_at: timeOf(record.servedAtMs),
    pass_until: timeOf(record.passUntilMs === 0 ? null : record.passUntilMs),
    refunded_at: timeOf(record.refundedAtMs),
    refund_note: record.refundNote,
  }
}

import { hash } from 'node:crypto'
import { pathWithoutSecrets } from '../../plane/privacy/path-form.ts'
import {
  type LicenseClaim,
  type PaymentAnswer,
  type PaymentClaim,
  type PaymentMessage,
  type PaymentReceipt,
  schemeOf,
  UNAVAILABLE,
} from '../../payment/claim.ts'
import { millionthsOf } from '../../payment/money.ts'
import type { PaymentTerms } from '../../payment/payment-terms.ts'
import {
  identityOf,
  readPayment,
  requirementsFor,
  timeFaultOf,
  type X402Payment,
} from '../../payment/x402.ts'
import type { Log } from '../../shared/log.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { PaymentDraft, PaymentRecord, Settlement } from '../../store/work/payments.ts'
import type { Store } from '../../store/store.ts'
import { newId } from '../http/ids.ts'
import { Facilitator, type FacilitatorSettings } from './facilitator.ts'
import { LicenseServer, type LicenseServerSettings } from './license-server.ts'
import type { PaymentMetrics } from './payment-metrics.ts'

export interface PaymentSettings {
  readonly terms: PaymentTerms
  /** `null`: no payments over x402. */
  readonly facilitator: FacilitatorSettings | null
  /** `null`: no license tokens. */
  readonly licenseServer: LicenseServerSettings | null
  readonly retentionMs: number
}

export interface CashierParts {
  readonly store: Pick<Store, 'payments' | 'transaction'>
  readonly news: PaymentNews
  readonly metrics: PaymentMetrics
  readonly log: Log
  nowMs(): number
}

/** Reports payments to webhooks and sinks. */
export interface PaymentNews {
  /** Takes part in the transaction that changes the payment. Call what it returns after the commit. */
  changed(payment: PaymentRecord, queries: Queries): Promise<() => void>
  refused(claim: PaymentClaim | LicenseClaim, why: string): void
}

/**
 * Takes payments. The row of a payment in the ledger is its reservation: of any processes, the one that inserts or takes
 * over the row asks the facilitator to settle. A process that is killed on the way leaves a row with a lease. When it has
 * ended, the client may bring the same payment again, which the contract of the token transfers only once.
 */
export class Cashier {
  readonly #terms: PaymentTerms
  readonly #facilitator: Facilitator | null
  readonly #licenses: LicenseServer | null
  readonly #parts: CashierParts
  #underWay = 0
  #failure = ''

  constructor({ terms, facilitator, licenseServer }: PaymentSettings, parts: CashierParts) {
    this.#terms = terms
    this.#facilitator = facilitator === null ? null : new Facilitator(facilitator)
    this.#licenses = licenseServer === null ? null : new LicenseServer(licenseServer)
    this.#parts = parts
  }

  /** Never rejects. */
  async pay(message: PaymentMessage): Promise<PaymentAnswer> {
    const { metrics, news } = this.#parts
    const isFull = message.kind !== 'use' && this.#underWay >= UNDER_WAY_MAX
    this.#underWay++
    const answer = isFull ? UNAVAILABLE : await this.#answer(message).catch((error) => this.#failed(error))
    this.#underWay--
    if (answer.kind === 'refused' && (message.kind === 'claim' || message.kind === 'license'))
      news.refused(message, answer.why)
    if (answer.kind in metrics.outcomes) metrics.outcomes[answer.kind as keyof typeof metrics.outcomes]++
    return answer
  }

  async close(): Promise<void> {
    await this.#facilitator?.close()
    await this.#licenses?.close()
  }

  async #answer(message: PaymentMessage): Promise<PaymentAnswer> {
    const { payments } = this.#parts.store
    const nowMs = this.#parts.nowMs()
    switch (message.kind) {
      case 'use':
        await (message.isServed ? payments.served(message.id, nowMs) : payments.released(message.id))
        return { kind: 'noted' }
      case 'pass': {
        const { key, app, rule } = message
        return { kind: 'pass', untilMs: await payments.passUntil(key, app, rule, nowMs) }
      }
      case 'license':
        return this.#license(message, nowMs)
      case 'claim':
        return message.payment === null
          ? this.#charge(message, nowMs)
          : this.#take(message, message.payment, nowMs)
    }
  }

  /** On account: the ledger notes it, and it is owed as soon as it is served. */
  async #charge(claim: PaymentClaim, nowMs: number): Promise<PaymentAnswer> {
    const terms = this.#terms.crawlerPrice
    const { agent, key, currency, decisionId, passMs } = claim
    if (terms === null || terms.currency !== currency) return UNAVAILABLE
    if (agent === null || key === null || !terms.accounts.includes(agent)) return refused('NoAccount')
    const identity = `account/${decisionId}`
    const passUntilMs = passMs === 0 ? 0 : nowMs + passMs
    const draft = { ...draftOf(claim, identity, null, nowMs), passUntilMs }
    const outcome = await this.#parts.store.payments.reserve(draft, claim.dayMax)
    if (outcome === 'reserved') return { kind: 'paid', id: draft.id, receipt: null, passUntilMs }
    return refused(outcome === 'over' ? DAY_MAX : 'already_used')
  }

  /** Who pays for a license is the matter of its server. The ledger notes the first use of a token by each rule. */
  async #license(claim: LicenseClaim, nowMs: number): Promise<PaymentAnswer> {
    if (this.#licenses === null) return UNAVAILABLE
    const { payments } = this.#parts.store
    const identity = `license/${claim.app}/${claim.rule}/${hash('sha256', claim.token)}`
    const known = await payments.byIdentity(identity)
    if (known?.state === 'refunded') return refused('invalid_token')
    const said = await this.#licenses.introspect(claim.token, claim.url, nowMs)
    if (!said.isActive) return refused('invalid_token')
    const passUntilMs = said.untilMs > nowMs ? said.untilMs : 0
    if (known !== null) return { kind: 'paid', id: known.id, receipt: null, passUntilMs }
    const { agent } = claim
    const account = agent ?? said.client ?? ''
    const draft = { ...draftOf(claim, identity, null, nowMs), payer: said.client, account, amount: 0 }
    if ((await payments.reserve(draft, null)) === 'reserved')
      await payments.settled(draft.id, { transaction: null, settledAtMs: nowMs, passUntilMs: 0 })
    const id = (await payments.byIdentity(identity))?.id ?? draft.id
    return { kind: 'paid', id, receipt: null, passUntilMs }
  }

  async #take(claim: PaymentClaim, header: string, nowMs: number): Promise<PaymentAnswer> {
    const terms = this.#terms.x402
    const { price, currency, url, passMs, dayMax } = claim
    const requirements = terms?.currency === currency ? requirementsFor(terms, price) : null
    if (requirements === null || this.#facilitator === null) return UNAVAILABLE
    const payment = readPayment(header, requirements, url, passMs > 0)
    if (typeof payment === 'string') return refused(payment)
    const { payments } = this.#parts.store
    const identity = identityOf(payment)
    const known = await payments.byIdentity(identity)
    if (known !== null) return this.#takeAgain(known, claim, payment, nowMs)
    const fault = timeFaultOf(payment, Math.floor(nowMs / 1_000))
    if (fault !== null) return refused(fault)
    const verified = await this.#facilitator.verify(payment)
    if (!verified.isGood) return refused(verified.why)
    const draft = draftOf(claim, identity, payment, nowMs)
    const outcome = await payments.reserve(draft, dayMax)
    if (outcome === 'over') return refused(DAY_MAX)
    if (outcome === 'taken') return { kind: 'pending', retryMs: LEASE_MS }
    return this.#settle(draft.id, claim, payment, false)
  }

  /** A payment that came before: a replay, a pass, or another try. */
  async #takeAgain(
    known: PaymentRecord,
    claim: PaymentClaim,
    payment: X402Payment,
    nowMs: number,
  ): Promise<PaymentAnswer> {
    const { id, state, passUntilMs, leaseUntilMs } = known
    const isSame = known.app === claim.app && known.rule === claim.rule && known.key === claim.key
    if (!isSame || state === 'refunded') return refused('already_used')
    if (known.servedAtMs !== null) {
      if (passUntilMs <= nowMs) return refused('already_used')
      return { kind: 'paid', id, receipt: receiptOf(payment, known.transaction), passUntilMs }
    }
    if (claim.passMs === 0 && known.path !== pathWithoutSecrets(claim.path)) return refused('wrong_resource')
    const isTaken = await this.#parts.store.payments.takeOver(id, nowMs, nowMs + LEASE_MS)
    if (!isTaken) return { kind: 'pending', retryMs: Math.max(leaseUntilMs - nowMs, 1_000) }
    if (state === 'paid')
      return { kind: 'paid', id, receipt: receiptOf(payment, known.transaction), passUntilMs }
    // Its outcome may be lost, so a transfer that was made already is the one that was asked for.
    return this.#settle(id, claim, payment, state === 'open')
  }

  async #settle(
    id: string,
    claim: PaymentClaim,
    payment: X402Payment,
    isAgain: boolean,
  ): Promise<PaymentAnswer> {
    const { payments } = this.#parts.store
    try {
      const settled = await this.#facilitator!.settle(payment)
      if (!settled.isDone && !(isAgain && WAS_DONE.test(settled.why))) {
        await payments.refused(id, settled.why)
        return refused(settled.why)
      }
      const transaction = settled.isDone ? settled.transaction : null
      const settledAtMs = this.#parts.nowMs()
      const passUntilMs = claim.passMs === 0 ? 0 : settledAtMs + claim.passMs
      await this.#settled(id, { transaction, settledAtMs, passUntilMs })
      this.#failure = ''
      return { kind: 'paid', id, receipt: receiptOf(payment, transaction), passUntilMs }
    } catch (error) {
      // Whether it is settled is unknown. The client may bring it again at once.
      await payments.released(id)
      throw error
    }
  }

  async #settled(id: string, settlement: Settlement): Promise<void> {
    const { store, news } = this.#parts
    const afterCommit = await store.transaction(async (queries) => {
      await store.payments.settled(id, settlement, queries)
      const payment = await store.payments.byId(id, queries)
      return payment === null ? null : news.changed(payment, queries)
    })
    afterCommit?.()
  }

  #failed(error: Error & { readonly code?: unknown }): PaymentAnswer {
    const { log, metrics } = this.#parts
    // That of a timeout is a number.
    if (!String(error.code).startsWith('STORE_')) metrics.facilitatorFailures++
    if (error.message !== this.#failure) log.error('a payment cannot be checked', { error })
    this.#failure = error.message
    return UNAVAILABLE
  }
}

function draftOf(
  claim: PaymentClaim | LicenseClaim,
  identity: string,
  payment: X402Payment | null,
  nowMs: number,
): PaymentDraft {
  const { app, rule, agent, key, host, currency, purposes, license, decisionId } = claim
  const path = pathWithoutSecrets(claim.path)
  const payer = payment?.payload.authorization.from.toLowerCase() ?? null
  return {
    ...{ app, rule, agent, key, host, path, currency, purposes, license, decisionId, identity, payer },
    id: newId('pay'),
    scheme: schemeOf(claim),
    account: agent ?? payer ?? '',
    amount: millionthsOf(claim.price),
    network: payment?.accepted.network ?? null,
    asset: payment?.accepted.asset ?? null,
    createdAtMs: nowMs,
    leaseUntilMs: nowMs + LEASE_MS,
    passUntilMs: 0,
  }
}

function receiptOf({ accepted, payload }: X402Payment, transaction: string | null): PaymentReceipt {
  const { network } = accepted
  return { success: true, transaction: transaction ?? '', network, payer: payload.authorization.from }
}

function refused(why: string): PaymentAnswer {
  return { kind: 'refused', why }
}

/** The names of EVM facilitators for a transfer that was made before. */
const WAS_DONE = /nonce_already_used|authorization_already_used|already_settled|authorization_used/
const DAY_MAX = 'day_max_reached'
/** Longer than two answers of the facilitator at most take, and the app with its first byte. */
const LEASE_MS = 60_000
/** More wait for the facilitator than it answers. */
const UNDER_WAY_MAX = 256

import type { X402Payment } from '../../payment/x402.ts'
import { PaymentServer, type PaymentServerSettings } from './payment-server.ts'

export interface FacilitatorSettings extends PaymentServerSettings {
  readonly token: string | null
}

/** `why`: a word of the facilitator. */
export type Verified = { readonly isGood: true } | { readonly isGood: false; readonly why: string }
export type Settled =
  | { readonly isDone: true; readonly transaction: string }
  | { readonly isDone: false; readonly why: string }

/** Asks the facilitator of the settings over x402 version 2. Throws a Fault if its answer is missing or makes no sense. */
export class Facilitator {
  readonly #server: PaymentServer
  readonly #token: string | null
  readonly #path: string

  constructor(settings: FacilitatorSettings) {
    this.#server = new PaymentServer('the facilitator', settings)
    this.#token = settings.token
    this.#path = new URL(settings.url).pathname.replace(/\/$/, '')
  }

  /** Moves no money. */
  async verify(payment: X402Payment): Promise<Verified> {
    const said = await this.#ask('verify', payment)
    if (said['isValid'] === false) return { isGood: false, why: wordIn(said['invalidReason']) }
    if (said['isValid'] !== true) throw this.#server.senseless('verify', 'isValid')
    if (!isPayer(said['payer'], payment)) throw this.#server.senseless('verify', 'payer')
    return { isGood: true }
  }

  async settle(payment: X402Payment): Promise<Settled> {
    const said = await this.#ask('settle', payment)
    if (said['success'] === false) return { isDone: false, why: wordIn(said['errorReason']) }
    if (said['success'] !== true) throw this.#server.senseless('settle', 'success')
    const { transaction, network, payer, amount } = said
    if (typeof transaction !== 'string' || !TRANSACTION.test(transaction))
      throw this.#server.senseless('settle', 'transaction')
    if (network !== payment.accepted.network) throw this.#server.senseless('settle', 'network')
    if (!isPayer(payer, payment)) throw this.#server.senseless('settle', 'payer')
    if (amount !== undefined && amount !== payment.accepted.amount)
      throw this.#server.senseless('settle', 'amount')
    return { isDone: true, transaction }
  }

  close(): Promise<void> {
    return this.#server.close()
  }

  async #ask(what: 'verify' | 'settle', payment: X402Payment): Promise<Readonly<Record<string, unknown>>> {
    const asked = { x402Version: 2, paymentPayload: payment, paymentRequirements: payment.accepted }
    const headers = {
      'content-type': 'application/json',
      ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
    }
    const answer = await this.#server.post(`${this.#path}/${what}`, headers, JSON.stringify(asked))
    // It says what is wrong with a payment with 400, and with others that something is wrong with it.
    if (answer.status !== 200 && answer.status !== 400 && answer.status !== 402)
      throw this.#server.senseless(what, `status ${answer.status}`)
    return answer.object()
  }
}

/** A facilitator may leave the payer out. */
function isPayer(payer: unknown, { payload }: X402Payment): boolean {
  if (payer === undefined) return true
  return typeof payer === 'string' && payer.toLowerCase() === payload.authorization.from.toLowerCase()
}

/** Goes to clients and into the ledger, so only words. */
function wordIn(reason: unknown): string {
  return typeof reason === 'string' && WORD.test(reason) ? reason : 'not_accepted'
}

const TRANSACTION = /^[\w:-]{1,200}$/
const WORD = /^\w{1,100}$/

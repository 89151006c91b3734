import type { Dispatcher, Pool } from 'undici'
import type { X402Payment } from '../../payment/x402.ts'
import { Fault } from '../../shared/fault.ts'

export interface FacilitatorSettings {
  readonly url: string
  readonly token: string | null
  /** CA certificates (PEM) that replace the system's. */
  readonly ca: string | null
  /** For each answer, from the first byte sent to the last one received. */
  readonly timeoutMs: number
}

/** `why`: a word of the facilitator. */
export type Verified = { readonly isGood: true } | { readonly isGood: false; readonly why: string }
export type Settled =
  | { readonly isDone: true; readonly transaction: string }
  | { readonly isDone: false; readonly why: string }

/** Asks the facilitator of the settings over x402 version 2. Throws a Fault if its answer is missing or makes no sense. */
export class Facilitator {
  readonly #settings: FacilitatorSettings
  readonly #path: string
  #pool: Promise<Pool> | null = null

  constructor(settings: FacilitatorSettings) {
    this.#settings = settings
    this.#path = new URL(settings.url).pathname.replace(/\/$/, '')
  }

  /** Moves no money. */
  async verify(payment: X402Payment): Promise<Verified> {
    const said = await this.#ask('verify', payment)
    if (said['isValid'] === false) return { isGood: false, why: wordIn(said['invalidReason']) }
    if (said['isValid'] !== true) throw senseless('verify', 'isValid')
    if (!isPayer(said['payer'], payment)) throw senseless('verify', 'payer')
    return { isGood: true }
  }

  async settle(payment: X402Payment): Promise<Settled> {
    const said = await this.#ask('settle', payment)
    if (said['success'] === false) return { isDone: false, why: wordIn(said['errorReason']) }
    if (said['success'] !== true) throw senseless('settle', 'success')
    const { transaction, network, payer, amount } = said
    if (typeof transaction !== 'string' || !TRANSACTION.test(transaction))
      throw senseless('settle', 'transaction')
    if (network !== payment.accepted.network) throw senseless('settle', 'network')
    if (!isPayer(payer, payment)) throw senseless('settle', 'payer')
    if (amount !== undefined && amount !== payment.accepted.amount) throw senseless('settle', 'amount')
    return { isDone: true, transaction }
  }

  async close(): Promise<void> {
    await (await this.#pool)?.destroy()
  }

  async #ask(what: 'verify' | 'settle', payment: X402Payment): Promise<Readonly<Record<string, unknown>>> {
    const { token, timeoutMs } = this.#settings
    this.#pool ??= this.#open()
    const pool = await this.#pool
    const asked = { x402Version: 2, paymentPayload: payment, paymentRequirements: payment.accepted }
    const { statusCode, body } = await pool.request({
      method: 'POST',
      path: `${this.#path}/${what}`,
      headers: {
        'content-type': 'application/json',
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(asked),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const text = await boundedText(body)
    // It says what is wrong with a payment with 400, and with others that something is wrong with it.
    if (statusCode !== 200 && statusCode !== 400 && statusCode !== 402)
      throw senseless(what, `status ${statusCode}`)
    return objectIn(text, what)
  }

  async #open(): Promise<Pool> {
    const { Pool } = await import('undici')
    const { url, ca, timeoutMs } = this.#settings
    const times = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs }
    return new Pool(new URL(url).origin, {
      ...times,
      connections: CONNECTIONS,
      connect: { timeout: timeoutMs, ...(ca === null ? {} : { ca }) },
    })
  }
}

async function boundedText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of body) {
    length += (piece as Buffer).length
    if (length > BYTES_MAX) throw new Fault('FACILITATOR_UNUSABLE', 'the facilitator answers with too much')
    pieces.push(piece as Buffer)
  }
  return Buffer.concat(pieces).toString()
}

function objectIn(text: string, what: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw senseless(what, 'JSON')
  }
  if (typeof value !== 'object' || value === null) throw senseless(what, 'JSON')
  return value as Readonly<Record<string, unknown>>
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

function senseless(what: string, name: string): Fault {
  return new Fault('FACILITATOR_UNUSABLE', `the facilitator's answer to ${what} has an unusable ${name}`)
}

const CONNECTIONS = 16
const BYTES_MAX = 65_536
const TRANSACTION = /^[\w:-]{1,200}$/
const WORD = /^\w{1,100}$/

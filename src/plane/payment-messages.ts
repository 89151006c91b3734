import type { ChargedRequest, PaymentAnswer, PaymentMessage } from '../payment/claim.ts'
import { Fault } from '../shared/fault.ts'

/** Messages about payments on NATS: JSON with a format number. Proxies and managers may be of different versions. */
export function writePaymentMessage(message: PaymentMessage | PaymentAnswer): Buffer {
  return Buffer.from(JSON.stringify({ format: FORMAT, ...message }))
}

/** Throws a Fault if the bytes are not a message of a proxy. Drops members of later versions. */
export function readPaymentMessage(bytes: Uint8Array): PaymentMessage {
  const said = objectIn(bytes)
  switch (said['kind']) {
    case 'claim': {
      const payment = orNull(said, 'payment', (name) => textIn(said, name, PAYMENT_LENGTH_MAX))
      return { kind: 'claim', payment, ...requestIn(said) }
    }
    case 'license':
      return { kind: 'license', token: textIn(said, 'token', PAYMENT_LENGTH_MAX), ...requestIn(said) }
    case 'pass':
      return { kind: 'pass', ...ruleIn(said), key: textIn(said, 'key') }
    case 'use':
      return { kind: 'use', id: textIn(said, 'id'), isServed: said['isServed'] === true }
    default:
      throw unreadable('kind')
  }
}

/** Throws a Fault if the bytes are not an answer of a manager. */
export function readPaymentAnswer(bytes: Uint8Array): PaymentAnswer {
  const said = objectIn(bytes)
  switch (said['kind']) {
    case 'paid':
      return {
        kind: 'paid',
        id: textIn(said, 'id'),
        receipt: orNull(said, 'receipt', () => receiptIn(said['receipt'])),
        passUntilMs: numberIn(said, 'passUntilMs'),
      }
    case 'refused':
      return { kind: 'refused', why: textIn(said, 'why') }
    case 'pending':
      return { kind: 'pending', retryMs: numberIn(said, 'retryMs') }
    case 'pass':
      return { kind: 'pass', untilMs: numberIn(said, 'untilMs') }
    case 'unavailable':
    case 'noted':
      return { kind: said['kind'] }
    default:
      throw unreadable('kind')
  }
}

function receiptIn(value: unknown) {
  if (typeof value !== 'object' || value === null) throw unreadable('receipt')
  const said = value as Said
  const [transaction, network, payer] = [
    textIn(said, 'transaction'),
    textIn(said, 'network'),
    textIn(said, 'payer'),
  ]
  return { success: true as const, transaction, network, payer }
}

type Said = Readonly<Record<string, unknown>>

function objectIn(bytes: Uint8Array): Said {
  if (bytes.length > BYTES_MAX) throw unreadable('length')
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(bytes).toString())
  } catch {
    throw unreadable('JSON')
  }
  if (typeof value !== 'object' || value === null || (value as Said)['format'] !== FORMAT)
    throw unreadable('format')
  return value as Said
}

function requestIn(said: Said): ChargedRequest {
  return {
    ...ruleIn(said),
    decisionId: textIn(said, 'decisionId'),
    url: textIn(said, 'url', URL_LENGTH_MAX),
    agent: orNull(said, 'agent', (name) => textIn(said, name)),
    key: orNull(said, 'key', (name) => textIn(said, name)),
    host: textIn(said, 'host'),
    path: textIn(said, 'path', URL_LENGTH_MAX),
    price: textIn(said, 'price'),
    currency: textIn(said, 'currency'),
    passMs: numberIn(said, 'passMs'),
    dayMax: orNull(said, 'dayMax', (name) => numberIn(said, name)),
    purposes: textsIn(said, 'purposes'),
    license: orNull(said, 'license', (name) => textIn(said, name, URL_LENGTH_MAX)),
  }
}

function ruleIn(said: Said) {
  return { app: textIn(said, 'app'), rule: textIn(said, 'rule') }
}

function textIn(said: Said, name: string, lengthMax = TEXT_LENGTH_MAX): string {
  const value = said[name]
  if (typeof value !== 'string' || value.length > lengthMax) throw unreadable(name)
  return value
}

function numberIn(said: Said, name: string): number {
  const value = said[name]
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw unreadable(name)
  return value
}

function textsIn(said: Said, name: string): readonly string[] {
  const value = said[name]
  const isList = Array.isArray(value) && value.length <= TEXTS_MAX
  if (!isList || !value.every((each) => typeof each === 'string' && each.length <= TEXT_LENGTH_MAX))
    throw unreadable(name)
  return value
}

function orNull<Value>(said: Said, name: string, read: (name: string) => Value): Value | null {
  return said[name] === null ? null : read(name)
}

function unreadable(what: string): Fault {
  return new Fault('BUS_UNREADABLE', `a message about a payment has an unusable ${what}`)
}

const FORMAT = 1
const BYTES_MAX = 65_536
const TEXT_LENGTH_MAX = 512
const URL_LENGTH_MAX = 16_384
const PAYMENT_LENGTH_MAX = 8_192
const TEXTS_MAX = 32

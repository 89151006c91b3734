import { PURPOSES } from '../../classify/known/software.ts'
import { atomicAmount, isPrice, millionthsOf } from '../../payment/money.ts'
import type { PaymentTerms } from '../../payment/payment-terms.ts'
import { type Place, shown } from '../../shared/problem.ts'
import { optional, readDuration, required } from './members.ts'

/** Answers 402 with an offer, until the client has paid. */
export interface ChargeAction {
  readonly kind: 'charge'
  /** For a request, or for a pass: decimal text with at most six places. */
  readonly price: string
  readonly currency: string
  readonly schemes: readonly PaymentScheme[]
  /** What is sold, in words. `null`, here and below: not stated. */
  readonly description: string | null
  /** The paths that a pass opens. `null`: every path for which the rule charges. */
  readonly path: string | null
  /** The purposes for which the content may be used. */
  readonly purposes: readonly string[]
  /** The URL of the licence. */
  readonly license: string | null
  /** How long one payment lets its payer in. 0: for one request. */
  readonly passMs: number
  readonly free: FreeQuota | null
  readonly exempt: readonly Exemption[]
  /** The most that an agent is charged by this rule on a day (UTC), in millionths. `null`: no limit. */
  readonly dayMax: number | null
  /** What happens to a request with a payment that cannot be checked now. */
  readonly fail: 'open' | 'closed'
}

/** Requests of an agent that cost nothing. */
export interface FreeQuota {
  readonly requests: number
  readonly windowMs: number
  readonly burst: number
}

/** `license`: tokens of a license server, as RSL 1.0 has them. */
export const PAYMENT_SCHEMES = ['x402', 'crawler-price', 'license'] as const
export type PaymentScheme = (typeof PAYMENT_SCHEMES)[number]

/** Proven agents that need not pay: those that only search, and those that a user sends. */
export const EXEMPTIONS = ['verified-search', 'user-triggered'] as const
export type Exemption = (typeof EXEMPTIONS)[number]

/** `payments`: what the settings say; `null`: not checked. */
export function readCharge(place: Place, payments: PaymentTerms | null): ChargeAction | null {
  const members = place.members(MEMBERS)
  const text = (name: string, most?: number) =>
    optional(members.get(name), (member) => member.text('text', most), NONE)
  const price = required(place, members, 'price', readPrice)
  const currency = required(place, members, 'currency', (member) =>
    matching(member, CURRENCY, 'a currency, like USD'),
  )
  const schemes = required(place, members, 'scheme', (member) => readList(member, PAYMENT_SCHEMES))
  const description = text('description', DESCRIPTION_LENGTH_MAX)
  const path = optional(
    members.get('path'),
    (member) => matching(member, PATH, 'a path that starts with /'),
    NONE,
  )
  const purposes = optional(members.get('purpose'), (member) => readList(member, PURPOSES), NO_LIST)
  const license = optional(members.get('license'), (member) => matching(member, URL, 'a URL'), NONE)
  const passMs = optional(members.get('pass'), (member) => readDuration(member, 1_000, PASS_MS_MAX), 0)
  const free = optional(members.get('free'), readFree, NONE)
  const exempt = optional(members.get('exempt'), (member) => readList(member, EXEMPTIONS), NO_LIST)
  const dayMax = optional(members.get('day_max'), readPrice, NONE)
  const fail = optional(members.get('fail'), (member) => member.choice(['open', 'closed'] as const), 'closed')
  if (price === null || currency === null || schemes === null || description === null) return null
  if (path === null || purposes === null || license === null || passMs === null) return null
  if (free === null || exempt === null || dayMax === null || fail === null) return null
  if (path !== NONE && passMs === 0)
    return members.get('path')!.refuse('has no effect without pass, which says how long a payment lets in')
  const action: ChargeAction = {
    ...{ kind: 'charge', price, currency, schemes, purposes, passMs, exempt, fail },
    description: orNull(description),
    path: orNull(path),
    license: orNull(license),
    free: orNull(free),
    dayMax: dayMax === NONE ? null : millionthsOf(dayMax),
  }
  if (action.dayMax !== null && action.dayMax < millionthsOf(price))
    return members.get('day_max')!.refuse(`is less than the price of ${price}; raise it`)
  const isPayable = payments === null || isPayableWith(action, payments, members)
  return isPayable ? action : null
}

/** Reports the schemes that the settings do not allow. */
function isPayableWith(
  { schemes, price, currency }: ChargeAction,
  payments: PaymentTerms,
  members: ReadonlyMap<string, Place>,
): boolean {
  const problems = schemes.map((scheme) => {
    const terms = payments[TERMS_OF[scheme]]
    const at = scheme === 'x402' ? 'payments.x402' : 'payments.crawler_price'
    if (terms === null) return members.get('scheme')!.refuse(`${scheme} is off: ${MISSING[scheme]}`)
    // The license server knows what was paid.
    if ('isForwarded' in terms) return true
    if (terms.currency !== currency)
      return members.get('currency')!.refuse(`is ${currency}, but ${at}.currency is ${terms.currency}`)
    const isTooSmall = 'decimals' in terms && atomicAmount(price, terms.decimals) === null
    return isTooSmall ? members.get('price')!.refuse(`has more places than ${at}.decimals`) : true
  })
  return problems.every((each) => each !== null)
}

function readPrice(place: Place): string | null {
  const { value } = place
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text === 'string' && isPrice(text)) return text
  return place.refuse(`is ${shown(value)}; expected a price above 0 with at most six places, like "0.01"`)
}

function readFree(place: Place): FreeQuota | null {
  const members = place.members(['requests', 'window'])
  const requests = required(place, members, 'requests', (member) => member.integer(1, 1_000_000))
  const windowMs = required(place, members, 'window', (member) => readDuration(member, 1, WINDOW_MS_MAX))
  return requests === null || windowMs === null ? null : { requests, windowMs, burst: requests }
}

function readList<Choice extends string>(place: Place, choices: readonly Choice[]): Choice[] | null {
  const read = place.items().map((item) => item.choice(choices))
  if (read.length === 0 || read.includes(null)) return null
  return [...new Set(read as Choice[])]
}

function matching(place: Place, pattern: RegExp, what: string): string | null {
  const text = place.text(what)
  return text === null || pattern.test(text) ? text : place.expected(what)
}

function orNull<Value>(value: Value | typeof NONE): Value | null {
  return value === NONE ? null : value
}

const MEMBERS = [
  ...['price', 'currency', 'scheme', 'description', 'path', 'purpose', 'license', 'pass', 'free'],
  ...['exempt', 'day_max', 'fail'],
]
const MISSING: Readonly<Record<PaymentScheme, string>> = {
  x402: 'set payments.x402.facilitator, which checks and settles payments, and payments.x402.pay_to',
  'crawler-price': 'set payments.crawler_price.accounts, the agents that pay on account',
  license: 'set payments.license.introspection, the URL at which the license server checks tokens',
}
const TERMS_OF = { x402: 'x402', 'crawler-price': 'crawlerPrice', license: 'license' } as const
/** Stands for a `null` value, because `null` itself means refused here. */
const NONE = Symbol('none')
const NO_LIST: readonly never[] = []
const CURRENCY = /^[A-Z]{3,8}$/
const PATH = /^\/[!-~]{0,255}$/
const URL = /^https?:\/\/[\w.~!*'();:@&=+$,/?#[\]%-]{1,255}$/
const DESCRIPTION_LENGTH_MAX = 200
/** The ledger keeps payments longer. */
const PASS_MS_MAX = 30 * 86_400_000
/** As for rate limits: counts are kept in memory and end with the process. */
const WINDOW_MS_MAX = 86_400_000

import { isPrice, millionthsOf } from './money.ts'

/** Pay per crawl: https://developers.cloudflare.com/ai-crawl-control/features/pay-per-crawl/ */
export const CRAWLER_PRICE = 'crawler-price'
export const CRAWLER_ERROR = 'crawler-error'
export const CRAWLER_CHARGED = 'crawler-charged'

/** Why a request that names a price is not charged. */
export type CrawlerFault = 'InvalidCrawlerPriceValue' | 'PriceTooLow' | 'StrongAuthRequired' | 'NoAccount'

/** The prices that a request names; `null`: not sent. */
export interface NamedPrices {
  readonly exact: string | null
  readonly most: string | null
}

/** Whether the client agrees to the price; `null`: it names none. */
export function agreesTo(
  { exact, most }: NamedPrices,
  price: string,
  currency: string,
): true | null | CrawlerFault {
  if (exact === null && most === null) return null
  const named = PRICE.exec(exact ?? most!)
  // Two prices could be read in two ways.
  if (named === null || (exact !== null && most !== null) || !isPrice(named[2]!))
    return 'InvalidCrawlerPriceValue'
  const [, namedCurrency, amount] = named as unknown as [string, string, string]
  const [offered, asked] = [millionthsOf(amount), millionthsOf(price)]
  const isEnough = exact === null ? offered >= asked : offered === asked
  return namedCurrency === currency && isEnough ? true : 'PriceTooLow'
}

const PRICE = /^([A-Z]{3,8}) (\d{1,9}(?:\.\d{1,6})?)$/
